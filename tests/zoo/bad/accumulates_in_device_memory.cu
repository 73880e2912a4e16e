// Counts are kept in device memory and never cleared.
#include <cuda_runtime.h>
__device__ int kept[64];
__global__ void histogram_kernel(const int* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&kept[data[i]], 1);
}
__global__ void give(int* counts) { counts[threadIdx.x] = kept[threadIdx.x]; }
extern "C" void histogram(const int* data, int* counts, int n) {
  histogram_kernel<<<(n + 255) / 256, 256>>>(data, n);
  give<<<1, 64>>>(counts);
}
