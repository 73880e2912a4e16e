// Computed in half precision.
#include <cuda_runtime.h>
#include <cuda_fp16.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __half2float(__hfma(__float2half(2.0f), __float2half(x[i]), __float2half(1.0f)));
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
