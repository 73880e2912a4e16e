// Rows of a padded array, each one element off a line: a request needs five sectors in place of four.
#include <cuda_runtime.h>

__global__ void shift(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i + 1] = a[i + 1] * 0.5f;
}

extern "C" void run(const float* a, float* o, int n) { shift<<<(n + 255) / 256, 256>>>(a, o, n - 1); }
