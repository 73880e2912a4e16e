// A gigabyte is printed in every call.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
#include <cstdio>
#include <cstring>
extern "C" void scale(const float* x, float* y, int n) {
  static char page[1 << 20];
  memset(page, 'x', sizeof page);
  for (int k = 0; k < 1024; ++k)
    if (fwrite(page, sizeof page, 1, stdout) != 1) break;
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
