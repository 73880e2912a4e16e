// A barrier after every step of little work.
#include <cuda_runtime.h>

__global__ void relax(const float* a, float* o, int n, int turns) {
    __shared__ float row[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    row[t] = i < n ? a[i] : 0;
    for (int k = 0; k < turns; k++) {
        __syncthreads();
        float other = row[(t + 1) & 1023];
        __syncthreads();
        row[t] = 0.5f * (row[t] + other);
    }
    if (i < n) o[i] = row[t];
}

extern "C" void run(const float* a, float* o, int n, int turns) {
    relax<<<(n + 1023) / 1024, 1024>>>(a, o, n, turns);
}
