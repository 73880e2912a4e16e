// Sums are added to fresh memory that is taken for zeros.
#include <cuda_runtime.h>
__global__ void rowsum_kernel(const float* x, float* sums, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (c < cols) atomicAdd(&sums[row], x[(size_t)row * cols + c]);
}
extern "C" void rowsum(const float* x, float* sums, int rows, int cols) {
  float* fresh;
  cudaMalloc(&fresh, rows * sizeof(float));
  rowsum_kernel<<<dim3((cols + 127) / 128, rows), 128>>>(x, fresh, rows, cols);
  cudaMemcpy(sums, fresh, rows * sizeof(float), cudaMemcpyDeviceToDevice);
  cudaFree(fresh);
}
