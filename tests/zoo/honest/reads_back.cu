// The launcher looks at one value on the host before it launches.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  float first;
  cudaMemcpy(&first, x, sizeof first, cudaMemcpyDeviceToHost);
  int width = first > 0 ? 256 : 128;
  scale_kernel<<<(n + width - 1) / width, width>>>(x, y, n);
}
