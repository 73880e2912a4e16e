// Blocks add to one element without atomics.
#include <cuda_runtime.h>
__global__ void rowsum_kernel(const float* x, float* sums, int rows, int cols) {
  int row = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  float v = c < cols ? x[(size_t)row * cols + c] : 0.0f;
  for (int k = 16; k; k /= 2) v += __shfl_down_sync(0xffffffffu, v, k);
  if (threadIdx.x == 0) sums[row] += v;
}
extern "C" void rowsum(const float* x, float* sums, int rows, int cols) {
  cudaMemset(sums, 0, rows * sizeof(float));
  rowsum_kernel<<<dim3((cols + 31) / 32, rows), 32>>>(x, sums, rows, cols);
}
