#include <cooperative_groups.h>
#include <cstdio>
#include <cassert>
namespace cg = cooperative_groups;

extern "C" {
__global__ void read_past_end(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i + 1];  // LINE read_past_end
}
__global__ void write_past_end(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 1.0f;  // LINE write_past_end
}
__global__ void write_before_start(float* y) {
    y[(int)threadIdx.x - 1] = 1.0f;  // LINE write_before_start
}
__global__ void atomic_past_end(int* y, int n) {
    atomicAdd(y + n + threadIdx.x, 1);  // LINE atomic_past_end
}
__global__ void shared_past_end(float* y, int k) {
    __shared__ float s[32];
    s[threadIdx.x + k] = 1.0f;  // LINE shared_past_end
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
__global__ void dynamic_shared_past_end(float* y, int k) {
    extern __shared__ float d[];
    d[threadIdx.x + k] = 1.0f;  // LINE dynamic_shared_past_end
    __syncthreads();
    y[threadIdx.x] = d[0];
}
__global__ void local_past_end(float* y, int k) {
    float a[8];
    for (int i = 0; i < 8; i++) a[(i * 3) & 7] = y[i];
    y[threadIdx.x] = a[k];  // LINE local_past_end
}
__global__ void misaligned(const char* x, float4* y) {
    y[threadIdx.x] = *(const float4*)(x + 4);  // LINE misaligned
}
__constant__ float table[4] = {1, 2, 3, 4};
__global__ void writes_constant(float* y) {
    float* t = (float*)(size_t)table;
    y[0] = t[1];
    asm volatile("st.f32 [%0], %1;" ::"l"(t), "f"(5.0f));  // LINE writes_constant
}
__global__ void race(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = (float)threadIdx.x;  // LINE race_write
    y[threadIdx.x] = s[63 - threadIdx.x];  // LINE race_read
}
__global__ void no_race(float* y) {
    __shared__ float s[64];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    s[threadIdx.x] = (float)threadIdx.x;
    atomicAdd(&count, 1);
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x] + count;
}
__global__ void divergent_barrier(float* y) {
    if (threadIdx.x < 32) {
        __syncthreads();  // LINE divergent_barrier
        y[threadIdx.x] = 1;
        __syncthreads();
    } else {
        __syncwarp();
        while (*(volatile float*)y == 0.0f) {}
        asm volatile("bar.sync 1, 64;");
    }
}
__global__ void divergent_shuffle(int* y) {
    if (threadIdx.x < 16) y[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0);  // LINE divergent_shuffle
    else asm volatile("bar.sync 3, 64;");
}
__global__ void endless(volatile int* y) {
    while (y[0] == 0) {}  // LINE endless
}
__global__ void endless_registers(int* y, int k) {
    unsigned s = k;
    for (;;) { s = s * 1664525u + 1013904223u; if (s == 1u && (int)s == k + 5) break; }  // LINE endless_registers
    y[0] = s;
}
__global__ void chain(volatile int* flags, int* out) {
    if (threadIdx.x == 0) {
        int last = gridDim.x - 1, me = blockIdx.x;
        if (me != last) while (flags[me + 1] == 0) {}
        out[me] = me == last ? 1 : out[me + 1] + 1;
        __threadfence();
        flags[me] = 1;
    }
}
__global__ void grid_sync(int* x, int* y, int n) {
    auto grid = cg::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i;
    grid.sync();
    y[i] = x[n - 1 - i];
    grid.sync();
    x[i] = y[i] + 1;
}
__global__ void warp_synchronous(volatile int* out) {
    __shared__ int raw[64];
    volatile int* s = raw;
    s[threadIdx.x] = threadIdx.x;
    s[threadIdx.x + 32] = threadIdx.x + 32;
    s[threadIdx.x] += s[threadIdx.x + 32];
    s[threadIdx.x] += s[threadIdx.x + 16];
    s[threadIdx.x] += s[threadIdx.x + 8];
    s[threadIdx.x] += s[threadIdx.x + 4];
    s[threadIdx.x] += s[threadIdx.x + 2];
    s[threadIdx.x] += s[threadIdx.x + 1];
    if (threadIdx.x == 0) out[0] = s[0];
}
__global__ void asserts(int k) {
    assert(k > 5);  // LINE asserts
}
__global__ void traps(int k) {
    if (k < 5) __trap();  // LINE traps
}
__global__ void prints(int* y) {
    printf("thread %d of %s\n", threadIdx.x, "prints");
    y[threadIdx.x] = threadIdx.x;
}
__global__ void unknown_instruction(int* y) {
    unsigned r = 0;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(r) : "r"(0));  // LINE unknown_instruction
    y[0] = r;
}
__global__ void divergent_active_mask(int* y) {
    if (threadIdx.x & 1) y[threadIdx.x] = __popc(__activemask());
    else y[threadIdx.x] = -__popc(__activemask());
}
}
