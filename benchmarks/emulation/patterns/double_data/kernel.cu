// Polynomials of double values: the arithmetic is meant to be double.
#include <cuda_runtime.h>

__global__ void work(const double* a, double* o, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], s0 = x, s1 = x + 1, s2 = x + 2, s3 = x + 3;
    for (int k = 0; k < turns; k++) {
        s0 = s0 * 0.5 + x;
        s1 = s1 * 0.5 + x;
        s2 = s2 * 0.5 + x;
        s3 = s3 * 0.5 + x;
    }
    o[i] = s0 + s1 + s2 + s3;
}

extern "C" void run(const double* a, double* o, int n, int turns) {
    work<<<(n + 255) / 256, 256>>>(a, o, n, turns);
}
