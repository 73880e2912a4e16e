/* Conway's game of life on a torus, one byte a cell. */
#include <cuda_runtime.h>

typedef unsigned char cell_t;

__device__ int alive(const cell_t *cells, int x, int y, int width, int height)
{
    return cells[((y + height) % height) * width + (x + width) % width];
}

__global__ void generation(const cell_t *before, cell_t *after, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;

    int neighbours = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx != 0 || dy != 0)
                neighbours += alive(before, x + dx, y + dy, width, height);

    after[y * width + x] = neighbours == 3 || (neighbours == 2 && before[y * width + x]);
}

extern "C" int life(const cell_t *start, cell_t *cells, cell_t *other, int width, int height, int generations)
{
    dim3 threads(16, 16);
    dim3 blocks((width + 15) / 16, (height + 15) / 16);

    /* The two boards alternate so that the last generation lies in cells. */
    const cell_t *from = start;
    for (int left = generations; left > 0; left--) {
        cell_t *to = left % 2 ? cells : other;
        generation<<<blocks, threads>>>(from, to, width, height);
        from = to;
    }
    return (int)cudaGetLastError();
}
