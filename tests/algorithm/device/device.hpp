// Enough of CUDA to run kernels on the CPU: threads of a block are fibres that meet at barriers and shuffles.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
#define VECTORS(T, NAME, A2, A4)                                                                        \
    struct alignas(A2) NAME##2 { T x, y; };                                                             \
    struct NAME##3 { T x, y, z; };                                                                      \
    struct alignas(A4) NAME##4 { T x, y, z, w; };                                                       \
    inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                          \
    inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                                  \
    inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTORS(float, float, 8, 16)
VECTORS(int, int, 8, 16)
VECTORS(double, double, 16, 16)
VECTORS(short, short, 4, 8)
VECTORS(long long, longlong, 16, 16)
typedef unsigned uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
VECTORS(uint, uint, 8, 16)
VECTORS(uchar, uchar, 2, 4)
VECTORS(ushort, ushort, 4, 8)
typedef signed char schar;
VECTORS(schar, char, 2, 4)
VECTORS(unsigned long long, ulonglong, 16, 16)

// Half: every operation is rounded, as on the device.
struct __half {
    uint16_t bits = 0;
    __half() = default;
    __half(double v) { set(v); }
    __half(float v) { set(v); }
    __half(int v) { set((double)v); }
    __half(unsigned v) { set((double)v); }
    __half(long long v) { set((double)v); }
    template <typename T> void set(T v) { _Float16 h = (_Float16)v; std::memcpy(&bits, &h, 2); }
    operator float() const { _Float16 h; std::memcpy(&h, &bits, 2); return (float)h; }
};
typedef __half half;
#define HALF_OPERATOR(OP)                                                                               \
    inline __half operator OP(__half a, __half b) { return __half((float)a OP (float)b); }              \
    inline __half& operator OP##=(__half& a, __half b) { a = a OP b; return a; }
HALF_OPERATOR(+) HALF_OPERATOR(-) HALF_OPERATOR(*) HALF_OPERATOR(/)
#define HALF_COMPARE(OP) inline bool operator OP(__half a, __half b) { return (float)a OP (float)b; }
HALF_COMPARE(<) HALF_COMPARE(>) HALF_COMPARE(<=) HALF_COMPARE(>=) HALF_COMPARE(==) HALF_COMPARE(!=)
inline __half operator-(__half a) { return __half(-(float)a); }
inline float __half2float(__half a) { return (float)a; }
inline __half __float2half(float a) { return __half(a); }
inline __half __float2half_rn(float a) { return __half(a); }
inline __half __hadd(__half a, __half b) { return a + b; }
inline __half __hsub(__half a, __half b) { return a - b; }
inline __half __hmul(__half a, __half b) { return a * b; }
inline __half __hdiv(__half a, __half b) { return a / b; }
inline __half __hfma(__half a, __half b, __half c) { return __half(std::fma((double)(float)a, (double)(float)b, (double)(float)c)); }
inline __half __hneg(__half a) { return -a; }
inline __half __habs(__half a) { return __half(std::fabs((float)a)); }
inline bool __hlt(__half a, __half b) { return a < b; }
inline bool __hgt(__half a, __half b) { return a > b; }
struct alignas(4) __half2 { __half x, y; };
typedef __half2 half2;
inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half2 make_half2(__half a, __half b) { return {a, b}; }
inline float2 __half22float2(__half2 a) { return {(float)a.x, (float)a.y}; }
inline __half2 __float22half2_rn(float2 a) { return {__half(a.x), __half(a.y)}; }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }
inline __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline __half2 __half2half2(__half a) { return {a, a}; }
inline float __low2float(__half2 a) { return (float)a.x; }
inline float __high2float(__half2 a) { return (float)a.y; }
inline __half2 __lowhigh2highlow(__half2 a) { return {a.y, a.x}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
inline __half __hmax(__half a, __half b) { return a != a ? b : b != b ? a : (a > b ? a : b); }
inline __half __hmin(__half a, __half b) { return a != a ? b : b != b ? a : (a < b ? a : b); }
#define HALF2_FUNCTION(NAME, ONE) inline __half2 NAME(__half2 a, __half2 b) { return {ONE(a.x, b.x), ONE(a.y, b.y)}; }
HALF2_FUNCTION(__hadd2, __hadd) HALF2_FUNCTION(__hsub2, __hsub) HALF2_FUNCTION(__hmul2, __hmul)
HALF2_FUNCTION(__h2div, __hdiv) HALF2_FUNCTION(__hmax2, __hmax) HALF2_FUNCTION(__hmin2, __hmin)
HALF2_FUNCTION(operator+, __hadd) HALF2_FUNCTION(operator-, __hsub) HALF2_FUNCTION(operator*, __hmul)
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline __half2 __hneg2(__half2 a) { return {-a.x, -a.y}; }
inline __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }

// Functions that the host's library lacks, or has with another meaning.
using std::abs; using std::fabs; using std::exp; using std::log; using std::sqrt; using std::pow; using std::floor;
using std::ceil; using std::tanh; using std::sin; using std::cos; using std::fma; using std::isnan; using std::isinf;
using std::isfinite; using std::erf; using std::fmax; using std::fmin; using std::signbit; using std::rint; using std::round;
inline float device_max(float a, float b) { return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : (a > b ? a : b); }
inline float device_min(float a, float b) { return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : (a < b ? a : b); }
inline double device_max(double a, double b) { return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : (a > b ? a : b); }
inline double device_min(double a, double b) { return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : (a < b ? a : b); }
#define fmaxf(a, b) device_max((float)(a), (float)(b))
#define fminf(a, b) device_min((float)(a), (float)(b))
#define INTEGER_PAIR(A, B, R)                                                                           \
    inline R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }                                        \
    inline R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; }
INTEGER_PAIR(int, int, int) INTEGER_PAIR(unsigned, unsigned, unsigned) INTEGER_PAIR(int, unsigned, unsigned)
INTEGER_PAIR(unsigned, int, unsigned) INTEGER_PAIR(long, long, long) INTEGER_PAIR(long long, long long, long long)
INTEGER_PAIR(unsigned long, unsigned long, unsigned long)
INTEGER_PAIR(unsigned long long, unsigned long long, unsigned long long)
INTEGER_PAIR(long, int, long) INTEGER_PAIR(int, long, long) INTEGER_PAIR(long long, int, long long)
INTEGER_PAIR(int, long long, long long)
inline float max(float a, float b) { return device_max(a, b); }
inline float min(float a, float b) { return device_min(a, b); }
inline double max(double a, double b) { return device_max(a, b); }
inline double min(double a, double b) { return device_min(a, b); }
inline double max(float a, double b) { return device_max((double)a, b); }
inline double max(double a, float b) { return device_max(a, (double)b); }
inline double min(float a, double b) { return device_min((double)a, b); }
inline double min(double a, float b) { return device_min(a, (double)b); }
inline float rsqrtf(float v) { return (float)(1.0 / std::sqrt((double)v)); }
inline double rsqrt(double v) { return 1.0 / std::sqrt(v); }
inline float rsqrt(float v) { return rsqrtf(v); }
inline float __expf(float v) { return (float)std::exp((double)v); }
inline float __logf(float v) { return (float)std::log((double)v); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __saturatef(float a) { return a != a ? 0.0f : a < 0.0f ? 0.0f : a > 1.0f ? 1.0f : a; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    const unsigned long long both = ((unsigned long long)b << 32) | a;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i) r |= (unsigned)(both >> ((s >> 4 * i & 7) * 8) & 255) << 8 * i;
    return r;
}
template <typename F> inline unsigned halves(unsigned a, unsigned b, F f) {
    return (unsigned)(uint16_t)f((uint16_t)a, (uint16_t)b) | (unsigned)(uint16_t)f((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
}
inline unsigned __vadd2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return x + y; }); }
inline unsigned __vmaxu2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return x > y ? x : y; }); }
inline unsigned __vminu2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return x < y ? x : y; }); }
inline unsigned __viaddmax_u16x2(unsigned a, unsigned b, unsigned c) { return __vmaxu2(__vadd2(a, b), c); }
inline unsigned __viaddmin_u16x2(unsigned a, unsigned b, unsigned c) { return __vminu2(__vadd2(a, b), c); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz((unsigned)v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __float_as_int(float v) { int r; std::memcpy(&r, &v, 4); return r; }
inline float __int_as_float(int v) { float r; std::memcpy(&r, &v, 4); return r; }
inline unsigned __float_as_uint(float v) { return (unsigned)__float_as_int(v); }
inline float __uint_as_float(unsigned v) { return __int_as_float((int)v); }
template <typename T> inline T __ldg(const T* p) { return *p; }
template <typename T> inline T __ldcs(const T* p) { return *p; }
template <typename T> inline T __ldcg(const T* p) { return *p; }
template <typename T> inline T __ldca(const T* p) { return *p; }
template <typename T> inline T __ldlu(const T* p) { return *p; }
template <typename T> inline void __stcs(T* p, T v) { *p = v; }
template <typename T> inline void __stcg(T* p, T v) { *p = v; }
template <typename T> inline void __stwt(T* p, T v) { *p = v; }
inline size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }

// Atomics: threads never run at the same time.
#define ATOMIC(NAME, EXPRESSION)                                                                        \
    template <typename T> inline T NAME(T* p, decltype(T() + T()) given) {                              \
        T v = (T)given, old = *p; *p = (T)(EXPRESSION); return old;                                     \
    }
ATOMIC(atomicAdd, old + v) ATOMIC(atomicSub, old - v) ATOMIC(atomicMax, old < v ? v : old)
ATOMIC(atomicMin, v < old ? v : old) ATOMIC(atomicAnd, old & v) ATOMIC(atomicOr, old | v)
ATOMIC(atomicXor, old ^ v) ATOMIC(atomicExch, v)
template <typename T> inline T atomicCAS(T* p, T expected, T v) { T old = *p; if (old == expected) *p = v; return old; }

typedef void* cudaStream_t;
typedef int cudaError_t;
enum { cudaSuccess = 0, cudaMemcpyDeviceToDevice = 3 };
inline int cudaGetLastError() { return 0; }
inline int cudaPeekAtLastError() { return 0; }
inline int cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t = nullptr) { std::memset(p, v, n); return 0; }
inline int cudaMemset(void* p, int v, size_t n) { std::memset(p, v, n); return 0; }
inline int cudaMemcpyAsync(void* d, const void* s, size_t n, int, cudaStream_t = nullptr) { std::memmove(d, s, n); return 0; }
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <typename F> inline int cudaFuncSetAttribute(F, int, int) { return 0; }
template <typename T> inline int cudaMallocAsync(T** p, size_t n, cudaStream_t) { *p = (T*)std::malloc(n ? n : 1); std::memset(*p, 0xff, n); return 0; }
template <typename T> inline int cudaMalloc(T** p, size_t n) { return cudaMallocAsync(p, n, nullptr); }
inline int cudaFree(void* p) { std::free(p); return 0; }
inline int cudaFreeAsync(void* p, cudaStream_t) { std::free(p); return 0; }
inline int cudaDeviceSynchronize() { return 0; }

inline thread_local uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
constexpr int warpSize = 32;
inline char* dynamic_shared = nullptr;

// Kernels are compiled fast rather than well; what runs at every meeting of threads is worth more.
#pragma GCC push_options
#pragma GCC optimize("O2")
// Of the runner: a switch of stacks, and a stack that begins with a function.
extern "C" void ks_switch(void** save, void* to);
extern "C" void* begin_stack(void* top, void (*entry)());

namespace device {
// Type of a parameter, for use in decltype only.
template <size_t I, typename R, typename... A> std::tuple_element_t<I, std::tuple<A...>> argument(R (*)(A...));
enum Wait { kRunning, kBarrier, kWarp, kDone };
enum Kind { kSync, kShuffle, kBallot, kCount };
struct Fibre {
    void* place = nullptr;
    char* stack = nullptr;
    Wait wait = kDone;
    Kind kind = kSync;
    unsigned mask = 0;
    uint64_t posted = 0, result = 0;
    int source = 0;
    uint3 index;
};
inline Fibre fibres[1024];
inline void* scheduler;
inline int current = -1, live = 0;
inline void (*entry)(void*);
inline void* entry_argument;
constexpr size_t kStack = 96 * 1024;

[[noreturn]] inline void fail(const char* what) { std::fprintf(stderr, "%s\n", what); std::fflush(stderr); std::_Exit(3); }
inline void yield(Wait wait) {
    if (current < 0) fail("a barrier in a kernel that was taken to have none");
    Fibre& own = fibres[current];
    own.wait = wait;
    ks_switch(&own.place, scheduler);
}
inline void body() { entry(entry_argument); yield(kDone); }
inline uint64_t meet(Kind kind, unsigned mask, uint64_t posted, int source) {
    Fibre& own = fibres[current];
    own.kind = kind; own.mask = mask; own.posted = posted; own.source = source;
    yield(kWarp);
    return fibres[current].result;
}
inline unsigned alive(int warp) {
    unsigned mask = 0;
    for (int lane = 0; lane < 32; ++lane) if (warp * 32 + lane < live && fibres[warp * 32 + lane].wait != kDone) mask |= 1u << lane;
    return mask;
}
// Lets the lanes of one call go once all of them are there.
inline bool release_warp(int warp) {
    bool moved = false;
    for (int first = 0; first < 32; ++first) {
        const int thread = warp * 32 + first;
        if (thread >= live || fibres[thread].wait != kWarp) continue;
        const unsigned wanted = fibres[thread].mask & alive(warp);
        bool complete = (wanted >> first) & 1u;
        if (!complete) fail("a lane calls a warp function with a mask that lacks it");
        for (int lane = 0; lane < 32; ++lane) {
            if (!((wanted >> lane) & 1u)) continue;
            const Fibre& other = fibres[warp * 32 + lane];
            complete = complete && other.wait == kWarp && other.mask == fibres[thread].mask && other.kind == fibres[thread].kind;
        }
        if (!complete) continue;
        unsigned votes = 0;
        for (int lane = 0; lane < 32; ++lane) if (((wanted >> lane) & 1u) && fibres[warp * 32 + lane].posted) votes |= 1u << lane;
        for (int lane = 0; lane < 32; ++lane) {
            if (!((wanted >> lane) & 1u)) continue;
            Fibre& own = fibres[warp * 32 + lane];
            if (own.kind == kShuffle) {
                const bool present = own.source >= 0 && own.source < 32 && ((wanted >> own.source) & 1u);
                own.result = present ? fibres[warp * 32 + own.source].posted : 0x7fbadbad7fbadbadull;  // undefined on the device
            } else {
                own.result = votes | ((uint64_t)wanted << 32);
            }
        }
        for (int lane = 0; lane < 32; ++lane) if ((wanted >> lane) & 1u) fibres[warp * 32 + lane].wait = kRunning;
        moved = true;
    }
    return moved;
}
inline void run_block(bool reversed) {
    for (int t = 0; t < live; ++t) {
        Fibre& own = fibres[t];
        if (!own.stack) own.stack = (char*)mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        own.place = begin_stack(own.stack + kStack, body);
        own.wait = kRunning;
        own.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    }
    for (;;) {
        bool moved = false;
        int waiting = 0, done = 0;
        for (int step = 0; step < live; ++step) {
            const int t = reversed ? live - 1 - step : step;
            if (fibres[t].wait != kRunning) continue;
            current = t; threadIdx = fibres[t].index; moved = true;
            ks_switch(&scheduler, fibres[t].place);
        }
        current = -1;
        for (int warp = 0; warp * 32 < live; ++warp) moved = release_warp(warp) || moved;
        for (int t = 0; t < live; ++t) { waiting += fibres[t].wait == kBarrier; done += fibres[t].wait == kDone; }
        if (done == live) return;
        if (waiting && waiting + done == live) {
            for (int t = 0; t < live; ++t) if (fibres[t].wait == kBarrier) fibres[t].wait = kRunning;
            moved = true;
        }
        if (!moved) fail("threads wait for one another for ever");
    }
}
template <typename T> inline uint64_t to_bits(T v) { uint64_t r = 0; static_assert(sizeof(T) <= 8); std::memcpy(&r, &v, sizeof(T)); return r; }
template <typename T> inline T from_bits(uint64_t v) { T r; std::memcpy(&r, &v, sizeof(T)); return r; }
inline bool reversed = false;
inline int thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

template <typename F> void run_grid(dim3 grid, dim3 block, size_t shared, bool meets, F body) {
    const unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    if (threads == 0 || threads > 1024 || block.z > 64) fail("a block that no device takes");
    if (!grid.x || !grid.y || !grid.z) return;  // on the device an error that many launchers provoke for n = 0
    if (grid.y > 65535 || grid.z > 65535) fail("a grid that no device takes");
    if (shared > 227 * 1024) fail("more shared memory than a block may have");
    if (!dynamic_shared) dynamic_shared = (char*)std::aligned_alloc(1024, 228 * 1024);
    gridDim = grid; blockDim = block; live = (int)threads;
    entry = [](void* f) { (*(F*)f)(); }; entry_argument = &body;
    const unsigned long long blocks = (unsigned long long)grid.x * grid.y * grid.z;
    for (unsigned long long at = 0; at < blocks; ++at) {
        const unsigned long long b = reversed ? blocks - 1 - at : at;
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        std::memset(dynamic_shared, 0xff, shared);
        if (meets) { run_block(reversed); continue; }
        for (int step = 0; step < live; ++step) {
            const int t = reversed ? live - 1 - step : step;
            threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
            body();
        }
    }
}
}  // namespace device

inline void __syncthreads() { device::yield(device::kBarrier); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __syncwarp(unsigned mask = 0xffffffffu) { device::meet(device::kSync, mask, 0, 0); }
inline unsigned __ballot_sync(unsigned mask, int v) { return (unsigned)device::meet(device::kBallot, mask, v != 0, 0); }
inline int __any_sync(unsigned mask, int v) { return __ballot_sync(mask, v) != 0; }
inline int __all_sync(unsigned mask, int v) { uint64_t r = device::meet(device::kBallot, mask, v != 0, 0); return (unsigned)r == (unsigned)(r >> 32); }
template <typename T> inline T device_shuffle(unsigned mask, T v, int source) {
    return device::from_bits<T>(device::meet(device::kShuffle, mask, device::to_bits(v), source));
}
#define DEVICE_LANE const int lane = device::thread() & 31, base = lane & ~(width - 1); (void)base
template <typename T> inline T __shfl_sync(unsigned m, T v, int source, int width = 32) { DEVICE_LANE; return device_shuffle(m, v, base + (source & (width - 1))); }
template <typename T> inline T __shfl_xor_sync(unsigned m, T v, int x, int width = 32) { DEVICE_LANE; const int s = lane ^ x; return device_shuffle(m, v, s < base + width ? s : lane); }
template <typename T> inline T __shfl_down_sync(unsigned m, T v, unsigned d, int width = 32) { DEVICE_LANE; const int s = lane + (int)d; return device_shuffle(m, v, s < base + width ? s : lane); }
template <typename T> inline T __shfl_up_sync(unsigned m, T v, unsigned d, int width = 32) { DEVICE_LANE; const int s = lane - (int)d; return device_shuffle(m, v, s >= base ? s : lane); }
#pragma GCC pop_options
template <typename T> inline T warp_fold(unsigned m, T v, T (*f)(T, T)) {
    T total = v; bool first = true;
    for (int l = 0; l < 32; ++l) if ((m >> l) & 1u) { T o = device_shuffle(m, v, l); total = first ? o : f(total, o); first = false; }
    return total;
}
inline unsigned __reduce_add_sync(unsigned m, unsigned v) { return warp_fold<unsigned>(m, v, [](unsigned a, unsigned b) { return a + b; }); }
inline int __reduce_add_sync(unsigned m, int v) { return warp_fold<int>(m, v, [](int a, int b) { return a + b; }); }
inline int __reduce_max_sync(unsigned m, int v) { return warp_fold<int>(m, v, [](int a, int b) { return a < b ? b : a; }); }
inline int __reduce_min_sync(unsigned m, int v) { return warp_fold<int>(m, v, [](int a, int b) { return b < a ? b : a; }); }
