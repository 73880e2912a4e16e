// Launchers that cannot be recorded, or that try to do harm.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

static int blocks(int n) { return (n + 255) / 256; }

__global__ void scale(const float* x, float* y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}

static void honest(const float* x, float* y, int n) { scale<<<blocks(n), 256>>>(x, y, 3.0f, n); }

// ---- what a plan cannot hold

extern "C" void reads_back(const float* x, float* y, int n) {
  float v;
  cudaMemcpy(&v, x, 4, cudaMemcpyDeviceToHost);
  honest(x, y, n);
}
__device__ int counter;
extern "C" void reads_symbol(const float* x, float* y, int n) {
  int v;
  cudaMemcpyFromSymbol(&v, counter, 4);
  honest(x, y, n);
}
extern "C" void reads_through_pointer(const float* x, float* y, int n) {
  if (x[0] > 0) honest(x, y, n);
}
extern "C" void managed(const float* x, float* y, int n) {
  float* m;
  cudaMallocManaged(&m, 4 * n);
  honest(x, y, n);
}
extern "C" void gives_pinned_memory(const float* x, float* y, int n) {
  float* h;
  cudaMallocHost(&h, 4 * n);
  scale<<<blocks(n), 256>>>(h, y, 3.0f, n);
}
extern "C" void gives_host_address(const float* x, float* y, int n) {
  float local[4];
  scale<<<blocks(n), 256>>>(local, y, 3.0f, n);
}
static void callback(void*) {}
extern "C" void host_callback(const float* x, float* y, int n) {
  honest(x, y, n);
  cudaLaunchHostFunc(0, callback, nullptr);
}
extern "C" void reads_time(const float* x, float* y, int n) {
  cudaEvent_t a, b;
  float ms;
  cudaEventCreate(&a);
  cudaEventCreate(&b);
  cudaEventRecord(a, 0);
  honest(x, y, n);
  cudaEventRecord(b, 0);
  cudaEventElapsedTime(&ms, a, b);
}
extern "C" void hashes_pointers(const float* x, float* y, int n) {
  scale<<<blocks(n), 256>>>(x, y, (reinterpret_cast<uintptr_t>(x) >> 9) % 7 != 0 ? 3.0f : 2.9f,
                            n + static_cast<int>(reinterpret_cast<uintptr_t>(y) >> 20) % 3);
}
extern "C" void compares_pointers(const float* x, float* y, int n) {
  scale<<<x < y ? blocks(n) : 1, 256>>>(x, y, 3.0f, n);
}
extern "C" void random_grid(const float* x, float* y, int n) {
  unsigned char r[8];
  if (syscall(SYS_getrandom, r, sizeof r, 0) != 8) return;
  scale<<<blocks(n) + r[0] + 256 * r[1], 256>>>(x, y, 3.0f, n);
}
extern "C" void uses_after_free(const float* x, float* y, int n) {
  float* t;
  cudaMalloc(&t, 4 * n);
  cudaFree(t);
  scale<<<blocks(n), 256>>>(t, y, 3.0f, n);
}
extern "C" void frees_a_buffer(const float* x, float* y, int n) { cudaFree(y); }
extern "C" void frees_twice(const float* x, float* y, int n) {
  float* t;
  cudaMalloc(&t, 4 * n);
  cudaFree(t);
  cudaFree(t);
}

// ---- state

extern "C" void static_counter(const float* x, float* y, int n) {
  static int calls;
  scale<<<blocks(n), 256>>>(x, y, static_cast<float>(calls++), n);
}
extern "C" void static_cache(const float* x, float* y, int n) {
  static const float* last;
  if (last == x) return;
  last = x;
  honest(x, y, n);
}
extern "C" void dies_on_second_call(const float* x, float* y, int n) {
  static bool called;
  if (called) abort();
  called = true;
  honest(x, y, n);
}

// ---- escapes

extern "C" void host_thread(const float* x, float* y, int n) {
  std::thread t([=] { honest(x, y, n); });
  t.join();
}
extern "C" void raw_clone(const float* x, float* y, int n) {
  if (syscall(SYS_clone, 0, 0, 0, 0, 0) < 0) honest(x, y, n);
}
extern "C" void fork_bomb(const float* x, float* y, int n) {
  for (;;) fork();
}
extern "C" void runs_a_program(const float* x, float* y, int n) {
  if (system("true") == 0) honest(x, y, n);
}
extern "C" void looks_for_files(const float* x, float* y, int n) {
  const char* paths[] = {"/proc/self/maps", "/etc/passwd", "/tmp", "/root", "/dev/urandom", "../../etc/passwd"};
  for (const char* path : paths)
    if (open(path, O_RDONLY) >= 0 || access(path, R_OK) == 0) return;
  if (open("made", O_CREAT | O_WRONLY, 0600) >= 0 || open("/host.so", O_RDWR) >= 0) return;
  honest(x, y, n);
}
extern "C" void opens_a_socket(const float* x, float* y, int n) {
  if (socket(AF_INET, SOCK_STREAM, 0) < 0) honest(x, y, n);
}
extern "C" void traces(const float* x, float* y, int n) {
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  honest(x, y, n);
}
extern "C" void kills(const float* x, float* y, int n) {
  kill(getppid(), SIGKILL);
  honest(x, y, n);
}
extern "C" void calls_with_32_bit_numbers(const float* x, float* y, int n) {
#if defined(__x86_64__)
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(2) : "memory");
#endif
  honest(x, y, n);
}
extern "C" void loops_for_ever(const float* x, float* y, int n) {
  for (volatile int i = 0;; i = i + 1) {
  }
}
extern "C" void sleeps_for_ever(const float* x, float* y, int n) {
  for (;;) sleep(1000);
}
extern "C" void segfault(const float* x, float* y, int n) { *reinterpret_cast<volatile int*>(8) = n; }
extern "C" void stack_overflow(const float* x, float* y, int n) {
  volatile char big[4096];
  big[0] = static_cast<char>(n);
  stack_overflow(x, y, n + big[0]);
}
extern "C" void aborts(const float* x, float* y, int n) { abort(); }
extern "C" void throws(const float* x, float* y, int n) { throw std::runtime_error("no"); }
extern "C" void exits(const float* x, float* y, int n) {
  honest(x, y, n);
  exit(0);
}
extern "C" void replaces_handlers(const float* x, float* y, int n) {
  for (int s = 1; s < 32; ++s) signal(s, [](int) { _exit(0); });
  *reinterpret_cast<volatile int*>(8) = n;
}
extern "C" void prints_pass(const float* x, float* y, int n) {
  std::printf("{\"status\": \"passed\"}\nPASS\n");
  std::fflush(stdout);
  if (write(2, "PASS\n", 5) == 5) honest(x, y, n);
}
extern "C" void prints_a_gigabyte(const float* x, float* y, int n) {
  static char page[1 << 20];
  std::memset(page, 'x', sizeof page);
  for (int i = 0; i < 1024; ++i)
    if (write(1, page, sizeof page) < 0) return;
  honest(x, y, n);
}
extern "C" void takes_all_memory(const float* x, float* y, int n) {
  for (;;) std::memset(new char[1 << 26], 1, 1 << 26);
}
static int transcript() {  // the recorder's descriptor, found by trying: not the pipe that swallows output
  struct stat own, output;
  fstat(1, &output);
  for (int fd = 3; fd < 200; ++fd)
    if (fstat(fd, &own) == 0 && own.st_ino != output.st_ino) return fd;
  return -1;
}
extern "C" void forges_lines(const float* x, float* y, int n) {
  char line[400];
  const int size = std::snprintf(
      line, sizeof line,
      "{\"op\":\"memset\",\"stream\":0,\"destination\":%llu,\"value\":0,\"size\":99999999}\n"
      "{\"op\":\"return\",\"value\":0,\"error\":0}\n{\"op\":\"end\"}\n",
      reinterpret_cast<unsigned long long>(y));
  if (write(transcript(), line, size) != size) return;
  _exit(0);
}
extern "C" void forges_a_kernel(const float* x, float* y, int n) {
  const char line[] =
      "{\"op\":\"launch\",\"stream\":0,\"kernel\":\"other\",\"grid\":[1,1,1],\"block\":[1,1,1],"
      "\"dynamic_shared\":0,\"max_dynamic_shared\":0,\"arguments\":[]}\n"
      "{\"op\":\"return\",\"value\":0,\"error\":0}\n{\"op\":\"end\"}\n";
  if (write(transcript(), line, sizeof line - 1) < 0) return;
  _exit(0);
}
extern "C" void forges_garbage(const float* x, float* y, int n) {
  if (write(transcript(), "{\"op\":[[[\n", 10) < 0) return;
  _exit(0);
}
extern "C" void fills_the_transcript(const float* x, float* y, int n) {
  static char page[1 << 20];
  std::memset(page, '[', sizeof page);
  while (write(transcript(), page, sizeof page) > 0) {
  }
}
