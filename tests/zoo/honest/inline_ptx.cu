// The arithmetic is inline PTX.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float r;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x[i]), "f"(2.0f), "f"(1.0f));
  y[i] = r;
}
extern "C" void scale(const float* x, float* y, int n) {
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
