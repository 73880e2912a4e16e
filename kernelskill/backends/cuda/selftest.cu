// One launcher with a mode for everything that the cuda backend must carry out. Used by selftest.py alone.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

__device__ int counter = 40;
__constant__ float offset;

__global__ void scale_add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + y[i];
}
__global__ void add(float* y, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += value;
}
__global__ void copy(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
__global__ void overrun(float* y, int n) { y[n] = 1.0f; }
__global__ void far_away(float* y) { y[1ll << 38] = 1.0f; }
__global__ void endless(const volatile float* x, float* y) { while (x[0] != 123456.0f) y[0] = 1.0f; }
__global__ void trap() { __trap(); }
__global__ void count(float* y) { y[0] = (float)++counter; }
__global__ void add_offset(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += offset;
}
__global__ void reverse_in_shared(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i];
}
__global__ void shift_after_grid_sync(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
  cooperative_groups::this_grid().sync();
  float next = i < n ? y[(i + 1) % n] : 0.0f;
  cooperative_groups::this_grid().sync();
  if (i < n) y[i] = next;
}
__global__ void cluster_rank(float* y, int n) {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (float)rank;
}

enum Mode { SCALE_ADD, OVERRUN, FAR_AWAY, ENDLESS, TRAP, COUNT, STREAMS, GRAPH, SHARED, COOPERATIVE, CLUSTER, COPY,
            MANY, TEMPORARY, TINY, CONSTANT, READS_BACK, FAILS };

static void on_two_streams(float* y, int n, int blocks) {
  cudaStream_t side;
  cudaEvent_t ready, done;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  add<<<blocks, 256>>>(y, 1.0f, n);
  cudaEventRecord(ready, 0);
  cudaStreamWaitEvent(side, ready, 0);
  add<<<blocks, 256, 0, side>>>(y, 2.0f, n);
  cudaEventRecord(done, side);
  cudaStreamWaitEvent(0, done, 0);
  add<<<blocks, 256>>>(y, 4.0f, n);
  cudaEventDestroy(ready);
  cudaEventDestroy(done);
  cudaStreamDestroy(side);
}

static void as_graph(float* y, int n, int blocks) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int k = 0; k < 10; k++) add<<<blocks, 256, 0, stream>>>(y, 1.0f, n);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

static int in_clusters(float* y, int n, int blocks) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks + blocks % 2);
  config.blockDim = dim3(256);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, cluster_rank, y, n);
}

extern "C" int selftest(const float* x, float* y, int n, int mode) {
  int blocks = (n + 255) / 256;
  switch (mode) {
    case SCALE_ADD: scale_add<<<blocks, 256>>>(x, y, n); break;
    case OVERRUN: overrun<<<1, 1>>>(y, n); break;
    case FAR_AWAY: far_away<<<1, 1>>>(y); break;
    case ENDLESS: endless<<<1, 1>>>(x, y); break;
    case TRAP: trap<<<1, 1>>>(); break;
    case COUNT: count<<<1, 1>>>(y); break;
    case STREAMS: on_two_streams(y, n, blocks); break;
    case GRAPH: as_graph(y, n, blocks); break;
    case SHARED:
      cudaFuncSetAttribute(reverse_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 4);
      reverse_in_shared<<<1, 256, n * 4>>>(x, y, n);
      break;
    case COOPERATIVE: {
      void* arguments[] = {&x, &y, &n};
      return cudaLaunchCooperativeKernel((void*)shift_after_grid_sync, dim3(blocks), dim3(256), arguments, 0, 0);
    }
    case CLUSTER: return in_clusters(y, n, blocks);
    case COPY: copy<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4); break;
    case MANY:
      for (int k = 0; k < 200; k++) add<<<1, 32>>>(y, 1.0f, n < 32 ? n : 32);
      break;
    case TEMPORARY: {
      float* t;
      if (cudaMalloc(&t, n * 4)) return 2;
      cudaMemset(t, 0, n * 4);
      scale_add<<<blocks, 256>>>(x, t, n);
      cudaMemcpy(y, t, n * 4, cudaMemcpyDeviceToDevice);
      cudaFree(t);
      break;
    }
    case TINY: add<<<1, 32>>>(y, 1.0f, n < 32 ? n : 32); break;
    case CONSTANT: {
      float value = 3.0f;
      cudaMemcpyToSymbol(offset, &value, 4);
      add_offset<<<blocks, 256>>>(y, n);
      break;
    }
    case READS_BACK: {
      float first;
      cudaMemcpy(&first, x, 4, cudaMemcpyDeviceToHost);
      add<<<blocks, 256>>>(y, first, n);
      break;
    }
    case FAILS: return 7;
  }
  return cudaGetLastError();
}
