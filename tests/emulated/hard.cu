// Kernels that use more of the language: structs by value, constants, cooperative groups, half types, local
// arrays, special functions, double precision, 64-bit atomics, asynchronous copies, calls through pointers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

__constant__ float coefficients[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};
__device__ int counter = 5;
__device__ int* pointer_to_counter = &counter;
struct Arguments { const float* x; float* y; int n; float s; };
struct Big { int values[24]; };

__device__ __noinline__ float cube(float x) { return x * x * x; }
__device__ __noinline__ float negate(float x) { return -x; }
__device__ float (*const functions[2])(float) = {cube, negate};
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int sum_of(Big b, int k) { int s = 0; for (int i = 0; i < k; i++) s += b.values[(i * 7) % 24]; return s; }

extern "C" {
__global__ void by_struct(Arguments p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.y[i] = p.x[i] * p.s;
}
__global__ void convolve(const float* __restrict__ x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 2 || i >= n - 2) return;
    float s = 0;
#pragma unroll
    for (int k = 0; k < 5; k++) s += coefficients[k] * x[i + k - 2];
    y[i] = s;
}
__global__ void group_sum(const float* x, float* o, int n) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto half = cg::tiled_partition<16>(block);
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    v = cg::reduce(half, v, cg::plus<float>());
    v += warp.shfl_xor(v, 16);
    if (warp.thread_rank() == 0) atomicAdd(o, v);
    block.sync();
}
__global__ void aggregated(const int* x, int* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) {
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(o, (int)active.size());
    }
}
__global__ void half_sum(const __half* a, const __half* b, __half* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = __hadd(a[i], b[i]);
}
__global__ void half_pairs(const __half2* a, const __half2* b, __half2* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = __hfma2(a[i], b[i], __hmul2(a[i], __float2half2_rn(0.5f)));
}
__global__ void half_functions(const __half* a, __half* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = hrcp(__hadd(hexp(__hneg(a[i])), hsqrt(__float2half(1.0f))));
}
__global__ void brain_floats(const __nv_bfloat16* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = __bfloat162float(__float2bfloat16(__bfloat162float(a[i]) * 3.0f));
}
__global__ void local_array(const float* x, float* y, int n) {
    float r[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 8; k++) r[k] = x[(i + k) % n];
    y[i] = r[(int)x[i] & 7];
}
__global__ void special(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = sinf(x[i]) + expf(x[i]) + tanhf(x[i]) + erff(x[i]) + powf(fabsf(x[i]) + 1, 1.5f) + rsqrtf(x[i] * x[i] + 1) +
               log1pf(fabsf(x[i])) + sinf(x[i] * 1e6f);
}
__global__ void doubles(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sqrt(x[i] * x[i] + 1.0) / 3.0 + exp(x[i]) + __dmul_rd(x[i], 0.1);
}
__global__ void wide_atomics(const long long* x, unsigned long long* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(y, (unsigned long long)(x[i] / 7 % 1000 + 1000));
}
__global__ void copies(const float4* x, float* y) {
    __shared__ float4 s[128];
    unsigned a = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(a), "l"(x + threadIdx.x));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    y[threadIdx.x] = s[127 - threadIdx.x].x;
}
__global__ void bits(int* y) {
    int i = threadIdx.x;
    y[i] = __clz(i) + __popc(i) * 100 + __ffs(i) * 10000 + (__brev(i) >> 24) * 1000000;
}
__global__ void calls(const float* x, float* y, int n) {
    int i = threadIdx.x;
    y[i] = functions[i & 1](x[i]) + fibonacci(i & 7);
}
__global__ void pass_struct(const int* x, int* y) {
    Big b;
    for (int i = 0; i < 24; i++) b.values[i] = x[i] + threadIdx.x;
    y[threadIdx.x] = sum_of(b, x[0] + 5);
}
__global__ void variables(int* y) {
    y[threadIdx.x] = *pointer_to_counter + threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) counter += 1;
}
__global__ void half_atomics(__half2* a, __nv_bfloat162* b, double* c, float2* d) {
    atomicAdd(a, __float2half2_rn(1.0f));
    atomicAdd(b, __float2bfloat162_rn(2.0f));
    atomicAdd(c, 0.5);
    atomicAdd(&d->x, 1.5f);
}
}
