// An array whose first element is not copied, so that every request begins four bytes behind a line.
#include <cuda_runtime.h>

__global__ void shift(const float* a, float* o, int n) {
    int stride = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 8; k++, i += stride)
        if (i < n) o[i + 1] = a[i + 1] * 0.5f;
}

extern "C" void run(const float* a, float* o, int n) { shift<<<(n / 8 + 256) / 256, 256>>>(a, o, n - 1); }
