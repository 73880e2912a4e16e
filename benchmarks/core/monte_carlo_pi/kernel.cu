#include <cuda_runtime.h>
#include <cstdint>

// Count the random points of a square that fall into the quarter circle; pi is about 4 * hits / (threads * trials).

constexpr int kBlock = 256;

__device__ uint32_t xorshift(uint32_t& s)
{
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    return s;
}

__global__ void throw_darts(unsigned long long* hits, uint32_t seed, int threads, int trials)
{
    const int id = blockIdx.x * kBlock + threadIdx.x;
    if (id >= threads)
        return;

    uint32_t state = (id + 1) * 2654435761u ^ seed;
    if (state == 0)
        state = 1;
    for (int t = 0; t < trials; ++t) {
        const uint32_t r = xorshift(state);
        const uint32_t x = r >> 17;
        const uint32_t y = (r >> 2) & 0x7fff;
        if (x * x + y * y < (1u << 30))
            atomicAdd(hits, 1ull);
    }
}

extern "C" int monte_carlo_pi(unsigned long long* hits, uint32_t seed, int threads, int trials)
{
    cudaError_t error = cudaMemsetAsync(hits, 0, sizeof(*hits));
    if (error != cudaSuccess)
        return error;
    throw_darts<<<(threads + kBlock - 1) / kBlock, kBlock>>>(hits, seed, threads, trials);
    return cudaGetLastError();
}
