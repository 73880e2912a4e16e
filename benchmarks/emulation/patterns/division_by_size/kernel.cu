// Digits of a number in a base that is known only at run time.
#include <cuda_runtime.h>

__global__ void digits(const int* a, int* o, int n, int base) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], s = 0, b = base;
    for (int k = 0; k < 16; k++) {
        s = s * 3 + x % b;
        x = x / b + s;
    }
    o[i] = s;
}

extern "C" void run(const int* a, int* o, int n, int base) { digits<<<(n + 255) / 256, 256>>>(a, o, n, base); }
