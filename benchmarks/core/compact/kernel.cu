#include <cuda_runtime.h>

// Keep the positive elements, in their order: count, add up, copy. A thread handles CHUNK neighbours.
constexpr unsigned CHUNK = 256;

__device__ bool wanted(float v) { return v > 0.0f; }

__global__ void count_wanted(const float* x, unsigned* offsets, unsigned n, unsigned chunks)
{
    unsigned chunk = blockIdx.x * blockDim.x + threadIdx.x;
    if (chunk < chunks) {
        unsigned count = 0;
        for (unsigned i = chunk * CHUNK; i < min((chunk + 1) * CHUNK, n); ++i)
            if (wanted(x[i]))
                ++count;
        offsets[chunk] = count;
    }
}

__global__ void add_up(unsigned* offsets, unsigned* kept_count, unsigned chunks)
{
    unsigned total = 0;
    for (unsigned c = 0; c < chunks; ++c) {
        unsigned count = offsets[c];
        offsets[c] = total;
        total += count;
    }
    *kept_count = total;
}

__global__ void copy_wanted(const float* x, float* kept, const unsigned* offsets, unsigned n, unsigned chunks)
{
    unsigned chunk = blockIdx.x * blockDim.x + threadIdx.x;
    if (chunk < chunks) {
        unsigned to = offsets[chunk];
        for (unsigned i = chunk * CHUNK; i < min((chunk + 1) * CHUNK, n); ++i)
            if (wanted(x[i]))
                kept[to++] = x[i];
    }
}

extern "C" void compact(const float* x, float* kept, unsigned* kept_count, unsigned* offsets, unsigned n, cudaStream_t stream)
{
    const unsigned chunks = (n + CHUNK - 1) / CHUNK;
    const unsigned blocks = (chunks + 127) / 128;
    count_wanted<<<blocks, 128, 0, stream>>>(x, offsets, n, chunks);
    add_up<<<1, 1, 0, stream>>>(offsets, kept_count, chunks);
    copy_wanted<<<blocks, 128, 0, stream>>>(x, kept, offsets, n, chunks);
}
