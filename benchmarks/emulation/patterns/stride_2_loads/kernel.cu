// Every second element of an array.
#include <cuda_runtime.h>

__global__ void thin(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = 3.0f * a[2 * i];
}

extern "C" void run(const float* a, float* o, int n) { thin<<<(n + 255) / 256, 256>>>(a, o, n); }
