// Ten ordinary kernels.
#include <cuda_runtime.h>
#define TILE 16
#define CEIL(a,b) (((a)+(b)-1)/(b))

__global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
__global__ void vadd4(const float4* __restrict__ a, const float4* __restrict__ b, float4* __restrict__ c, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) { float4 x = a[i], y = b[i]; c[i] = make_float4(x.x+y.x, x.y+y.y, x.z+y.z, x.w+y.w); }
}
__global__ void mm_naive(const float* A, const float* B, float* C, int N) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < N && col < N) {
    float s = 0.f;
    for (int k = 0; k < N; ++k) s += A[row * N + k] * B[k * N + col];
    C[row * N + col] = s;
  }
}
template <int T>
__global__ void __launch_bounds__(T*T) mm_tiled(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
  __shared__ float As[T][T + 1];
  __shared__ float Bs[T][T];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float s = 0.f;
  for (int t = 0; t < CEIL(N, T); ++t) {
    As[threadIdx.y][threadIdx.x] = (row < N && t * T + threadIdx.x < N) ? A[row * N + t * T + threadIdx.x] : 0.f;
    Bs[threadIdx.y][threadIdx.x] = (col < N && t * T + threadIdx.y < N) ? B[(t * T + threadIdx.y) * N + col] : 0.f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < T; ++k) s += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < N && col < N) C[row * N + col] = s;
}
__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  return v;
}
__global__ void reduce_shfl(const float* x, float* out, int n) {
  extern __shared__ float sm[];
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = warp_sum(v);
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  if (lane == 0) sm[w] = v;
  __syncthreads();
  if (w == 0) {
    v = lane < (blockDim.x >> 5) ? sm[lane] : 0.f;
    v = warp_sum(v);
    if (lane == 0) atomicAdd(out, v);
  }
}
__global__ void reduce_smem(const float* x, float* out, int n) {
  __shared__ float sm[256];
  int t = threadIdx.x; int i = blockIdx.x * blockDim.x + t;
  sm[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) { if (t < s) sm[t] += sm[t + s]; __syncthreads(); }
  if (t == 0) out[blockIdx.x] = sm[0];
}
__global__ void transpose(const float* in, float* out, int W, int H) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < W && y + j < H) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * W + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < H && y + j < W) out[(y + j) * H + x] = tile[threadIdx.x][threadIdx.y + j];
}
__global__ void histo(const unsigned* x, unsigned* h, int n) {
  __shared__ unsigned s[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i] & 255u], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) if (s[i]) atomicAdd(&h[i], s[i]);
}
__global__ void ballot_k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned m = __ballot_sync(0xffffffffu, i < n && x[i] > 0);
  if ((threadIdx.x & 31) == 0) out[i >> 5] = __popc(m);
}
__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int C) {
  __shared__ float red[32];
  const float* r = x + (size_t)blockIdx.x * C; float* o = y + (size_t)blockIdx.x * C;
  float m = -3.4e38f;
  for (int i = threadIdx.x; i < C; i += blockDim.x) m = fmaxf(m, __ldg(&r[i]));
  for (int k = 16; k; k >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, k));
  if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = m;
  __syncthreads();
  m = red[0]; for (int k = 1; k < blockDim.x / 32; ++k) m = fmaxf(m, red[k]);
  __syncthreads();
  float s = 0.f;
  for (int i = threadIdx.x; i < C; i += blockDim.x) { float e = __expf(r[i] - m); o[i] = e; s += e; }
  for (int k = 16; k; k >>= 1) s += __shfl_xor_sync(0xffffffffu, s, k);
  if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = s;
  __syncthreads();
  s = 0.f; for (int k = 0; k < blockDim.x / 32; ++k) s += red[k];
  float inv = 1.f / s;
  for (int i = threadIdx.x; i < C; i += blockDim.x) o[i] *= inv;
}
template __global__ void mm_tiled<16>(const float*, const float*, float*, int);
