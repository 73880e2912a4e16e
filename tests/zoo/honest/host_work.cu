// The host sorts, builds text and fills pinned memory anew in every call, and lets go of all of it.
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>
__global__ void scale_kernel(const float* x, float* y, int n, int first) {
  int i = first + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void scale(const float* x, float* y, int n) {
  const int part = 1 << 16;
  std::vector<int> starts;
  for (int start = 0; start < n; start += part) starts.push_back(start);
  std::sort(starts.rbegin(), starts.rend());
  int* held = nullptr;
  cudaMallocHost(reinterpret_cast<void**>(&held), starts.size() * sizeof(int));
  std::copy(starts.begin(), starts.end(), held);
  std::ostringstream told;
  told << starts.size() << " parts";
  char line[64];
  snprintf(line, sizeof line, "%s of %d", told.str().c_str(), part);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int size = std::min(part, n - held[i]);
    scale_kernel<<<(size + 255) / 256, 256>>>(x, y, n, held[i]);
  }
  cudaFreeHost(held);
}
