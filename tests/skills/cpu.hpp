// Enough of CUDA to run kernels without barriers on the CPU, one thread after the other.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
struct float4 { float x, y, z, w; };
struct int4 { int x, y, z, w; };
struct uint4 { unsigned x, y, z, w; };
struct short4 { short x, y, z, w; };
struct uchar4 { unsigned char x, y, z, w; };
struct double2 { double x, y; };
struct longlong2 { long long x, y; };
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
