// One launcher with a mode for every rate that a GPU is asked for. Used by ceilings.py alone.
#include <cuda_runtime.h>
#include <mma.h>

// Asked for a value that does not occur: keeps what is computed from being left out.
__device__ bool occurs(float value) { return value == 1.2345e-30f; }
__device__ bool occurs(double value) { return value == 1.2345e-300; }
__device__ bool occurs(unsigned value) { return value == 0x9E3779B9u; }
#define KEEP(value, place) if (occurs(value)) *(place) = (value)

constexpr int THREADS = 256;
constexpr int DEEP = 4;    // independent accesses of a thread under way
constexpr int CHAINS = 8;  // independent chains of arithmetic of a thread
#ifndef STEPS
#define STEPS 32  // links of a chain between two tests of the loop; ceiling_rates.py counts on them
#endif

// READS and WRITES slices of n elements each lie one behind the other.
template <int READS, int WRITES>
__global__ void __launch_bounds__(THREADS) stream(float4* memory, int n) {
  long long first = (long long)blockIdx.x * THREADS * DEEP + threadIdx.x;
  float4 sums[DEEP];
#pragma unroll
  for (int k = 0; k < DEEP; k++) {
    long long i = first + k * THREADS;
    sums[k] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
#pragma unroll
    for (int r = 0; r < READS; r++) {
      if (i >= n) continue;
      float4 v = __ldcs(memory + (long long)r * n + i);
      sums[k].x += v.x; sums[k].y += v.y; sums[k].z += v.z; sums[k].w += v.w;
    }
  }
#pragma unroll
  for (int k = 0; k < DEEP; k++) {
    long long i = first + k * THREADS;
    if (i >= n) continue;
    if (WRITES == 0) KEEP(sums[k].x + sums[k].y + sums[k].z + sums[k].w, (float*)memory);
#pragma unroll
    for (int w = 0; w < WRITES; w++) __stcs(memory + (long long)(READS + w) * n + i, sums[k]);
  }
}

// Reads that no L1 answers, again and again over n elements that the L2 holds.
__global__ void __launch_bounds__(THREADS) second_level(float4* memory, int n, int rounds) {
  int stride = (int)((long long)gridDim.x * THREADS % n);
  int i = (int)(((long long)blockIdx.x * THREADS + threadIdx.x) % n);
  float sum = 0.0f;
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
      float4 v = __ldcg(memory + i);
      sum += v.x + v.y + v.z + v.w;
      i += stride;
      if (i >= n) i -= n;
    }
  }
  KEEP(sum, (float*)memory);
}

template <typename Real>
__device__ Real multiplied_added(Real a, Real b, Real c);
template <> __device__ float multiplied_added(float a, float b, float c) { return fmaf(a, b, c); }
template <> __device__ double multiplied_added(double a, double b, double c) { return fma(a, b, c); }
template <> __device__ unsigned multiplied_added(unsigned a, unsigned b, unsigned c) {  // two halves
  asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c));
  return a;
}

template <typename Real>
__global__ void __launch_bounds__(THREADS) chains(Real* memory, int rounds) {
  Real b = memory[0], c = memory[1], x[CHAINS];
#pragma unroll
  for (int k = 0; k < CHAINS; k++) x[k] = (Real)(threadIdx.x + k);
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
      for (int k = 0; k < CHAINS; k++) x[k] = multiplied_added(x[k], b, c);
  }
  Real sum = x[0];
#pragma unroll
  for (int k = 1; k < CHAINS; k++) sum += x[k];
  KEEP(sum, memory);
}

__global__ void __launch_bounds__(THREADS) special(float* memory, int rounds) {
  float x[CHAINS];
#pragma unroll
  for (int k = 0; k < CHAINS; k++) x[k] = memory[k] + threadIdx.x * 1e-3f;
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
      for (int k = 0; k < CHAINS; k++) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[k]));
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < CHAINS; k++) sum += x[k];
  KEEP(sum, memory);
}

// Additions to n elements that the L2 holds, neighbouring lanes at neighbouring elements; n = 1: all at one.
__global__ void __launch_bounds__(THREADS) atomics(unsigned* memory, int n, int rounds) {
  int stride = (int)((long long)gridDim.x * THREADS % n);
  int i = (int)(((long long)blockIdx.x * THREADS + threadIdx.x) % n);
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
      asm volatile("red.global.add.u32 [%0], 1;" ::"l"(memory + i) : "memory");
      i += stride;
      if (i >= n) i -= n;
    }
  }
}

__global__ void __launch_bounds__(THREADS) shared_atomics(unsigned* memory, int rounds) {
  __shared__ unsigned bins[THREADS];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int k = 0; k < DEEP; k++) atomicAdd(&bins[(threadIdx.x + 32 * k) % THREADS], 1u + k);
  }
  __syncthreads();
  if (bins[threadIdx.x] == 0xFFFFFFFFu) memory[0] = 1;
}

__global__ void __launch_bounds__(THREADS) warp_products(float* memory, int rounds) {
#if __CUDA_ARCH__ >= 700
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[DEEP];
  wmma::fill_fragment(a, __float2half(0.25f + memory[0]));
  wmma::fill_fragment(b, __float2half(0.5f - memory[0]));
#pragma unroll
  for (int k = 0; k < DEEP; k++) wmma::fill_fragment(c[k], (float)k);
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int k = 0; k < DEEP; k++) wmma::mma_sync(c[k], a, b, c[k]);
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < DEEP; k++)
    for (int e = 0; e < c[k].num_elements; e++) sum += c[k].x[e];
  KEEP(sum, memory);
#endif
}

// One warp group a block multiplies 64 x 16 by 16 x 128 halves from shared memory, DEEP times a round.
__global__ void __launch_bounds__(128) group_products(float* memory, int rounds) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ __align__(128) unsigned short tiles[64 * 16 + 16 * 128];
  for (int i = threadIdx.x; i < 64 * 16 + 16 * 128; i += 128) tiles[i] = 0x3000 + i % 7;  // about 0.125
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  // Core matrices of 8 x 16 bytes one behind the other: 128 bytes along k, 256 along the other side.
  unsigned base = (unsigned)__cvta_generic_to_shared(tiles);
  unsigned long long shape = (unsigned long long)(128 >> 4) << 16 | (unsigned long long)(256 >> 4) << 32;
  unsigned long long a = shape | (base & 0x3FFFF) >> 4;
  unsigned long long b = shape | ((base + 64 * 16 * 2) & 0x3FFFF) >> 4;
  float d[64];
#pragma unroll
  for (int k = 0; k < 64; k++) d[k] = memory[0];
#define EIGHT(k) "+f"(d[k]), "+f"(d[k + 1]), "+f"(d[k + 2]), "+f"(d[k + 3]), "+f"(d[k + 4]), "+f"(d[k + 5]), \
                 "+f"(d[k + 6]), "+f"(d[k + 7])
  for (int round = 0; round < rounds; round++) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
          "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
          "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
          "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
          "%64, %65, 1, 1, 1, 0, 0;"
          : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
          : "l"(a), "l"(b));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 64; k++) sum += d[k];
  KEEP(sum, memory);
#endif
}

__global__ void nothing() {}

enum Mode { READ, READ_3_WRITE_1, READ_2_WRITE_1, COPY, READ_1_WRITE_2, WRITE, L2_READ, FMA_FP32, FMA_FP64, FMA_HALF,
            SPECIAL, ATOMIC_SPREAD, ATOMIC_SAME, ATOMIC_SHARED, WARP_PRODUCTS, GROUP_PRODUCTS, LAUNCHES };

// n: elements of a slice for streams, elements in all for the L2 and atomics. blocks: for all but streams.
extern "C" int ceilings(float* memory, int n, int mode, int blocks, int rounds) {
  float4* wide = (float4*)memory;
  int grid = (int)(((long long)n + THREADS * DEEP - 1) / (THREADS * DEEP));
  switch (mode) {
    case READ: stream<1, 0><<<grid, THREADS>>>(wide, n); break;
    case READ_3_WRITE_1: stream<3, 1><<<grid, THREADS>>>(wide, n); break;
    case READ_2_WRITE_1: stream<2, 1><<<grid, THREADS>>>(wide, n); break;
    case COPY: stream<1, 1><<<grid, THREADS>>>(wide, n); break;
    case READ_1_WRITE_2: stream<1, 2><<<grid, THREADS>>>(wide, n); break;
    case WRITE: stream<0, 1><<<grid, THREADS>>>(wide, n); break;
    case L2_READ: second_level<<<blocks, THREADS>>>(wide, n, rounds); break;
    case FMA_FP32: chains<float><<<blocks, THREADS>>>(memory, rounds); break;
    case FMA_FP64: chains<double><<<blocks, THREADS>>>((double*)memory, rounds); break;
    case FMA_HALF: chains<unsigned><<<blocks, THREADS>>>((unsigned*)memory, rounds); break;
    case SPECIAL: special<<<blocks, THREADS>>>(memory, rounds); break;
    case ATOMIC_SPREAD: atomics<<<blocks, THREADS>>>((unsigned*)memory, n, rounds); break;
    case ATOMIC_SAME: atomics<<<blocks, THREADS>>>((unsigned*)memory, 1, rounds); break;
    case ATOMIC_SHARED: shared_atomics<<<blocks, THREADS>>>((unsigned*)memory, rounds); break;
    case WARP_PRODUCTS: warp_products<<<blocks, THREADS>>>(memory, rounds); break;
    case GROUP_PRODUCTS: group_products<<<blocks, 128>>>(memory, rounds); break;
    case LAUNCHES:
      for (int k = 0; k < rounds; k++) nothing<<<1, 1>>>();
      break;
  }
  return cudaGetLastError();
}
