// Partial sums are kept in the input.
#include <cuda_runtime.h>
__global__ void prefix_kernel(float* x, float* y, int n) {
  float sum = 0.0f;
  for (int j = 0; j < n; ++j) x[j] = sum += x[j];
  for (int j = 0; j < n; ++j) y[j] = x[j];
}
extern "C" void prefix(const float* __restrict__ x, float* __restrict__ y, int n) {
  prefix_kernel<<<1, 1>>>((float*)x, y, n);
}
