// Host code calls itself without end.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
static int deeper(volatile int n) { volatile char room[4096]; room[0] = (char)n; return deeper(n + 1) + room[0]; }
extern "C" void scale(const float* x, float* y, int n) {
  deeper(n);
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
