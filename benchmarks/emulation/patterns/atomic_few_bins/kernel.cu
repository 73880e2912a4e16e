// Float sums of four classes: thousands of adds meet on each of four addresses.
#include <cuda_runtime.h>

__global__ void totals(const int* kind, const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&o[64 * kind[i]], a[i]);
}

extern "C" void run(const int* kind, const float* a, float* o, int n) {
    totals<<<(n + 255) / 256, 256>>>(kind, a, o, n);
}
