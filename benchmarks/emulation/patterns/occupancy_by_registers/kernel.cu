// Loads one after another, their values all kept: two hundred registers leave room for few warps.
#include <cuda_runtime.h>

__global__ void __launch_bounds__(256) walk(const int* next, float* o, int n, int threads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = i % n;
    float v[160];
#pragma unroll
    for (int k = 0; k < 160; k++) {
        j = next[j & ~31] + (i & 31);
        v[k] = __int_as_float((j & 8191) | 0x3f800000);
    }
    float s = 0;
#pragma unroll
    for (int k = 0; k < 160; k++) s = s * 0.9f + v[k] * v[159 - k];
    if (i < threads) o[i] = s;
}

extern "C" void run(const int* next, float* o, int n, int threads) {
    walk<<<(threads + 255) / 256, 256>>>(next, o, n, threads);
}
