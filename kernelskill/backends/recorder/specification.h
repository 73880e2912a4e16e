// What the recorder is told about the device, the build and the call. Read once, before any candidate code runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace recorder {

struct KernelParameter {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A kernel of the device code, with what the launcher set for it.
struct Kernel {
  std::string name;
  uint64_t registers = 0;
  uint64_t static_shared = 0;
  uint64_t stack = 0;
  uint64_t max_threads = 0;  // from __launch_bounds__; 0: none
  std::vector<KernelParameter> parameters;
  bool dynamic_shared_set = false;
  uint64_t max_dynamic_shared = 0;  // as set
  int carveout = -1;
  bool large_clusters = false;

  // Dynamic shared memory that a launch may ask for.
  uint64_t allowed_dynamic_shared() const;
};

struct Gpu {
  std::string name;
  uint64_t major = 0, minor = 0;
  uint64_t sm_count = 0, clock_khz = 0, memory_clock_khz = 0, bus_width = 0;
  uint64_t l2_bytes = 0, memory_bytes = 0;
  uint64_t registers_per_sm = 0, max_threads_per_sm = 0, max_blocks_per_sm = 0;
  uint64_t shared_per_sm = 0, shared_per_block_optin = 0;
  static constexpr uint64_t kSharedPerBlock = 49152;
  static constexpr uint64_t kReservedShared = 1024;
  static constexpr uint64_t kMaxThreadsPerBlock = 1024;
};

struct Buffer {
  std::string name;
  uint64_t size = 0;
};

// One argument of the launcher: a pointer into a buffer, the stream, or plain bytes.
struct Argument {
  enum class Kind { pointer, stream, bytes } kind = Kind::bytes;
  uint64_t buffer = 0;
  int64_t offset = 0;
  std::string bytes;
};

struct Specification {
  Gpu gpu;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, uint64_t> variables;  // device variable to size
  std::vector<Buffer> buffers;
  // One list of arguments a call that is made; the last is the one that counts.
  std::vector<std::vector<Argument>> arguments = {{}};
  std::string symbol;
  std::string root;  // the only folder that candidate code may see
  uint64_t layout = 0;
  std::vector<uint64_t> calls;  // which arguments each call is made with
  uint64_t cpu_seconds = 10;
};

Specification read_specification(int descriptor);

// The one specification of this process.
extern Specification specification;

}  // namespace recorder
