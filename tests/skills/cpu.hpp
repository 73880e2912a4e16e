// Enough of CUDA to run kernels on the CPU: one thread after the other, and where threads wait for one another,
// the threads of a block as fibres that take turns.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>
#include "../../kernelskill/backends/emulated/runtime/ks_switch.h"
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
struct float4 { float x, y, z, w; };
struct int4 { int x, y, z, w; };
struct uint4 { unsigned x, y, z, w; };
struct short4 { short x, y, z, w; };
struct uchar4 { unsigned char x, y, z, w; };
struct double2 { double x, y; };
struct longlong2 { long long x, y; };
struct float2 { float x, y; };
struct int2 { int x, y; };
struct uint2 { unsigned x, y; };
struct short2 { short x, y; };
struct ushort2 { unsigned short x, y; };
struct ushort4 { unsigned short x, y, z, w; };
struct uchar2 { unsigned char x, y; };
struct ulonglong2 { unsigned long long x, y; };
#define MAKE(type, element) \
    inline type##2 make_##type##2(element x, element y) { return {x, y}; } \
    inline type##4 make_##type##4(element x, element y, element z, element w) { return {x, y, z, w}; }
MAKE(float, float) MAKE(int, int) MAKE(uint, unsigned) MAKE(short, short) MAKE(ushort, unsigned short) MAKE(uchar, unsigned char)
#undef MAKE
inline double2 make_double2(double x, double y) { return {x, y}; }
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
using std::max; using std::min; using std::pow; using std::sqrt; using std::fabs; using std::exp;
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz((unsigned)v); }
inline float rsqrtf(float v) { return 1.0f / sqrtf(v); }
inline double rsqrt(double v) { return 1.0 / sqrt(v); }
template <typename F> void run_grid(dim3 grid, dim3 block, F body) {
    if (block.x * block.y * block.z > 1024 || block.x * block.y * block.z == 0) { std::puts("bad block"); std::exit(3); }
    if (grid.x * grid.y * grid.z == 0) return;
    gridDim = grid; blockDim = block;
    for (unsigned bz = 0; bz < grid.z; ++bz) for (unsigned by = 0; by < grid.y; ++by) for (unsigned bx = 0; bx < grid.x; ++bx)
        for (unsigned tz = 0; tz < block.z; ++tz) for (unsigned ty = 0; ty < block.y; ++ty) for (unsigned tx = 0; tx < block.x; ++tx) {
            blockIdx = {bx, by, bz}; threadIdx = {tx, ty, tz};
            body();
        }
}

// Threads of a block that wait for one another.
namespace fibres {
constexpr unsigned kWarp = 32, kStack = 1 << 16;
struct Thread {
    void* place;                        // where it goes on
    bool done, at_barrier;
    unsigned waits_for;                 // lanes of a warp operation, 0 for none
    unsigned long long value;           // what this lane brings to it
    const unsigned long long* seen;     // what the lanes of the mask brought
    unsigned long long met[kWarp];      // room for that, where this lane is the first of the mask
};
inline std::vector<Thread> threads;
inline std::vector<char> stacks;
inline void* scheduler;
inline unsigned current, votes, voted;
inline void (*entry)(void*);
inline void* argument;
inline void fail(const char* what) { std::puts(what); std::exit(4); }
inline void yield() { ks_switch(&threads[current].place, scheduler); }
inline void start() { entry(argument); threads[current].done = true; yield(); }
inline void barrier() { threads[current].at_barrier = true; yield(); }
inline unsigned lane() { return current % kWarp; }
// Every lane of the mask hands over a value; returns when all have. What it returns holds until the lane waits again.
inline const unsigned long long* exchange(unsigned mask, unsigned long long value) {
    Thread& own = threads[current];
    if (!(mask >> lane() & 1)) fail("a lane outside its mask");
    own.waits_for = mask;
    own.value = value;
    yield();
    return own.seen;
}
inline bool meet(unsigned first, unsigned mask, unsigned long long* values) {
    for (unsigned l = 0; l < kWarp; ++l) {
        values[l] = 0xDEADBEEFDEADBEEFull;
        if (!(mask >> l & 1) || first + l >= threads.size() || threads[first + l].done) continue;
        if (threads[first + l].waits_for != mask) return false;
        values[l] = threads[first + l].value;
    }
    unsigned long long* met = nullptr;
    for (unsigned l = 0; l < kWarp; ++l)
        if ((mask >> l & 1) && first + l < threads.size() && !threads[first + l].done) {
            if (met == nullptr) met = std::copy(values, values + kWarp, threads[first + l].met) - kWarp;
            threads[first + l].waits_for = 0;
            threads[first + l].seen = met;
        }
    return true;
}
inline bool release() {
    bool any = false, all = true;
    unsigned long long values[kWarp];
    for (unsigned t = 0; t < threads.size(); ++t) {
        if (threads[t].waits_for) any |= meet(t / kWarp * kWarp, threads[t].waits_for, values);
        all &= threads[t].done || threads[t].at_barrier;
    }
    if (all) {
        voted = votes;
        votes = 0;
        for (Thread& thread : threads) { any |= thread.at_barrier; thread.at_barrier = false; }
    }
    return any;
}
template <typename F> void run_block(dim3 block, F body) {
    const unsigned count = block.x * block.y * block.z;
    threads.resize(count);
    stacks.resize((size_t)kStack * 1024);
    entry = [](void* p) { (*(F*)p)(); };
    argument = &body;
    for (unsigned t = 0; t < count; ++t) {
        threads[t].done = threads[t].at_barrier = false;
        threads[t].waits_for = 0;
        const auto top = (std::uintptr_t)(stacks.data() + (size_t)kStack * (t + 1));
        threads[t].place = ks::begin_stack((void*)(top & ~(std::uintptr_t)15), start);
    }
    for (bool left = true; left;) {
        left = false;
        bool moved = false;
        for (unsigned t = 0; t < count; ++t) {
            if (threads[t].done || threads[t].at_barrier || threads[t].waits_for) { left |= !threads[t].done; continue; }
            current = t;
            threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
            ks_switch(&scheduler, threads[t].place);
            left |= !threads[t].done;
            moved = true;
        }
        if (!release() && !moved && left) fail("threads wait for others that never come");
    }
}
template <typename T> unsigned long long bits(T value) {
    unsigned long long word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
}
template <typename T> T from(unsigned long long word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}
}  // namespace fibres
template <typename F> void run_together(dim3 grid, dim3 block, F body) {
    if (block.x * block.y * block.z > 1024 || block.x * block.y * block.z == 0) { std::puts("bad block"); std::exit(3); }
    if (grid.x * grid.y * grid.z == 0) return;
    gridDim = grid; blockDim = block;
    for (unsigned z = 0; z < grid.z; ++z) for (unsigned y = 0; y < grid.y; ++y) for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        fibres::run_block(block, body);
    }
}
inline void __syncthreads() { fibres::barrier(); }
inline int __syncthreads_count(int p) { fibres::votes += p != 0; fibres::barrier(); return fibres::voted; }
inline int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }
inline void __threadfence() {}
inline void __syncwarp(unsigned mask = 0xffffffffu) { fibres::exchange(mask, 0); }
template <typename T> T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    const unsigned lane = fibres::lane(), base = lane / width * width;
    return fibres::from<T>(fibres::exchange(mask, fibres::bits(v))[base + (unsigned)from % width]);
}
template <typename T> T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
    const unsigned lane = fibres::lane(), other = lane ^ with;
    return fibres::from<T>(fibres::exchange(mask, fibres::bits(v))[other < lane / width * width + width ? other : lane]);
}
template <typename T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const unsigned lane = fibres::lane(), other = lane + by;
    return fibres::from<T>(fibres::exchange(mask, fibres::bits(v))[other < lane / width * width + width ? other : lane]);
}
template <typename T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const unsigned lane = fibres::lane();
    return fibres::from<T>(fibres::exchange(mask, fibres::bits(v))[lane % width >= by ? lane - by : lane]);
}
inline unsigned __ballot_sync(unsigned mask, int p) {
    const unsigned long long* seen = fibres::exchange(mask, p != 0);
    unsigned result = 0;
    for (unsigned l = 0; l < 32; ++l) if (mask >> l & 1) result |= (seen[l] == 1) << l;
    return result;
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
template <typename T> unsigned __match_any_sync(unsigned mask, T v) {
    const unsigned long long* seen = fibres::exchange(mask, fibres::bits(v));
    unsigned result = 0;
    for (unsigned l = 0; l < 32; ++l) if (mask >> l & 1) result |= (seen[l] == fibres::bits(v)) << l;
    return result;
}
// Lanes that are not known to wait elsewhere: its own is always one.
inline unsigned __activemask() { return 1u << fibres::lane(); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
template <typename To, typename From> To same_bits(From v) { To to; std::memcpy(&to, &v, sizeof to); return to; }
inline unsigned __float_as_uint(float v) { return same_bits<unsigned>(v); }
inline float __uint_as_float(unsigned v) { return same_bits<float>(v); }
inline long long __double_as_longlong(double v) { return same_bits<long long>(v); }
inline double __longlong_as_double(long long v) { return same_bits<double>(v); }
template <typename T> T __ldg(const T* p) { return *p; }
template <typename T> T __ldcs(const T* p) { return *p; }
template <typename T> T __ldcg(const T* p) { return *p; }
template <typename T> void __stcs(T* p, std::common_type_t<T> v) { *p = v; }
template <typename T> void __stcg(T* p, T v) { *p = v; }
#define SERIAL_ATOMIC(name, expression) \
    template <typename T, typename V> T name(T* p, V given) { T old = *p, v = (T)given; *p = expression; return old; }
SERIAL_ATOMIC(atomicAdd, old + v)
SERIAL_ATOMIC(atomicSub, old - v)
SERIAL_ATOMIC(atomicMax, old > v ? old : v)
SERIAL_ATOMIC(atomicMin, old < v ? old : v)
SERIAL_ATOMIC(atomicAnd, old & v)
SERIAL_ATOMIC(atomicOr, old | v)
SERIAL_ATOMIC(atomicXor, old ^ v)
SERIAL_ATOMIC(atomicExch, v)
// A host of one small GPU.
using cudaError_t = int;
using cudaStream_t = void*;
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
inline int cudaGetDevice(int* device) { return *device = 0; }
inline int cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { *value = 3; return 0; }
template <typename K> int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, K, int, size_t) { *blocks = 2; return 0; }
enum { cudaMemcpyDeviceToDevice = 3 };
inline int cudaMemcpyAsync(void* to, const void* from, size_t n, int, cudaStream_t) { std::memcpy(to, from, n); return 0; }
inline int cudaMemset(void* p, int v, size_t n) { std::memset(p, v, n); return 0; }
inline int cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t = nullptr) { std::memset(p, v, n); return 0; }
template <typename T> int cudaMallocAsync(T** p, size_t n, cudaStream_t) { *p = (T*)std::malloc(n + 1); std::memset(*p, 0xA5, n); return 0; }
inline int cudaFreeAsync(void* p, cudaStream_t) { std::free(p); return 0; }
inline int cudaGetLastError() { return 0; }
