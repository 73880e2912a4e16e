// One launch whose blocks take a ticket and wait for the block before.
#include <cuda_runtime.h>
__global__ void prefix_kernel(const float* x, float* y, unsigned* tickets, volatile unsigned* flags, volatile float* sums, int n) {
  __shared__ unsigned mine;
  __shared__ float tile[256], before;
  if (threadIdx.x == 0) mine = atomicAdd(tickets, 1);
  __syncthreads();
  int i = mine * 256 + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 256; ++k) tile[k] += tile[k - 1];
    before = 0.0f;
    if (mine > 0) {
      while (!flags[mine - 1]) {}
      __threadfence();
      before = sums[mine - 1];
    }
    sums[mine] = before + tile[255];
    __threadfence();
    flags[mine] = 1;
  }
  __syncthreads();
  if (i < n) y[i] = before + tile[threadIdx.x];
}
extern "C" void prefix(const float* __restrict__ x, float* __restrict__ y, int n) {
  int blocks = (n + 255) / 256;
  unsigned* room;
  cudaMallocAsync((void**)&room, (2 * blocks + 1) * sizeof(unsigned), 0);
  cudaMemsetAsync(room, 0, (2 * blocks + 1) * sizeof(unsigned), 0);
  prefix_kernel<<<blocks, 256>>>(x, y, room, room + 1, (float*)(room + 1 + blocks), n);
  cudaFreeAsync(room, 0);
}
