// The output is written before the input is read.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { y[i] = 1.0f; y[i] += 2.0f * x[i]; }
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
