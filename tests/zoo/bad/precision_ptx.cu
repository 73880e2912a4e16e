// Half precision hidden in inline PTX.
#include <cuda_runtime.h>
__global__ void sigmoid_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float t = -1.4426950408889634f * x[i];
  unsigned short h;
  asm("{ .reg .f16 a; cvt.rn.f16.f32 a, %1; ex2.approx.f16 a, a; mov.b16 %0, a; }" : "=h"(h) : "f"(t));
  float e;
  asm("{ .reg .f16 a; mov.b16 a, %1; cvt.f32.f16 %0, a; }" : "=f"(e) : "h"(h));
  y[i] = 1.0f / (1.0f + e);
}
extern "C" void sigmoid(const float* x, float* y, int n) {
  sigmoid_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
