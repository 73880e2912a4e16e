// A table in shared memory, read so that all 32 lanes meet in every bank that is used.
#include <cuda_runtime.h>

__global__ void lookups(const float* a, float* o, int n, int turns) {
    __shared__ float table[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    for (int t = threadIdx.x; t < 1024; t += blockDim.x) table[t] = a[t];
    __syncthreads();
    float s = 0;
#pragma unroll 8
    for (int k = 0; k < turns; k++) s += table[(32 * lane + k) & 1023];
    if (i < n) o[i] = s * a[i];
}

extern "C" void run(const float* a, float* o, int n, int turns) {
    lookups<<<(n + 255) / 256, 256>>>(a, o, n, turns);
}
