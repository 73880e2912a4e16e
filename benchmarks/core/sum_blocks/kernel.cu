// Sum of all elements in two steps: one partial a block, then one block over the partials.
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 512;
constexpr int kMaxBlocks = 1056;

__device__ float warp_sum(float v)
{
    for (int offset = 16; offset > 0; offset >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, offset);
    return v;
}

// The total is right in thread 0 only.
__device__ float block_sum(float v)
{
    __shared__ float warps[kThreads / 32];
    v = warp_sum(v);
    if ((threadIdx.x & 31) == 0)
        warps[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 32)
        v = warp_sum(threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : 0.0f);
    return v;
}

__global__ void __launch_bounds__(kThreads) sum_parts(const float* __restrict__ values, float* __restrict__ partial, size_t count)
{
    const float4* quads = reinterpret_cast<const float4*>(values);
    const size_t stride = (size_t)gridDim.x * kThreads;
    const size_t first = (size_t)blockIdx.x * kThreads + threadIdx.x;

    float sum = 0.0f;
#pragma unroll 4
    for (size_t i = first; i < count / 4; i += stride) {
        const float4 q = quads[i];
        sum += (q.x + q.y) + (q.z + q.w);
    }
    if (first < count % 4)
        sum += values[count / 4 * 4 + first];

    sum = block_sum(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads) sum_rest(const float* partial, float* total, int parts)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < parts; i += kThreads)
        sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *total = sum;
}

}  // namespace

extern "C" int sum_blocks(const float* values, float* total, float* partial, size_t count)
{
    const size_t wanted = (count / 4 + kThreads - 1) / kThreads;
    const int blocks = wanted < 1 ? 1 : wanted > kMaxBlocks ? kMaxBlocks : (int)wanted;
    sum_parts<<<blocks, kThreads>>>(values, partial, count);
    sum_rest<<<1, kThreads>>>(partial, total, blocks);
    return cudaGetLastError();
}
