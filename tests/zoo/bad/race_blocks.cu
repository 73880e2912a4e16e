// A block reads what the block before it wrote, and does not wait for it.
#include <cuda_runtime.h>
__global__ void prefix_kernel(const float* x, float* y, int n) {
  if (threadIdx.x) return;
  int from = blockIdx.x * 256;
  float sum = from ? y[from - 1] : 0.0f;
  for (int j = from; j < from + 256 && j < n; ++j) y[j] = sum += x[j];
}
extern "C" void prefix(const float* __restrict__ x, float* __restrict__ y, int n) {
  prefix_kernel<<<(n + 255) / 256, 32>>>(x, y, n);
}
