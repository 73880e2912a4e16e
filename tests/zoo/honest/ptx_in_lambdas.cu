// Copies to shared memory that are inline PTX, begun by a lambda of the kernel and awaited behind it.
#include <cuda_runtime.h>
template <int kStages>
__global__ void scale_kernel(const float* x, float* y, int n) {
  __shared__ float ring[kStages][128];
  const int first = blockIdx.x * 128 * kStages + threadIdx.x;
  auto fetch = [&](int stage) {
    const int i = first + stage * 128;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&ring[stage][threadIdx.x]));
    const int bytes = i < n ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(i < n ? x + i : x), "r"(bytes));
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int stage = 0; stage < kStages; ++stage) fetch(stage);
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  for (int stage = 0; stage < kStages; ++stage) {
    const int i = first + stage * 128;
    if (i < n) y[i] = fmaf(ring[stage][threadIdx.x], 2.0f, 1.0f);
  }
}
extern "C" void scale(const float* x, float* y, int n) {
  if (n > 0) scale_kernel<4><<<(n + 511) / 512, 128>>>(x, y, n);
}
