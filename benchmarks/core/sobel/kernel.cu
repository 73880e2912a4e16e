#include <cuda_runtime.h>

// Edge strength of an 8-bit image, |gx| + |gy|, at most 255; the border is black.

static __device__ __forceinline__ int at(const unsigned char *image, int width, int x, int y)
{
    return image[y * width + x];
}

__global__ void sobel_kernel(const unsigned char *image, unsigned char *edges, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
            edges[y * width + x] = 0;
        } else {
            int gx = at(image, width, x + 1, y - 1) + 2 * at(image, width, x + 1, y) + at(image, width, x + 1, y + 1)
                   - at(image, width, x - 1, y - 1) - 2 * at(image, width, x - 1, y) - at(image, width, x - 1, y + 1);
            int gy = at(image, width, x - 1, y + 1) + 2 * at(image, width, x, y + 1) + at(image, width, x + 1, y + 1)
                   - at(image, width, x - 1, y - 1) - 2 * at(image, width, x, y - 1) - at(image, width, x + 1, y - 1);
            int strength = abs(gx) + abs(gy);
            edges[y * width + x] = strength > 255 ? 255 : strength;
        }
    }
}

extern "C" void sobel(const unsigned char *image, unsigned char *edges, int width, int height)
{
    dim3 block(32, 32);
    dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
    sobel_kernel<<<grid, block>>>(image, edges, width, height);
}
