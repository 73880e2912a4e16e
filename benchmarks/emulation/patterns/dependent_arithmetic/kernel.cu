// One chain of multiply-adds a thread, and two warps a scheduler: each waits for its own last result.
#include <cuda_runtime.h>

__global__ void work(const float* a, float* o, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], s = x;
#pragma unroll 16
    for (int k = 0; k < turns; k++) s = s * 0.5f + x;
    o[i] = s;
}

extern "C" void run(const float* a, float* o, int n, int turns) {
    work<<<(n + 63) / 64, 64>>>(a, o, n, turns);
}
