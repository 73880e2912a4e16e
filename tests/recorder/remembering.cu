// Launchers that remember earlier calls, and some that only seem to.
#include <cuda_runtime.h>

#include <cstdlib>

__global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3.0f * x[i];
}
static int blocks(int n) { return (n + 255) / 256; }

extern "C" void plain(const float* x, float* y, int n) { scale<<<blocks(n), 256>>>(x, y, n); }

extern "C" void first_size(const float* x, float* y, int n) {
  static int count = blocks(n);
  scale<<<count, 256>>>(x, y, n);
}
extern "C" void first_pointer(const float* x, float* y, int n) {
  static const float* first = x;
  scale<<<blocks(n), 256>>>(first, y, n);
}
extern "C" void first_graph(const float* x, float* y, int n) {
  static cudaGraphExec_t kept;
  static cudaStream_t stream;
  if (!kept) {
    cudaStreamCreate(&stream);
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    scale<<<blocks(n), 256, 0, stream>>>(x, y, n);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&kept, graph, 0);
  }
  cudaGraphLaunch(kept, stream);
  cudaStreamSynchronize(stream);
}
extern "C" void largest_size(const float* x, float* y, int n) {
  static int largest;
  largest = n > largest ? n : largest;
  scale<<<blocks(largest), 256>>>(x, y, n);
}
extern "C" void dies_at_another_size(const float* x, float* y, int n) {
  static int known = n;
  if (known != n) abort();
  plain(x, y, n);
}
extern "C" void kept_room(const float* x, float* y, int n) {
  static float* room;
  static int size;
  if (n > size) {
    if (room) cudaFree(room);
    cudaMalloc(&room, n * sizeof(float));
    size = n;
  }
  scale<<<blocks(n), 256>>>(x, room, n);
  scale<<<blocks(n), 256>>>(room, y, n);
}
extern "C" void consents_once(const float* x, float* y, int n) {
  static bool done;
  if (!done) cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  done = true;
  scale<<<blocks(n), 256, 65536>>>(x, y, n);
}
extern "C" void graph_of_each_call(const float* x, float* y, int n) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  scale<<<blocks(n), 256, 0, stream>>>(x, y, n);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphLaunch(ready, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}
extern "C" void counts(const float* x, float* y, int n) {
  static int calls;
  if (++calls > 1000) return;
  plain(x, y, n);
}
extern "C" void counts_in_the_thread(const float* x, float* y, int n) {
  static thread_local int calls;
  if (++calls > 1000) return;
  plain(x, y, n);
}
static float* temporary;
extern "C" void static_temporary(const float* x, float* y, int n) {
  cudaMalloc(&temporary, n * sizeof(float));
  scale<<<blocks(n), 256>>>(x, temporary, n);
  scale<<<blocks(n), 256>>>(temporary, y, n);
  cudaFree(temporary);
}
extern "C" void leaks(const float* x, float* y, int n) {
  float* room;
  cudaMalloc(&room, 1024);
  plain(x, y, n);
}
