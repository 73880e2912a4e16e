// Every lane has its own number of steps: a warp takes as long as its longest.
#include <cuda_runtime.h>

__global__ void steps(const int* a, int* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], count = a[i] & 63;
    if ((a[i] >> 8) % 16 == 0) count += 800;
    for (int k = 0; k < count; k++) x = x * 1664525 + 1013904223;
    o[i] = x;
}

extern "C" void run(const int* a, int* o, int n) { steps<<<(n + 255) / 256, 256>>>(a, o, n); }
