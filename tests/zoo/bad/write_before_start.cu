// The element before the first is written.
#include <cuda_runtime.h>
__global__ void blur_kernel(const float* x, float* y, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x) - 1;
  if (i < n) y[i] = i < 0 ? 0.0f : (x[i > 0 ? i - 1 : 0] + x[i] + x[i + 1 < n ? i + 1 : n - 1]) / 3.0f;
}
extern "C" void blur(const float* __restrict__ x, float* __restrict__ y, int n) {
  blur_kernel<<<n / 256 + 1, 256>>>(x, y, n);
}
