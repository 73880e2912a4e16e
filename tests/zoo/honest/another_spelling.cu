// Fused multiply-add, a grid of fixed size that strides.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += gridDim.x * blockDim.x) y[i] = fmaf(2.0f, x[i], 1.0f);
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<8, 128>>>(x, y, n);
}
