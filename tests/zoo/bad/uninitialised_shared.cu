// Shared memory that was never cleared is added up.
#include <cuda_runtime.h>
__global__ void rowsum_kernel(const float* x, float* sums, int rows, int cols) {
  __shared__ float parts[128];
  for (int c = threadIdx.x; c < cols; c += 128) parts[threadIdx.x] += x[(size_t)blockIdx.x * cols + c];
  __syncthreads();
  if (threadIdx.x) return;
  float sum = 0.0f;
  for (int k = 0; k < 128; ++k) sum += parts[k];
  sums[blockIdx.x] = sum;
}
extern "C" void rowsum(const float* x, float* sums, int rows, int cols) {
  rowsum_kernel<<<rows, 128>>>(x, sums, rows, cols);
}
