// Shared memory is read and written beyond its end.
#include <cuda_runtime.h>
__global__ void blur_kernel(const float* x, float* y, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x + 1] = x[i < n ? i : n - 1];
  if (threadIdx.x == 0) tile[0] = x[i > 0 ? (i < n ? i : n) - 1 : 0];
  if (threadIdx.x == 255) tile[257] = x[i + 1 < n ? i + 1 : n - 1];
  __syncthreads();
  if (i >= n) return;
  float right = i + 1 < n ? tile[threadIdx.x + 2] : x[n - 1];
  y[i] = (tile[threadIdx.x] + tile[threadIdx.x + 1] + right) / 3.0f;
}
extern "C" void blur(const float* __restrict__ x, float* __restrict__ y, int n) {
  blur_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
