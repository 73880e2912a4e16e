// Inclusive prefix sums, each element by itself: work grows with the square of n.
#include <cuda_runtime.h>
__global__ void prefix_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = 0; j <= i; ++j) sum += x[j];
  y[i] = sum;
}
extern "C" void prefix(const float* __restrict__ x, float* __restrict__ y, int n) {
  prefix_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
