// A histogram in shared memory in which nearly all values fall into one bin.
#include <cuda_runtime.h>

__global__ void bins(const int* a, int* o, int n) {
    __shared__ int own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    int start = blockIdx.x * 8192, end = min(start + 8192, n);
    for (int i = start + threadIdx.x; i < end; i += blockDim.x) atomicAdd(&own[a[i] & 63], a[i]);
    __syncthreads();
    if (threadIdx.x < 64) o[blockIdx.x * 64 + threadIdx.x] = own[threadIdx.x];
}

extern "C" void run(const int* a, int* o, int n) { bins<<<(n + 8191) / 8192, 256>>>(a, o, n); }
