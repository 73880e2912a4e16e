#include <cuda_runtime.h>
#include <stdint.h>

// out = (x - mean) / sqrt(var + eps) * gamma + beta, over the last dimension

#define LN_FULL 0xffffffffu

constexpr int LN_WARPS = 16;    // warps of a persistent block, a row each
constexpr int LN_STAGES = 3;    // rows under way for each warp
constexpr int LN_ROW4 = 256;    // float4 of the longest row of the ring: 4 KiB
constexpr int LN_K = LN_ROW4 / 32;
constexpr int LN_RING_BYTES = LN_WARPS * LN_STAGES * LN_ROW4 * 16;

__device__ __forceinline__ float ln_warp_sum(float s)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        s += __shfl_xor_sync(LN_FULL, s, o);
    }
    return s;
}

__device__ __forceinline__ void ln_bar_init(unsigned bar)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
}

__device__ __forceinline__ void ln_bar_wait(unsigned bar, unsigned phase)
{
    unsigned done = 0;
    while (done == 0) {
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
            "selp.u32 %0, 1, 0, p;\n\t"
            "}"
            : "=r"(done) : "r"(bar), "r"(phase) : "memory");
    }
}

__device__ __forceinline__ void ln_bulk_load(unsigned to, const float* from, unsigned bytes, unsigned bar)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"(to), "l"((unsigned long long)__cvta_generic_to_global(from)), "r"(bytes), "r"(bar) : "memory");
}

// 16-byte aligned arrays, C divisible by 4 and at most 4 * LN_ROW4; WHOLE: C is exactly that.
// out may be x itself, and else overlaps nothing.
template <bool WHOLE>
__global__ void __launch_bounds__(LN_WARPS * 32, 1)
layer_norm_fwd(float* out, const float* x, const float* gamma, const float* beta, int N, int C, float eps)
{
    extern __shared__ __align__(128) float4 ln_ring[];
    __shared__ __align__(8) unsigned long long bars[LN_WARPS * LN_STAGES];

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int n4 = C >> 2;
    const unsigned row_bytes = (unsigned)C * 4u;
    float4* ring = ln_ring + warp * (LN_STAGES * LN_ROW4);
    const unsigned ring_at = (unsigned)__cvta_generic_to_shared(ring);
    const unsigned bar_at = (unsigned)__cvta_generic_to_shared(bars + warp * LN_STAGES);

    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < LN_STAGES; i++) {
            ln_bar_init(bar_at + 8u * i);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();

    const int64_t step = (int64_t)gridDim.x * LN_WARPS;
    int64_t row = (int64_t)warp * gridDim.x + blockIdx.x;
    int64_t ask_row = row;
#pragma unroll
    for (int i = 0; i < LN_STAGES; i++) {
        if (ask_row < N) {
            if (lane == 0) {
                ln_bulk_load(ring_at + (unsigned)i * (LN_ROW4 * 16u), x + ask_row * (int64_t)C, row_bytes,
                             bar_at + 8u * i);
            }
            ask_row += step;
        }
    }
    __syncwarp();

    float4 g[LN_K];
    float4 b[LN_K];
#pragma unroll
    for (int k = 0; k < LN_K; k++) {
        const int i = k * 32 + lane;
        g[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        b[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (WHOLE || i < n4) {
            g[k] = __ldg(reinterpret_cast<const float4*>(gamma) + i);
            b[k] = __ldg(reinterpret_cast<const float4*>(beta) + i);
        }
    }

    int stage = 0;
    unsigned phase = 0;
    for (; row < N; row += step) {
        ln_bar_wait(bar_at + 8u * (unsigned)stage, phase);
        const float4* from = ring + stage * LN_ROW4 + lane;
        float4 v[LN_K];
        float s = 0.0f;
#pragma unroll
        for (int k = 0; k < LN_K; k++) {
            v[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (WHOLE || k * 32 + lane < n4) {
                v[k] = from[k * 32];
            }
        }
#pragma unroll
        for (int k = 0; k < LN_K; k++) {
            s += (v[k].x + v[k].y) + (v[k].z + v[k].w);
        }
        // The sum needs every value of every lane: the stage is free after it
        s = ln_warp_sum(s);
        __syncwarp();
        if (ask_row < N) {
            if (lane == 0) {
                ln_bulk_load(ring_at + (unsigned)stage * (LN_ROW4 * 16u), x + ask_row * (int64_t)C, row_bytes,
                             bar_at + 8u * (unsigned)stage);
            }
            ask_row += step;
        }
        stage++;
        if (stage == LN_STAGES) {
            stage = 0;
            phase ^= 1u;
        }

        const float mean = s / C;
        float q = 0.0f;
#pragma unroll
        for (int k = 0; k < LN_K; k++) {
            v[k].x -= mean;
            v[k].y -= mean;
            v[k].z -= mean;
            v[k].w -= mean;
            if (WHOLE || k * 32 + lane < n4) {
                q += (v[k].x * v[k].x + v[k].y * v[k].y) + (v[k].z * v[k].z + v[k].w * v[k].w);
            }
        }
        q = ln_warp_sum(q);
        const float var = q / C;
        const float rstd = 1.0f / sqrtf(var + eps);

        float4* to = reinterpret_cast<float4*>(out + row * (int64_t)C) + lane;
#pragma unroll
        for (int k = 0; k < LN_K; k++) {
            if (WHOLE || k * 32 + lane < n4) {
                float4 y;
                y.x = v[k].x * rstd * g[k].x + b[k].x;
                y.y = v[k].y * rstd * g[k].y + b[k].y;
                y.z = v[k].z * rstd * g[k].z + b[k].z;
                y.w = v[k].w * rstd * g[k].w + b[k].w;
                __stcs(to + k * 32, y);
            }
        }
    }
}

// Sum over the T threads of a block; place has a float for each warp
template <int T>
__device__ __forceinline__ float ln_block_sum(float s, float* place)
{
    s = ln_warp_sum(s);
    if (T > 32) {
        if ((threadIdx.x & 31) == 0) {
            place[threadIdx.x >> 5] = s;
        }
        __syncthreads();
        s = 0.0f;
#pragma unroll
        for (int i = 0; i < T / 32; i++) {
            s += place[i];
        }
    } else {
        __syncwarp();
    }
    return s;
}

// Any size and alignment: T threads a row. out may be x itself, and else overlaps nothing.
template <int T>
__global__ void __launch_bounds__(T)
layer_norm_general(float* out, const float* x, const float* gamma, const float* beta, int C, float eps)
{
    __shared__ float first[T / 32];
    __shared__ float second[T / 32];
    const int64_t start = (int64_t)blockIdx.x * C;
    const float* xr = x + start;
    float* yr = out + start;

    float s = 0.0f;
#pragma unroll 4
    for (int64_t c = threadIdx.x; c < C; c += T) {
        s += xr[c];
    }
    const float mean = ln_block_sum<T>(s, first) / C;

    float q = 0.0f;
#pragma unroll 4
    for (int64_t c = threadIdx.x; c < C; c += T) {
        const float d = xr[c] - mean;
        q += d * d;
    }
    const float var = ln_block_sum<T>(q, second) / C;

    const float rstd = 1.0f / sqrtf(var + eps);
    for (int64_t c = threadIdx.x; c < C; c += T) {
        yr[c] = (xr[c] - mean) * rstd * gamma[c] + beta[c];
    }
}

// Overlapping arrays: a thread a row, element by element
__global__ void layer_norm_serial(float* out, const float* x, const float* gamma, const float* beta, int N, int C, float eps)
{
    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= N) return;

    float mean = 0.0f;
    for (int c = 0; c < C; c++) {
        mean += x[n * C + c];
    }
    mean = mean / C;

    float var = 0.0f;
    for (int c = 0; c < C; c++) {
        float d = x[n * C + c] - mean;
        var += d * d;
    }
    var = var / C;

    float rstd = 1.0f / sqrtf(var + eps);
    for (int c = 0; c < C; c++) {
        out[n * C + c] = (x[n * C + c] - mean) * rstd * gamma[c] + beta[c];
    }
}

static bool ln_overlap(const void* a, size_t na, const void* b, size_t nb)
{
    const uintptr_t p = reinterpret_cast<uintptr_t>(a);
    const uintptr_t q = reinterpret_cast<uintptr_t>(b);
    return p < q + nb && q < p + na;
}

void layernorm(float* out, const float* x, const float* gamma, const float* beta, int N, int C, float eps)
{
    if (N <= 0 || C <= 0) {
        return;
    }
    const size_t row = (size_t)C * sizeof(float);
    const size_t all = (size_t)N * row;
    if ((out != x && ln_overlap(out, all, x, all)) || ln_overlap(out, all, gamma, row) || ln_overlap(out, all, beta, row)) {
        layer_norm_serial<<<(unsigned)(((int64_t)N + 255) / 256), 256>>>(out, x, gamma, beta, N, C, eps);
        return;
    }

    const uintptr_t bits = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(x)
                         | reinterpret_cast<uintptr_t>(gamma) | reinterpret_cast<uintptr_t>(beta);
    if ((bits & 15) == 0 && C % 4 == 0 && C > 2 * LN_ROW4 && C <= 4 * LN_ROW4) {
        int device = 0;
        int sms = 0;
        cudaGetDevice(&device);
        if (cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess || sms < 1) {
            sms = 132;
        }
        const int grid = N < sms ? N : sms;
        if (C == 4 * LN_ROW4) {
            if (cudaFuncSetAttribute(layer_norm_fwd<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, LN_RING_BYTES)
                == cudaSuccess) {
                layer_norm_fwd<true><<<grid, LN_WARPS * 32, LN_RING_BYTES>>>(out, x, gamma, beta, N, C, eps);
                return;
            }
        } else {
            if (cudaFuncSetAttribute(layer_norm_fwd<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, LN_RING_BYTES)
                == cudaSuccess) {
                layer_norm_fwd<false><<<grid, LN_WARPS * 32, LN_RING_BYTES>>>(out, x, gamma, beta, N, C, eps);
                return;
            }
        }
    }

    if (C <= 1024) {
        layer_norm_general<32><<<(unsigned)N, 32>>>(out, x, gamma, beta, C, eps);
    } else {
        layer_norm_general<256><<<(unsigned)N, 256>>>(out, x, gamma, beta, C, eps);
    }
}
