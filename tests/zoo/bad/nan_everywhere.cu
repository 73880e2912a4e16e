// Every element is NaN.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __int_as_float(0x7fffffff) + x[i];
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
