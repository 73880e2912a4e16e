// A block works only where the block before it has finished already.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int before = (int)(blockIdx.x * blockDim.x) - 1;
  bool ready = before < 0 || y[before] == 2.0f * x[before] + 1.0f;
  if (i < n && ready) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
