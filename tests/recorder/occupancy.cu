// Asks for occupancies and tells the answers by the size of its grids.
#include <cuda_runtime.h>

__global__ void plain(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
__global__ void with_shared(float* x, int n) {
  __shared__ float t[1024];
  extern __shared__ float s[];
  t[threadIdx.x] = 1;
  s[threadIdx.x] = x[0];
  __syncthreads();
  x[1] = s[0] + t[3];
}
__global__ void with_registers(float* x, int n) {
  float a[120];
  for (int i = 0; i < 120; i++) a[i] = x[i];
  for (int r = 0; r < n; r++)
    for (int i = 0; i < 120; i++) a[i] = a[i] * a[(i + 1) % 120] + x[r + i];
  for (int i = 0; i < 120; i++) x[i] = a[i];
}

extern "C" void occupancies(const float* x, float* y, int n) {
  int each = 0;
  const int threads[] = {32, 128, 256, 1024};
  const size_t shared[] = {0, 20000, 48000};
  for (int t : threads)
    for (size_t s : shared) {
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, plain, t, s);
      plain<<<each + 1, 32>>>(y, n);
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, with_shared, t, s);
      plain<<<each + 1, 32>>>(y, n);
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, with_registers, t, s);
      plain<<<each + 1, 32>>>(y, n);
    }
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, plain, 2048, 0);
  plain<<<each + 1, 32>>>(y, n);
  size_t bytes = 0;
  cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, 2, 256);
  plain<<<static_cast<unsigned>(bytes), 32>>>(y, n);
}

extern "C" void device_facts(const float* x, float* y, int n) {
  const cudaDeviceAttr asked[] = {cudaDevAttrMultiProcessorCount, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                  cudaDevAttrMaxSharedMemoryPerMultiprocessor, cudaDevAttrMaxThreadsPerMultiProcessor,
                                  cudaDevAttrMaxBlocksPerMultiprocessor, cudaDevAttrL2CacheSize,
                                  cudaDevAttrMaxPersistingL2CacheSize, cudaDevAttrComputeCapabilityMajor};
  for (cudaDeviceAttr attribute : asked) {
    int value = 0;
    cudaDeviceGetAttribute(&value, attribute, 0);
    plain<<<value, 32>>>(y, n);
  }
}
