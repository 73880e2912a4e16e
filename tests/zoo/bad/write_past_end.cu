// One element past the end is written, inside the guard band.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = i < n ? 2.0f * x[i] + 1.0f : 0.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<n / 256 + 1, 256>>>(x, y, n);
}
