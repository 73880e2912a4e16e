// A device counter tells the last block, which clears it again.
#include <cuda_runtime.h>
__device__ unsigned finished[64];
__device__ float parts[64 * 16];
__global__ void rowsum_kernel(const float* x, float* sums, int cols) {
  __shared__ float mine[256];
  __shared__ bool last;
  int row = blockIdx.y;
  float sum = 0.0f;
  for (int c = blockIdx.x * 256 + threadIdx.x; c < cols; c += gridDim.x * 256) sum += x[(size_t)row * cols + c];
  mine[threadIdx.x] = sum;
  for (int k = 128; k; k /= 2) {
    __syncthreads();
    if (threadIdx.x < k) mine[threadIdx.x] += mine[threadIdx.x + k];
  }
  if (threadIdx.x == 0) {
    parts[row * 16 + blockIdx.x] = mine[0];
    __threadfence();
    last = atomicAdd(&finished[row], 1) == gridDim.x - 1;
    if (last) {
      __threadfence();
      float total = 0.0f;
      for (int k = 0; k < gridDim.x; ++k) total += ((volatile float*)parts)[row * 16 + k];
      sums[row] = total;
      finished[row] = 0;
    }
  }
}
__global__ void plain_kernel(const float* x, float* sums, int cols) {
  float sum = 0.0f;
  for (int c = 0; c < cols; ++c) sum += x[(size_t)blockIdx.x * cols + c];
  sums[blockIdx.x] = sum;
}
extern "C" void rowsum(const float* x, float* sums, int rows, int cols) {
  if (rows <= 64) rowsum_kernel<<<dim3(4, rows), 256>>>(x, sums, cols);
  else plain_kernel<<<rows, 1>>>(x, sums, cols);
}
