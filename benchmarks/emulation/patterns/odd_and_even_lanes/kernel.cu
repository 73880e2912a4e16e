// Odd lanes compute something else than even ones.
#include <cuda_runtime.h>

__global__ void work(const float* a, float* o, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], s = x;
    if (threadIdx.x % 2) {
        for (int k = 0; k < turns; k++) s = s * 0.5f + x;
    } else {
        for (int k = 0; k < turns; k++) s = fabsf(s - x) * 0.25f + 1.0f;
    }
    o[i] = s;
}

extern "C" void run(const float* a, float* o, int n, int turns) {
    work<<<(n + 255) / 256, 256>>>(a, o, n, turns);
}
