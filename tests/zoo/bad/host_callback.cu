// A host function in the stream launches the work.
#include <cuda_runtime.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
struct Work { const float* x; float* y; int n; };
static void later(void* p) {
  Work* w = (Work*)p;
  scale_kernel<<<(w->n + 255) / 256, 256>>>(w->x, w->y, w->n);
}
extern "C" void scale(const float* x, float* y, int n) {
  static Work work;
  work = {x, y, n};
  cudaLaunchHostFunc(0, later, &work);
}
