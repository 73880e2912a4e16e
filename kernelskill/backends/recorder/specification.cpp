#include "specification.h"

#include <unistd.h>

#include <sstream>

#include "transcript_writer.h"

namespace recorder {

Specification specification;

uint64_t Kernel::allowed_dynamic_shared() const {
  if (dynamic_shared_set) return max_dynamic_shared;
  return Gpu::kSharedPerBlock > static_shared ? Gpu::kSharedPerBlock - static_shared : 0;
}

namespace {

constexpr uint64_t kMostCalls = 256;

std::string read_everything(int descriptor) {
  std::string text;
  char part[65536];
  for (;;) {
    const ssize_t count = read(descriptor, part, sizeof part);
    if (count <= 0) return text;
    text.append(part, static_cast<size_t>(count));
  }
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

// The rest of the line, spaces included.
std::string rest_of(std::istringstream& words) {
  std::string text;
  std::getline(words >> std::ws, text);
  return text;
}

void read_gpu(std::istringstream& words, Gpu& gpu) {
  words >> gpu.major >> gpu.minor >> gpu.sm_count >> gpu.clock_khz >> gpu.memory_clock_khz >> gpu.bus_width >>
      gpu.l2_bytes >> gpu.memory_bytes >> gpu.registers_per_sm >> gpu.max_threads_per_sm >>
      gpu.max_blocks_per_sm >> gpu.shared_per_sm >> gpu.shared_per_block_optin;
  gpu.name = rest_of(words);
}

Kernel read_kernel(std::istringstream& words) {
  Kernel kernel;
  size_t count = 0;
  words >> kernel.name >> kernel.registers >> kernel.static_shared >> kernel.stack >> kernel.max_threads >> count;
  kernel.parameters.resize(count);
  for (KernelParameter& parameter : kernel.parameters) words >> parameter.offset >> parameter.size;
  return kernel;
}

Argument read_argument(std::istringstream& words) {
  Argument argument;
  std::string kind;
  words >> kind;
  if (kind == "pointer") {
    argument.kind = Argument::Kind::pointer;
    words >> argument.buffer >> argument.offset;
  } else if (kind == "stream") {
    argument.kind = Argument::Kind::stream;
  } else {
    std::string digits;
    words >> digits;
    argument.bytes = from_hex(digits);
  }
  return argument;
}

void read_line(const std::string& line, Specification& out) {
  std::istringstream words(line);
  std::string subject;
  words >> subject;
  if (subject == "gpu") {
    read_gpu(words, out.gpu);
  } else if (subject == "kernel") {
    Kernel kernel = read_kernel(words);
    out.kernels[kernel.name] = kernel;
  } else if (subject == "variable") {
    std::string name;
    words >> name;
    words >> out.variables[name];
  } else if (subject == "buffer") {
    Buffer buffer;
    words >> buffer.size;
    buffer.name = rest_of(words);
    out.buffers.push_back(buffer);
  } else if (subject == "argument") {
    out.arguments.back().push_back(read_argument(words));
  } else if (subject == "other") {
    out.arguments.emplace_back();
  } else if (subject == "symbol") {
    out.symbol = rest_of(words);
  } else if (subject == "root") {
    out.root = rest_of(words);
  } else if (subject == "run") {
    uint64_t count = 0;
    words >> out.layout >> out.cpu_seconds >> count;
    out.calls.resize(count < kMostCalls ? count : kMostCalls);
    for (uint64_t& arguments : out.calls) words >> arguments;
  } else {
    harness_failure("the specification holds an unknown line: " + subject);
  }
  if (words.fail()) harness_failure("the specification holds a line that cannot be read: " + line);
}

}  // namespace

Specification read_specification(int descriptor) {
  Specification out;
  std::istringstream lines(read_everything(descriptor));
  std::string line;
  while (std::getline(lines, line))
    if (!line.empty()) read_line(line, out);
  return out;
}

}  // namespace recorder
