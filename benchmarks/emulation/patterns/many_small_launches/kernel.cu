// One launch for each of many short rows.
#include <cuda_runtime.h>

__global__ void scale(const float* a, float* o, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = a[i] * factor;
}

extern "C" void run(const float* a, float* o, int rows, int columns) {
    for (int r = 0; r < rows; r++)
        scale<<<(columns + 255) / 256, 256>>>(a + r * columns, o + r * columns, columns, 1.0f + r);
}
