// The recording CUDA runtime. This executable is the CUDA runtime of the candidate that it loads: the candidate's
// host object links against nothing, so that each of its CUDA calls resolves here and becomes a line of the
// transcript. It needs no GPU and no NVIDIA library.
//
//   recorder < specification > transcript
#include <dlfcn.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cerrno>
#include <cfenv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "device_memory.h"
#include "errors.h"
#include "faults.h"
#include "own_data.h"
#include "own_heap.h"
#include "sandbox.h"
#include "specification.h"
#include "streams.h"
#include "transcript_writer.h"

namespace recorder {
namespace {

constexpr size_t kSlotBytes = 32;            // of one argument, as in caller.py
constexpr size_t kClearedStackBytes = 1 << 20;
constexpr uint64_t kLooks = 4;  // at what the launcher remembers; more calls would show nothing else

using Caller = void (*)(void* function, const unsigned char* arguments, long long* result);

std::vector<unsigned char> lay_out(const std::vector<Argument>& arguments, const std::vector<Allocation*>& buffers) {
  std::vector<unsigned char> slots(kSlotBytes * (arguments.size() + 1));
  unsigned char* slot = slots.data();
  for (const Argument& argument : arguments) {
    if (argument.kind == Argument::Kind::pointer) {
      const uint64_t address = buffers.at(argument.buffer)->base + static_cast<uint64_t>(argument.offset);
      std::memcpy(slot, &address, sizeof address);
    } else if (argument.kind == Argument::Kind::stream) {
      const cudaStream_t stream = given_stream();
      std::memcpy(slot, &stream, sizeof stream);
    } else {
      std::memcpy(slot, argument.bytes.data(), argument.bytes.size());
    }
    slot += kSlotBytes;
  }
  return slots;
}

// Stand-ins for what this runtime lacks come last in the search order.
void load_stand_ins(const std::string& path) {
  if (access(path.c_str(), R_OK) == 0 && dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    harness_failure("the stand-ins cannot be loaded");
}

void* load(const std::string& path) {
  void* library = nullptr;
  {
    CandidateCode running;
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library != nullptr) return library;
  const std::string message = dlerror();
  const std::string mark = "undefined symbol: ";
  const size_t at = message.find(mark);
  if (at == std::string::npos) harness_failure("the host object cannot be loaded: " + message);
  refuse("the launcher calls " + message.substr(at + mark.size()) + ", which cannot be recorded", Direct::possible);
}

void* find_function(void* library, const char* name) {
  void* function = dlsym(library, name);
  if (function == nullptr) harness_failure(std::string("the host object lacks the symbol ") + name);
  return function;
}

// What a launcher leaves uninitialised, such as the padding of a structure, is zero instead of our leavings.
__attribute__((noinline, no_instrument_function)) void clear_stack() {
  volatile uint64_t unused[kClearedStackBytes / 8];
  for (volatile uint64_t& word : unused) word = 0;
}

// The number of the last error and the state of floating point are the launcher's own between its calls: what it left
// there it finds again, and whether that differs is looked at as its data are.
struct Leavings {
  uint64_t error = 0;
  uint64_t floating = 0;
};

Leavings leavings() {
#if defined(__x86_64__)
  return {static_cast<uint64_t>(errno), _mm_getcsr()};
#else
  return {static_cast<uint64_t>(errno), static_cast<uint64_t>(fegetround()) << 8 | fetestexcept(FE_ALL_EXCEPT)};
#endif
}

void leave_as(const Leavings& was) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(was.floating));
#endif
  errno = static_cast<int>(was.error);
}

void call(Caller caller, void* function, const std::vector<unsigned char>& arguments, uint64_t number, Leavings& left) {
  Line("call").number("number", number).write();
  flush_transcript();
  long long returned = 0;
  const Leavings ours = leavings();
  leave_as(left);
  {
    CandidateCode running;
    clear_stack();  // last, so that nothing of ours lies where the launcher's own will
    caller(function, arguments.data(), &returned);
  }
  left = leavings();
  leave_as(ours);
  if (lost_count_of_chunks()) refuse("the launcher takes thousands of pieces of host memory", Direct::possible);
  if (output_overflowed()) refuse("the launcher prints without end: tens of kilobytes in a call", Direct::broken);
  Line line("return");
  line.integer("value", returned).number("error", last_error());
  if (last_error() != cudaSuccess) {
    line.text("name", error_name(last_error())).text("reason", last_error_reason());
  }
  if (returned != 0) line.text("value_name", error_name(static_cast<cudaError_t>(returned)));
  line.write();
  flush_transcript();
}

int record() {
  if (!open_transcript(STDOUT_FILENO)) return 71;
  specification = read_specification(STDIN_FILENO);
  choose_layout(specification.layout);
  std::vector<Allocation*> buffers;
  for (const Buffer& buffer : specification.buffers)
    buffers.push_back(&allocate(buffer.size, Allocation::Kind::buffer, buffer.name));
  std::vector<std::vector<unsigned char>> arguments;
  for (const std::vector<Argument>& list : specification.arguments) arguments.push_back(lay_out(list, buffers));
  report_faults();
  const std::string prefix = enter_sandbox(specification.root, specification.cpu_seconds);
  Line("ready").write();
  flush_transcript();
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // else what was printed before would be remembered there
  load_stand_ins(prefix + "/missing.so");
  void* host = load(prefix + "/host.so");
  Leavings left;
#if defined(__x86_64__)
  left.floating = _mm_getcsr();
#endif
  OwnData own_data(prefix + "/host.so", {&left.error, &left.floating});
  void* function = find_function(host, specification.symbol.c_str());
  const auto caller = reinterpret_cast<Caller>(find_function(load(prefix + "/caller.so"), "kernelskill_call"));
  std::clock_t spent = 0;
  for (uint64_t number = 0; number < specification.calls.size(); ++number) {
    const std::clock_t began = std::clock();
    call(caller, function, arguments.at(specification.calls[number]), number, left);
    spent += std::clock() - began;
    if (number < kLooks) Line("own_data").number("changed", own_data.changed_since_last_look()).write();
  }
  Line("end").number("processor_us", static_cast<uint64_t>(spent) * 1000000 / CLOCKS_PER_SEC).write();
  flush_transcript();
  leave(0);
}

}  // namespace
}  // namespace recorder

RECORDER_API [[noreturn]] void kernelskill_missing(const char* name) {
  recorder::refuse(std::string("the launcher calls ") + name + ", which cannot be recorded",
                   recorder::Direct::possible);
}

int main() { return recorder::record(); }
