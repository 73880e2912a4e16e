// 100 KB of dynamic shared memory, consented to once.
#include <cuda_runtime.h>
__global__ void rowsum_kernel(const float* x, float* sums, int rows, int cols) {
  extern __shared__ float kept[];
  int row = blockIdx.x;
  float sum = 0.0f;
  for (int from = 0; from < cols; from += 25600) {
    int count = min(25600, cols - from);
    for (int c = threadIdx.x; c < count; c += 128) kept[c] = x[(size_t)row * cols + from + c];
    __syncthreads();
    for (int c = threadIdx.x; c < count; c += 128) sum += kept[c];
    __syncthreads();
  }
  kept[threadIdx.x] = sum;
  for (int k = 64; k; k /= 2) {
    __syncthreads();
    if (threadIdx.x < k) kept[threadIdx.x] += kept[threadIdx.x + k];
  }
  if (threadIdx.x == 0) sums[row] = kept[0];
}
extern "C" void rowsum(const float* x, float* sums, int rows, int cols) {
  static bool consented;
  if (!consented) cudaFuncSetAttribute(rowsum_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 102400);
  consented = true;
  rowsum_kernel<<<rows, 128, 102400>>>(x, sums, rows, cols);
}
