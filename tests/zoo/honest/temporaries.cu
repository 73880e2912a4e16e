// Partial sums in memory that is taken and given back in the stream.
#include <cuda_runtime.h>
__global__ void parts_kernel(const float* x, float* parts, int cols, int pieces) {
  __shared__ float mine[128];
  int row = blockIdx.y, c = blockIdx.x * 128 + threadIdx.x;
  mine[threadIdx.x] = c < cols ? x[(size_t)row * cols + c] : 0.0f;
  for (int k = 64; k; k /= 2) {
    __syncthreads();
    if (threadIdx.x < k) mine[threadIdx.x] += mine[threadIdx.x + k];
  }
  if (threadIdx.x == 0) parts[row * pieces + blockIdx.x] = mine[0];
}
__global__ void sum_kernel(const float* parts, float* sums, int rows, int pieces) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = 0; k < pieces; ++k) sum += parts[row * pieces + k];
  sums[row] = sum;
}
extern "C" void rowsum(const float* x, float* sums, int rows, int cols) {
  int pieces = (cols + 127) / 128;
  float* parts;
  cudaMallocAsync((void**)&parts, (size_t)rows * pieces * sizeof(float), 0);
  parts_kernel<<<dim3(pieces, rows), 128>>>(x, parts, cols, pieces);
  sum_kernel<<<(rows + 127) / 128, 128>>>(parts, sums, rows, pieces);
  cudaFreeAsync(parts, 0);
}
