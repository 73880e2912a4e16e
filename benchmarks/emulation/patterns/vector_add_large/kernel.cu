// Sum of two arrays that are far larger than the L2.
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* o, int n) { add<<<(n + 255) / 256, 256>>>(a, b, o, n); }
