// Mean of three neighbours; the ends stand in for what lies beyond them.
#include <cuda_runtime.h>
__global__ void blur_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (x[i > 0 ? i - 1 : 0] + x[i] + x[i + 1 < n ? i + 1 : n - 1]) / 3.0f;
}
extern "C" void blur(const float* __restrict__ x, float* __restrict__ y, int n) {
  blur_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
