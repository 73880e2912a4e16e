// Reciprocal roots and powers of two, four independent chains a thread.
#include <cuda_runtime.h>

__global__ void work(const float* a, float* o, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], s0 = x, s1 = x + 1, s2 = x + 2, s3 = x + 3;
    for (int k = 0; k < turns; k++) {
        s0 = rsqrtf(s0) + 1.0f;
        s1 = rsqrtf(s1) + 1.0f;
        s2 = rsqrtf(s2) + 1.0f;
        s3 = rsqrtf(s3) + 1.0f;
    }
    o[i] = (s0 + s1) * x + s2 + s3;
}

extern "C" void run(const float* a, float* o, int n, int turns) {
    work<<<(n + 255) / 256, 256>>>(a, o, n, turns);
}
