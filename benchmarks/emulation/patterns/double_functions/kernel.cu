// A function without `f` on floats: root and power are computed in double.
#include <cuda_runtime.h>

__global__ void norms(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = a[i];
        o[i] = sqrt(1.0 + x * (double)x) / (1.0 + exp(-1.702 * x));
    }
}

extern "C" void run(const float* a, float* o, int n) { norms<<<(n + 255) / 256, 256>>>(a, o, n); }
