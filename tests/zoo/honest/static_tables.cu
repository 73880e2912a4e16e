// Static const tables on both sides, and a constant one in the device.
#include <cuda_runtime.h>
__constant__ float coefficients[2] = {1.0f, 2.0f};
__device__ const float spare[4] = {0.5f, 1.0f, 2.0f, 4.0f};
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = coefficients[1] * x[i] + spare[n < 0 ? 0 : 1];
}
static const int widths[] = {64, 128, 256, 512};
extern "C" void scale(const float* x, float* y, int n) {
  int width = widths[n > 512 ? 2 : 1];
  scale_kernel<<<(n + width - 1) / width, width>>>(x, y, n);
}
