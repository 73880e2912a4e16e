#include <cuda_runtime.h>
#include <stdint.h>
#include <math.h>

// Cross entropy of each sample: log(sum(exp(logits))) - logits[target]

#define CE_LOG2E 1.4426950408889634f

// exp(x - m) for x <= m, by the standard exp2f
__device__ __forceinline__ float ce_exp(float x, float m)
{
    return exp2f((x - m) * CE_LOG2E);
}

__device__ __forceinline__ float ce_warp_max(float m)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
    }
    return m;
}

__device__ __forceinline__ double ce_warp_sum(double s)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        s += __shfl_xor_sync(0xffffffffu, s, o);
    }
    return s;
}

// A base that is never -inf, so that (-inf) - base stays -inf
__device__ __forceinline__ float ce_base(float m)
{
    return m == -INFINITY ? 0.0f : m;
}

// m and s are the maximum and the sum of the calling warp, the same in all its lanes.
// xt is the logit of the target, needed in thread 0 only.
template <int W>
__device__ __forceinline__ void ce_finish(float m, double s, float xt, float* out)
{
    if (W > 1) {
        __shared__ float wm[W];
        __shared__ double ws[W];
        const int lane = threadIdx.x & 31;
        const int warp = threadIdx.x >> 5;
        if (lane == 0) {
            wm[warp] = m;
            ws[warp] = s;
        }
        __syncthreads();
        if (warp != 0) {
            return;
        }
        const float mine = lane < W ? wm[lane] : -INFINITY;
        const double part = lane < W ? ws[lane] : 0.0;
        m = ce_warp_max(mine);
        s = ce_warp_sum(part * (double)ce_exp(mine, ce_base(m)));
    }
    if (threadIdx.x == 0) {
        // m - m is 0, or NaN where the maximum is infinite, as exp(m - m) was before
        s += (double)(m - m);
        *out = (float)(log(s) + (double)m - (double)xt);
    }
}

// One block a row, the whole row in registers: V <= 4 * T * K
template <int T, int K, int MINB>
__global__ void __launch_bounds__(T, MINB)
cross_entropy_fwd(const float* logits, const int64_t* targets, float* losses, int V)
{
    const int64_t row = blockIdx.x;
    const float* p = logits + row * (int64_t)V;
    const int tid = threadIdx.x;

    int head = (int)(((16u - ((unsigned)(uintptr_t)p & 15u)) & 15u) >> 2);
    head = head < V ? head : V;
    const int n4 = (V - head) >> 2;
    const int done = head + (n4 << 2);
    const int tail = V - done;
    const float4* q = reinterpret_cast<const float4*>(p + head) + tid;

    int64_t target = 0;
    if (tid == 0) {
        target = targets[row];
    }

    float4 x[K];
    if (n4 == T * K) {
#pragma unroll
        for (int k = 0; k < K; k++) {
            x[k] = __ldcs(q + k * T);
        }
    } else {
#pragma unroll
        for (int k = 0; k < K; k++) {
            x[k] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
            if (tid + k * T < n4) {
                x[k] = __ldcs(q + k * T);
            }
        }
    }
    float e = -INFINITY;
    if (tid < head) {
        e = __ldcs(p + tid);
    } else if (tid >= 4 && tid - 4 < tail) {
        e = __ldcs(p + done + (tid - 4));
    }
    float xt = 0.0f;
    if (tid == 0) {
        xt = p[target];
    }

    float m = -INFINITY;
#pragma unroll
    for (int k = 0; k < K; k++) {
        m = fmaxf(m, fmaxf(fmaxf(x[k].x, x[k].y), fmaxf(x[k].z, x[k].w)));
    }
    m = ce_warp_max(fmaxf(m, e));
    const float base = ce_base(m);

    constexpr int G = K < 4 ? K : 4;
    double s = (double)ce_exp(e, base);
#pragma unroll
    for (int k = 0; k < K; k += G) {
        float g = 0.0f;
#pragma unroll
        for (int j = 0; j < G; j++) {
            g += (ce_exp(x[k + j].x, base) + ce_exp(x[k + j].y, base))
               + (ce_exp(x[k + j].z, base) + ce_exp(x[k + j].w, base));
        }
        s += (double)g;
    }
    s = ce_warp_sum(s);
    ce_finish<T / 32>(m, s, xt, losses + row);
}

// Any length: one block a row, streamed with an online maximum
template <int T>
__global__ void __launch_bounds__(T)
cross_entropy_stream(const float* logits, const int64_t* targets, float* losses, int V)
{
    const int64_t row = blockIdx.x;
    const float* p = logits + row * (int64_t)V;
    const int tid = threadIdx.x;

    int head = (int)(((16u - ((unsigned)(uintptr_t)p & 15u)) & 15u) >> 2);
    head = head < V ? head : V;
    const int n4 = (V - head) >> 2;
    const int done = head + (n4 << 2);
    const int tail = V - done;
    const float4* q = reinterpret_cast<const float4*>(p + head);

    float xt = 0.0f;
    if (tid == 0) {
        xt = p[targets[row]];
    }
    float m = -INFINITY;
    if (tid < head) {
        m = p[tid];
    } else if (tid >= 4 && tid - 4 < tail) {
        m = p[done + (tid - 4)];
    }
    // NaN must reach the sum and must not become the maximum
    double s = (double)ce_exp(m, ce_base(m));
    m = fmaxf(m, -INFINITY);

    constexpr int U = 4;
    for (int64_t i0 = 0; i0 < n4; i0 += U * T) {
        float4 x[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int64_t i = i0 + u * T + tid;
            x[u] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
            if (i < n4) {
                x[u] = __ldcs(q + i);
            }
        }
        float c = m;
#pragma unroll
        for (int u = 0; u < U; u++) {
            c = fmaxf(c, fmaxf(fmaxf(x[u].x, x[u].y), fmaxf(x[u].z, x[u].w)));
        }
        if (c > m) {
            s *= (double)ce_exp(m, c);
            m = c;
        }
        const float base = ce_base(m);
        float g = 0.0f;
#pragma unroll
        for (int u = 0; u < U; u++) {
            g += (ce_exp(x[u].x, base) + ce_exp(x[u].y, base))
               + (ce_exp(x[u].z, base) + ce_exp(x[u].w, base));
        }
        s += (double)g;
    }
    const float w = ce_warp_max(m);
    s = ce_warp_sum(s * (double)ce_exp(m, ce_base(w)));
    ce_finish<T / 32>(w, s, xt, losses + row);
}

// No classes at all: log(0) and an empty maximum
__global__ void cross_entropy_empty(float* losses, int B)
{
    const int64_t b = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (b < B) {
        losses[b] = -INFINITY;
    }
}

static void ce_launch(const float* logits, const int64_t* targets, float* losses, int B, int V)
{
    const unsigned grid = (unsigned)B;
    if (V <= 128) {
        cross_entropy_fwd<32, 1, 32><<<grid, 32>>>(logits, targets, losses, V);
    } else if (V <= 256) {
        cross_entropy_fwd<32, 2, 32><<<grid, 32>>>(logits, targets, losses, V);
    } else if (V <= 512) {
        cross_entropy_fwd<32, 4, 32><<<grid, 32>>>(logits, targets, losses, V);
    } else if (V <= 1024) {
        cross_entropy_fwd<32, 8, 32><<<grid, 32>>>(logits, targets, losses, V);
    } else if (V <= 2048) {
        cross_entropy_fwd<64, 8, 16><<<grid, 64>>>(logits, targets, losses, V);
    } else if (V <= 4096) {
        cross_entropy_fwd<128, 8, 8><<<grid, 128>>>(logits, targets, losses, V);
    } else if (V <= 8192) {
        cross_entropy_fwd<256, 8, 4><<<grid, 256>>>(logits, targets, losses, V);
    } else if (V <= 16384) {
        cross_entropy_fwd<256, 16, 3><<<grid, 256>>>(logits, targets, losses, V);
    } else {
        cross_entropy_stream<512><<<grid, 512>>>(logits, targets, losses, V);
    }
}

// Work space for overlapping arrays: allocated once, kept, grown on demand
static float* ce_space(size_t bytes)
{
    static float* space = nullptr;
    static size_t held = 0;
    static int owner = -1;
    int device = 0;
    cudaGetDevice(&device);
    if (space == nullptr || held < bytes || owner != device) {
        if (space != nullptr) {
            cudaFree(space);
            space = nullptr;
            held = 0;
        }
        void* fresh = nullptr;
        if (cudaMalloc(&fresh, bytes) != cudaSuccess) {
            return nullptr;
        }
        space = static_cast<float*>(fresh);
        held = bytes;
        owner = device;
    }
    return space;
}

static bool ce_overlap(const void* a, size_t na, const void* b, size_t nb)
{
    const uintptr_t x = reinterpret_cast<uintptr_t>(a);
    const uintptr_t y = reinterpret_cast<uintptr_t>(b);
    return x < y + nb && y < x + na;
}

extern "C" void cross_entropy(const float* logits, const int64_t* targets, float* losses, int B, int V)
{
    if (B <= 0) {
        return;
    }
    if (V <= 0) {
        cross_entropy_empty<<<(unsigned)(((int64_t)B + 255) / 256), 256>>>(losses, B);
        return;
    }
    const size_t out_bytes = (size_t)B * sizeof(float);
    const bool shared_memory_range =
        ce_overlap(losses, out_bytes, logits, (size_t)B * (size_t)V * sizeof(float))
        || ce_overlap(losses, out_bytes, targets, (size_t)B * sizeof(int64_t));
    if (shared_memory_range) {
        float* space = ce_space(out_bytes);
        if (space != nullptr) {
            ce_launch(logits, targets, space, B, V);
            cudaMemcpyAsync(losses, space, out_bytes, cudaMemcpyDeviceToDevice, 0);
            return;
        }
    }
    ce_launch(logits, targets, losses, B, V);
}
