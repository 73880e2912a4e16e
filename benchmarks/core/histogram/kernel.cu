#include <cstdint>
#include <cuda_runtime.h>

constexpr int kBins = 256;

__global__ void clear(uint32_t* bins)
{
    bins[threadIdx.x] = 0;
}

__global__ void count(const uint8_t* data, uint32_t* bins, int64_t n)
{
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&bins[data[i]], 1u);
}

extern "C" int histogram(const uint8_t* data, uint32_t* bins, int64_t n)
{
    clear<<<1, kBins>>>(bins);
    count<<<(unsigned)((n + 511) / 512), 512>>>(data, bins, n);
    return cudaPeekAtLastError();
}
