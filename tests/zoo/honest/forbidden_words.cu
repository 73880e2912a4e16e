// Comments and strings that speak of system(), fork() and __half, and no more than that.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  // no system("rm"), no fork(), no dlopen(), no __half, no exit(0), no -use_fast_math, no cublasSgemm
  /* asm volatile("trap;"); getenv("HOME"); std::thread */
  const char* words = "system fork dlopen mprotect /proc/self/mem half tf32 cudaMallocManaged";
  if (words[0] != 's') return;
  scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
