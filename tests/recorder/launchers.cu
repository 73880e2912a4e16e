// Ordinary launchers of many shapes. Most compute y = 3 * x for n floats.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace cg = cooperative_groups;

static int blocks(int n, int threads = 256) { return (n + threads - 1) / threads; }

template <typename T, int V>
__global__ void scale(const T* x, T* y, T a, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * V;
  for (int k = 0; k < V; ++k)
    if (i + k < n) y[i + k] = a * x[i + k];
}

extern "C" void simple(const float* x, float* y, int n) { scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n); }

extern "C" void by_template(const float* x, float* y, int n) {
  if (n % 4 != 0)
    scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n);
  else
    scale<float, 4><<<blocks(n / 4), 256>>>(x, y, 3.0f, n);
}

extern "C" void by_alignment(const float* x, float* y, int n) {
  const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
  if (aligned)
    scale<float, 4><<<blocks(n / 4), 256>>>(x, y, 3.0f, n);
  else
    scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n);
}

extern "C" void several_kernels(const float* x, float* y, int n) {
  float *t, *u;
  cudaMalloc(&t, n * sizeof(float));
  cudaMalloc(&u, n * sizeof(float));
  scale<float, 1><<<blocks(n), 256>>>(x, t, 2.0f, n);
  scale<float, 1><<<blocks(n), 256>>>(t, u, 1.5f, n);
  cudaMemcpy(y, u, n * sizeof(float), cudaMemcpyDeviceToDevice);
  cudaFree(t);
  cudaFree(u);
}

struct View {
  const float* p;
  int n;
  char tag;
  float* q;
};

__global__ void by_view(View v, double s) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < v.n) v.q[i] = v.p[i] * s;
}

extern "C" void struct_by_value(const float* x, float* y, int n) {
  View v;
  v.p = x;
  v.n = n;
  v.tag = 'x';
  v.q = y;
  by_view<<<blocks(n), 256>>>(v, 3.0);
}

struct __attribute__((packed)) Packed {
  char tag;
  const float* p;
  float* q;
  int n;
};

__global__ void by_packed(Packed v) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < v.n) v.q[i] = v.p[i] * 3;
}

extern "C" void packed_struct(const float* x, float* y, int n) { by_packed<<<blocks(n), 256>>>(Packed{'a', x, y, n}); }

struct HostAndDevice {
  const float* device;
  int* host;
  float* out;
};

__global__ void by_mixed(HostAndDevice v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v.out[i] = v.device[i] * 3;
}

extern "C" void struct_with_host_pointer(const float* x, float* y, int n) {
  int local = 0;
  by_mixed<<<blocks(n), 256>>>(HostAndDevice{x, &local, y}, n);
}

struct Big {
  const float* p[700];
};

__global__ void by_big(Big b, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = b.p[650][i] * 3;
}

extern "C" void large_struct(const float* x, float* y, int n) {
  Big b = {};
  b.p[650] = x;
  by_big<<<blocks(n), 256>>>(b, y, n);
}

extern "C" void two_streams(const float* x, float* y, int n) {
  cudaStream_t s, t;
  cudaEvent_t forked, joined;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamCreateWithPriority(&t, cudaStreamNonBlocking, -1);
  cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
  cudaEventCreate(&joined);
  const int half = n / 2;
  cudaEventRecord(forked, s);
  cudaStreamWaitEvent(t, forked, 0);
  scale<float, 1><<<blocks(half), 256, 0, s>>>(x, y, 3.0f, half);
  scale<float, 1><<<blocks(n - half), 256, 0, t>>>(x + half, y + half, 3.0f, n - half);
  cudaEventRecord(joined, t);
  cudaStreamWaitEvent(s, joined, 0);
  cudaStreamSynchronize(s);
  cudaEventDestroy(forked);
  cudaEventDestroy(joined);
  cudaStreamDestroy(s);
  cudaStreamDestroy(t);
}

extern "C" void unjoined_stream(const float* x, float* y, int n) {
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  scale<float, 1><<<blocks(n), 256, 0, s>>>(x, y, 3.0f, n);
}

extern "C" void blocking_side_stream(const float* x, float* y, int n) {
  cudaStream_t s;
  cudaStreamCreate(&s);
  scale<float, 1><<<blocks(n), 256>>>(x, y, 2.0f, n);
  scale<float, 1><<<blocks(n), 256, 0, s>>>(y, y, 1.5f, n);
  cudaStreamDestroy(s);
}

extern "C" void many_launches(const float* x, float* y, int n) {
  for (int i = 0; i < 200; ++i) scale<float, 1><<<1, 32>>>(x, y, 2.5f, 32);
  scale<float, 4><<<blocks(n / 4), 256>>>(x, y, 3.0f, n);
  cudaDeviceSynchronize();
}

__global__ void pitched(const float* x, float* t, size_t pitch, float* y, int width, int height) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < width * height) y[i] = 3 * reinterpret_cast<float*>(reinterpret_cast<char*>(t) + (i / width) * pitch)[i % width];
}

extern "C" void pitch(const float* x, float* y, int n) {
  float* t;
  size_t step;
  const int width = 100, height = n / 100;
  cudaMallocPitch(&t, &step, width * sizeof(float), height);
  cudaMemset2D(t, step, 0, width * sizeof(float), height);
  cudaMemcpy2D(t, step, x, width * sizeof(float), width * sizeof(float), height, cudaMemcpyDeviceToDevice);
  pitched<<<blocks(n), 256>>>(x, t, step, y, width, height);
  cudaFree(t);
}

__constant__ float factors[4];
__constant__ View constant_view;
__device__ float device_factor;

__global__ void by_constant() {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < constant_view.n) constant_view.q[i] = constant_view.p[i] * factors[2] * device_factor;
}

extern "C" void symbols(const float* x, float* y, int n) {
  const float table[4] = {1, 2, 3, 4};
  const float one = 1;
  const View v{x, n, 0, y};
  void* address;
  size_t size = 0;
  cudaMemcpyToSymbol(factors, table, sizeof table);
  cudaMemcpyToSymbolAsync(constant_view, &v, sizeof v, 0, cudaMemcpyHostToDevice, 0);
  cudaGetSymbolAddress(&address, device_factor);
  cudaGetSymbolSize(&size, device_factor);
  cudaMemcpyAsync(address, &one, size, cudaMemcpyHostToDevice, 0);
  by_constant<<<blocks(n), 256>>>();
}

extern "C" void occupancy_query(const float* x, float* y, int n) {
  int grid = 0, threads = 0, device = 0, each = 0;
  cudaDeviceProp properties;
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&properties, device);
  cudaOccupancyMaxPotentialBlockSize(&grid, &threads, scale<float, 1>, 0, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, scale<float, 1>, threads, 0);
  if (grid != each * properties.multiProcessorCount) return;
  scale<float, 1><<<blocks(n, threads), threads>>>(x, y, 3.0f, n);
}

__global__ void through_shared(const float* x, float* y, int n) {
  extern __shared__ float s[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = 3 * s[threadIdx.x];
}

extern "C" void large_shared(const float* x, float* y, int n) {
  cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);
  cudaFuncSetAttribute(through_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
  through_shared<<<blocks(n), 256, 100 << 10>>>(x, y, n);
}

__global__ void grid_wide(const float* x, float* t, float* y, int n) {
  cg::grid_group g = cg::this_grid();
  for (int i = g.thread_rank(); i < n; i += g.size()) t[i] = x[n - 1 - i];
  g.sync();
  for (int i = g.thread_rank(); i < n; i += g.size()) y[i] = 3 * t[n - 1 - i];
}

extern "C" void cooperative(const float* x, float* y, int n) {
  float* t;
  cudaMalloc(&t, n * sizeof(float));
  int each = 0, processors = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, grid_wide, 256, 0);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  void* arguments[] = {&x, &t, &y, &n};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(grid_wide), dim3(each * processors), dim3(256), arguments, 0, 0);
  cudaFree(t);
}

__global__ void in_cluster(const float* x, float* y, int n) {
  cg::cluster_group c = cg::this_cluster();
  __shared__ float s[256];
  const int i = blockIdx.x * 256 + threadIdx.x, j = (blockIdx.x ^ 1) * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  c.sync();
  const float v = c.map_shared_rank(s, c.block_rank() ^ 1)[threadIdx.x];
  if (j < n) y[j] = 3 * v;
  c.sync();
}

extern "C" void cluster(const float* x, float* y, int n) {
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3((blocks(n) + 1) / 2 * 2);
  c.blockDim = dim3(256);
  cudaLaunchAttribute a[2];
  a[0].id = cudaLaunchAttributeClusterDimension;
  a[0].val.clusterDim.x = 2;
  a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1;
  a[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a[1].val.programmaticStreamSerializationAllowed = 1;
  c.attrs = a;
  c.numAttrs = 2;
  cudaLaunchKernelEx(&c, in_cluster, x, y, n);
}

extern "C" void graph(const float* x, float* y, int n) {
  cudaStream_t s, t;
  cudaEvent_t forked, joined;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaEventCreate(&forked);
  cudaEventCreate(&joined);
  float* u;
  cudaMalloc(&u, n * sizeof(float));
  cudaGraph_t g;
  cudaGraphExec_t e;
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  scale<float, 1><<<blocks(n), 256, 0, s>>>(x, u, 2.0f, n);
  cudaEventRecord(forked, s);
  cudaStreamWaitEvent(t, forked, 0);
  scale<float, 1><<<blocks(n), 256, 0, t>>>(u, y, 1.5f, n);
  cudaEventRecord(joined, t);
  cudaStreamWaitEvent(s, joined, 0);
  cudaStreamEndCapture(s, &g);
  cudaGraphInstantiate(&e, g, 0);
  for (int k = 0; k < 3; ++k) cudaGraphLaunch(e, s);
  cudaStreamSynchronize(s);
  cudaGraphExecDestroy(e);
  cudaGraphDestroy(g);
  cudaFree(u);
}

__global__ void by_table(float** t, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[1][i] = 3 * t[0][i];
}

extern "C" void pointer_table(const float* x, float* y, int n) {
  float* h[2] = {const_cast<float*>(x), y};
  float** d;
  cudaMallocAsync(&d, sizeof h, 0);
  cudaMemcpyAsync(d, h, sizeof h, cudaMemcpyHostToDevice, 0);
  by_table<<<blocks(n), 256>>>(d, n);
  cudaFreeAsync(d, 0);
}

extern "C" void pinned_staging(const float* x, float* y, int n) {
  float *staging, *d;
  cudaMallocHost(&staging, 4);
  cudaMalloc(&d, 4);
  *staging = 3;
  cudaMemcpy(d, staging, 4, cudaMemcpyHostToDevice);
  scale<float, 1><<<blocks(n), 256>>>(x, y, *staging, n);
  cudaFree(d);
  cudaFreeHost(staging);
}

void plain_cpp(const float* x, float* y, int n) { scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n); }

extern "C" void with_stream(const float* x, float* y, int n, cudaStream_t stream) {
  float* t;
  cudaMallocAsync(&t, n * sizeof(float), stream);
  scale<float, 1><<<blocks(n), 256, 0, stream>>>(x, t, 2.0f, n);
  scale<float, 1><<<blocks(n), 256, 0, stream>>>(t, y, 1.5f, n);
  cudaFreeAsync(t, stream);
}

extern "C" cudaError_t returns_error(const float* x, float* y, int n) {
  if (n % 2 != 0) return cudaErrorInvalidValue;
  scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n);
  return cudaGetLastError();
}

extern "C" int returns_int(const float* x, float* y, int n) {
  scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n);
  return n < 0 ? -7 : n > 1000 ? 0 : -7;
}

extern "C" void falls_back(const float* x, float* y, int n) {
  scale<float, 1><<<blocks(n), 256, 300 << 10>>>(x, y, 3.0f, n);
  if (cudaGetLastError() != cudaSuccess) scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n);
}

extern "C" void standard_library(const float* x, float* y, int n) {
  std::vector<float> table(16, 3.0f);
  float* d;
  std::printf("scaling %d\n", n);
  cudaMalloc(&d, table.size() * sizeof(float));
  cudaMemcpy(d, table.data(), table.size() * sizeof(float), cudaMemcpyHostToDevice);
  scale<float, 1><<<blocks(n), 256>>>(x, y, table[3], n);
  cudaFree(d);
}

extern "C" void leaks(const float* x, float* y, int n) {
  float* t;
  cudaMalloc(&t, n * sizeof(float));
  scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n);
}

extern "C" void per_thread_stream(const float* x, float* y, int n) {
  scale<float, 1><<<blocks(n), 256, 0, cudaStreamPerThread>>>(x, y, 3.0f, n);
}

// Scalars of every kind; the kernel receives them unchanged.
struct Many {
  bool b;
  signed char c;
  unsigned char uc;
  short s;
  unsigned short us;
  int i;
  unsigned u;
  long long l;
  unsigned long long ul;
  float f;
  double d;
  float more[9];
};

__global__ void keep(Many m, float* y) { y[0] = m.f; }

extern "C" void scalars(float* y, bool b, signed char c, unsigned char uc, short s, unsigned short us, int i,
                        unsigned u, long long l, unsigned long long ul, float f, double d, float a0, float a1,
                        float a2, float a3, float a4, float a5, float a6, float a7, float a8) {
  Many m;
  std::memset(&m, 0, sizeof m);
  m.b = b, m.c = c, m.uc = uc, m.s = s, m.us = us, m.i = i, m.u = u, m.l = l, m.ul = ul, m.f = f, m.d = d;
  const float more[9] = {a0, a1, a2, a3, a4, a5, a6, a7, a8};
  std::memcpy(m.more, more, sizeof more);
  keep<<<1, 1>>>(m, y);
}

struct Vectors {
  float2 a;
  float3 b;
  float4 c;
  int2 d;
  double2 e;
  uchar4 f;
  __half g;
  __half2 h;
};

__global__ void keep_vectors(Vectors v, float* y) { y[0] = v.a.x; }

extern "C" void vectors(float2 a, float3 b, float* y, float4 c, int2 d, double2 e, uchar4 f, __half g, __half2 h) {
  Vectors v;
  std::memset(static_cast<void*>(&v), 0, sizeof v);
  v.a = a, v.b = b, v.c = c, v.d = d, v.e = e, v.f = f, v.g = g, v.h = h;
  keep_vectors<<<1, 1>>>(v, y);
}

// Tensor memory accelerator: the map's address is left open.
__global__ void with_map(const __grid_constant__ CUtensorMap map, float* y) { y[0] = reinterpret_cast<const char*>(&map)[0]; }

extern "C" void tensor_map(const float* x, float* y, int n) {
  void* encode;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
  CUtensorMap map;
  const cuuint64_t dimensions[2] = {32, static_cast<cuuint64_t>(n / 32)}, strides[1] = {128};
  const cuuint32_t box[2] = {32, 16}, steps[2] = {1, 1};
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(x), dimensions, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  with_map<<<1, 128>>>(map, y);
}

// Settings of the L2 cache are accepted and have no effect.
extern "C" void l2_policy(const float* x, float* y, int n) {
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = const_cast<float*>(x);
  value.accessPolicyWindow.num_bytes = 4096;
  cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &value);
  scale<float, 1><<<blocks(n), 256, 0, s>>>(x, y, 3.0f, n);
  cudaCtxResetPersistingL2Cache();
}

// ---- launches that fail

__global__ void __launch_bounds__(128) bounded(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * x[i];
}

extern "C" void empty_grid(const float* x, float* y, int n) { scale<float, 1><<<0, 256>>>(x, y, 3.0f, n); }
extern "C" void too_many_threads(const float* x, float* y, int n) { scale<float, 1><<<1, 2048>>>(x, y, 3.0f, n); }
extern "C" void above_launch_bounds(const float* x, float* y, int n) { bounded<<<blocks(n), 256>>>(x, y, n); }
extern "C" void shared_without_consent(const float* x, float* y, int n) {
  through_shared<<<blocks(n), 256, 100 << 10>>>(x, y, n);
}
extern "C" void shared_above_limit(const float* x, float* y, int n) {
  cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 << 10);
}
extern "C" void cooperative_too_large(const float* x, float* y, int n) {
  void* arguments[] = {&x, &y, &y, &n};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(grid_wide), dim3(100000), dim3(256), arguments, 0, 0);
}
extern "C" void copies_outside(const float* x, float* y, int n) { cudaMemset(y, 0, n * sizeof(float) + 4); }
extern "C" void too_much_memory(const float* x, float* y, int n) {
  float* t;
  cudaMalloc(&t, 1ull << 40);
}
extern "C" void capture_of_default_stream(const float* x, float* y, int n) {
  cudaStream_t s;
  cudaGraph_t g;
  cudaStreamCreate(&s);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  scale<float, 1><<<blocks(n), 256>>>(x, y, 3.0f, n);
  cudaStreamEndCapture(s, &g);
}
extern "C" void destroyed_stream(const float* x, float* y, int n) {
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaStreamDestroy(s);
  scale<float, 1><<<blocks(n), 256, 0, s>>>(x, y, 3.0f, n);
}
