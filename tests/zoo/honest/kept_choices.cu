// What was worked out for a size is kept in a table of the library and found again by later calls.
#include <cuda_runtime.h>
#include <string>
#include <unordered_map>
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
struct Choice {
  int blocks, threads;
  std::string name;
};
extern "C" void scale(const float* x, float* y, int n) {
  static std::unordered_map<int, Choice>* known = new std::unordered_map<int, Choice>();
  auto found = known->find(n);
  if (found == known->end()) {
    const int threads = n < 1000 ? 128 : 256;
    found = known->emplace(n, Choice{(n + threads - 1) / threads, threads, "scale of " + std::to_string(n)}).first;
  }
  const Choice& choice = found->second;
  scale_kernel<<<choice.blocks, choice.threads>>>(x, y, n);
}
