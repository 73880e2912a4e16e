// A small matrix a thread, with the registers cut to 32.
#include <cuda_runtime.h>

__global__ void __launch_bounds__(1024, 2) powers(const float* a, float* o, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[48];
#pragma unroll
    for (int k = 0; k < 48; k++) v[k] = a[(i + 64 * k) % n];
    for (int t = 0; t < turns; t++) {
#pragma unroll
        for (int k = 0; k < 48; k++) v[k] = v[k] * 0.5f + v[(k * 5 + 7) % 48] * 0.25f;
    }
    float s = 0;
#pragma unroll
    for (int k = 0; k < 48; k++) s += v[k];
    o[i] = s;
}

extern "C" void run(const float* a, float* o, int n, int turns) {
    powers<<<(n + 1023) / 1024, 1024>>>(a, o, n, turns);
}
