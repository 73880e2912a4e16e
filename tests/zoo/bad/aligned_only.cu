// Four elements at once wherever n allows, whatever the pointers.
#include <cuda_runtime.h>
__global__ void by_four(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  y[i] = make_float4(2 * v.x + 1, 2 * v.y + 1, 2 * v.z + 1, 2 * v.w + 1);
}
__global__ void by_one(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  if (n % 4 == 0) by_four<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4);
  else by_one<<<(n + 255) / 256, 256>>>(x, y, n);
}
