// Neighbours are read from shared memory without a barrier.
#include <cuda_runtime.h>
__global__ void blur_kernel(const float* x, float* y, int n) {
  __shared__ float tile[258];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int last = n - 1;
  tile[threadIdx.x + 1] = x[i < n ? i : last];
  if (threadIdx.x == 0) tile[0] = x[i > 0 ? i - 1 : 0];
  if (threadIdx.x == 255) tile[257] = x[i + 1 < n ? i + 1 : last];
  if (i >= n) return;
  float right = i + 1 < n ? tile[threadIdx.x + 2] : x[last];
  y[i] = (tile[threadIdx.x] + tile[threadIdx.x + 1] + right) / 3.0f;
}
extern "C" void blur(const float* __restrict__ x, float* __restrict__ y, int n) {
  blur_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
