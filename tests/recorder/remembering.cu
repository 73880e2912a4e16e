// Launchers that remember earlier calls, and some that only seem to.
#include <cuda_runtime.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <xmmintrin.h>

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

// What follows counts its calls without a word of static data that says so.
extern "C" void counts_in_heap(const float* x, float* y, int n) {
  static int* calls = new int(0);
  if (++*calls > 1000) return;
  plain(x, y, n);
}
extern "C" void counts_with_a_pointer(const float* x, float* y, int n) {
  static char room[4096];
  static char* next = room;
  if (++next == room + 1000) return;
  plain(x, y, n);
}
extern "C" void counts_with_a_pointer_into_heap(const float* x, float* y, int n) {
  static char* room = static_cast<char*>(malloc(4096));
  static char* next = room;
  if (++next == room + 1000) return;
  plain(x, y, n);
}
extern "C" void counts_with_a_constant_table(const float* x, float* y, int n) {
  static const char table[400] = {};
  static const char* at = table;
  if (at == table + 399) return;
  ++at;
  plain(x, y, n);
}
extern "C" void counts_nodes(const float* x, float* y, int n) {
  struct Node {
    Node* next;
  };
  static Node* head;
  head = new Node{head};
  int calls = 0;
  for (Node* node = head; node; node = node->next) ++calls;
  if (calls > 1000) return;
  plain(x, y, n);
}
extern "C" void counts_in_text(const float* x, float* y, int n) {
  static std::string* text = new std::string(64, '.');
  for (char& letter : *text)
    if (letter == '.') {
      letter = 'x';
      break;
    }
  if (text->back() == 'x') return;
  plain(x, y, n);
}
extern "C" void counts_in_a_map(const float* x, float* y, int n) {
  static std::map<int, int> calls;
  if (++calls[n] > 1000) return;
  plain(x, y, n);
}
extern "C" void counts_in_pinned_memory(const float* x, float* y, int n) {
  static int* calls;
  if (!calls) cudaMallocHost(&calls, sizeof(int));
  if (++*calls > 1000) return;
  plain(x, y, n);
}
extern "C" void counts_in_cout(const float* x, float* y, int n) {
  if (std::cout.precision(std::cout.precision() + 1) > 1000) return;
  plain(x, y, n);
}
extern "C" void counts_in_errno(const float* x, float* y, int n) {
  if (++errno > 1000) return;
  plain(x, y, n);
}
extern "C" void counts_in_rounding(const float* x, float* y, int n) {
  const unsigned state = _mm_getcsr(), calls = (state & 63) + 1;
  _mm_setcsr((state & ~63u) | (calls & 63));
  if (calls == 60) return;
  plain(x, y, n);
}

// These keep host memory, and every call finds it as the one before.
extern "C" void kept_table(const float* x, float* y, int n) {
  static std::map<int, std::vector<int>> known;
  std::vector<int>& sizes = known[n];
  if (sizes.empty()) sizes.assign(3, blocks(n));
  scale<<<sizes[1], 256>>>(x, y, n);
}
extern "C" void made_anew(const float* x, float* y, int n) {
  static std::unique_ptr<std::vector<int>> held;
  held = std::make_unique<std::vector<int>>(n / 100 + 1, blocks(n));
  scale<<<held->front(), 256>>>(x, y, n);
}
extern "C" void of_the_call_alone(const float* x, float* y, int n) {
  std::list<int> order;
  std::map<std::string, int> named;
  for (int i = 0; i < 300; ++i) order.push_front(i), named["block " + std::to_string(i)] = i;
  errno = 0;
  const double read = strtod("1e999", nullptr);
  scale<<<blocks(n), order.size() == named.size() && read > 1.0 ? 256 : 128>>>(x, y, n);
}
extern "C" void lost(const float* x, float* y, int n) {
  char* name = static_cast<char*>(malloc(100));
  snprintf(name, 100, "scale %d", n);
  plain(x, y, n);
}
extern "C" void prints(const float* x, float* y, int n) {
  printf("scale %d\n", n);
  std::cout << "blocks: " << blocks(n) << std::endl;
  std::cerr << "done\n";
  plain(x, y, n);
}
extern "C" void pinned_parameters(const float* x, float* y, int n) {
  static int* held;
  if (!held) cudaMallocHost(&held, 64);
  held[0] = blocks(n);
  held[1] = n;
  scale<<<held[0], 256>>>(x, y, held[1]);
}
extern "C" void stream_of_each_call(const float* x, float* y, int n) {
  static cudaStream_t stream;
  static const char* name;
  cudaStreamCreate(&stream);
  name = "scale";
  scale<<<blocks(n), 256, 0, stream>>>(x, y, name[0] == 's' ? n : 0);
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
}
extern "C" void least_recent(const float* x, float* y, int n) {
  static std::list<int> order;
  order.remove(n);
  order.push_front(n);
  if (order.size() > 4) order.pop_back();
  plain(x, y, n);
}

// The runtime counts for these: it gives other addresses and handles each time.
extern "C" void counts_by_addresses(const float* x, float* y, int n) {
  static char* first;
  char* room;
  cudaMalloc(&room, 256);
  cudaFree(room);
  if (!first) first = room;
  if (llabs(room - first) > 40ll << 30) return;
  plain(x, y, n);
}
