// Something is written 16 MB behind the output, beyond any guard band.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) y[n + (4 << 20)] = 0.0f;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
