// Copies, fills and device variables.
#include <cuda_runtime_api.h>

#include <cstring>
#include <map>

#include "device_memory.h"
#include "errors.h"
#include "specification.h"
#include "streams.h"
#include "symbols.h"
#include "transcript_writer.h"

namespace recorder {
namespace {

struct Symbol {
  std::string name;
  uint64_t size = 0;
  Allocation* allocation = nullptr;  // made on first use
};

std::map<const void*, Symbol> symbols;

std::string decimal(uint64_t value) { return std::to_string(value); }

[[noreturn]] void refuse_readback(const char* what) {
  refuse(std::string("the launcher reads device memory on the host (") + what +
             "): what it reads could steer its launches",
         Direct::possible);
}

cudaError_t out_of_span(const char* what, size_t size) {
  return fail(cudaErrorInvalidValue, std::string(what) + " of " + decimal(size) + " bytes outside its memory");
}

// Whether the runtime refuses the stated direction: a side said to be the device's must be, a side said to be
// the host's may be the device's after all.
bool direction_is_wrong(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
    case cudaMemcpyHostToHost: return false;
    case cudaMemcpyHostToDevice: return !to_device;
    case cudaMemcpyDeviceToHost: return !from_device;
    case cudaMemcpyDeviceToDevice: return !to_device || !from_device;
    case cudaMemcpyDefault: return false;
  }
  return true;
}

cudaError_t copy_from_host(void* destination, const void* source, size_t size, Stream& stream) {
  count_host_bytes(size);
  operation_on("copy_host", stream)
      .number("destination", reinterpret_cast<uint64_t>(destination))
      .bytes("data", source, size)
      .write();
  if (stream.capture != nullptr)
    stream.capture->host_copies.push_back({source, std::string(static_cast<const char*>(source), size)});
  return cudaSuccess;
}

cudaError_t copy(void* destination, const void* source, size_t size, cudaMemcpyKind kind, cudaStream_t handle,
                 bool asynchronous, const char* what) {
  Stream* stream = nullptr;
  if (const cudaError_t code = ready_for_work(handle, what, &stream)) return code;
  if (!asynchronous)
    if (const cudaError_t code = ready_for_host_call(what)) return code;
  if (size == 0) return cudaSuccess;
  const bool to_device = is_device_address(destination), from_device = is_device_address(source);
  if (from_device && !to_device) refuse_readback(what);
  if (direction_is_wrong(kind, to_device, from_device))
    return fail(cudaErrorInvalidValue, std::string(what) + " in another direction than its pointers");
  if (!to_device) {
    std::memcpy(destination, source, size);
    return cudaSuccess;
  }
  if (find_span(destination, size) == nullptr || (from_device && find_span(source, size) == nullptr))
    return out_of_span(what, size);
  if (from_device)
    operation_on("copy_device", *stream)
        .number("destination", reinterpret_cast<uint64_t>(destination))
        .number("source", reinterpret_cast<uint64_t>(source))
        .number("size", size)
        .write();
  else
    copy_from_host(destination, source, size, *stream);
  if (!asynchronous && !from_device) {
    count_operation();
    Line("synchronize").text("scope", "copy").number("stream", stream->id).number("event", 0).write();
  }
  return cudaSuccess;
}

// Bytes from the first to the last of a block of rows.
size_t rows_span(size_t pitch, size_t width, size_t height) { return pitch * (height - 1) + width; }

cudaError_t copy_rows(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                      size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t handle, bool asynchronous,
                      const char* what) {
  Stream* stream = nullptr;
  if (const cudaError_t code = ready_for_work(handle, what, &stream)) return code;
  if (!asynchronous)
    if (const cudaError_t code = ready_for_host_call(what)) return code;
  if (width == 0 || height == 0) return cudaSuccess;
  constexpr size_t kLargest = 1ull << 40;
  if (width > destination_pitch || width > source_pitch || height > (1u << 30) || destination_pitch > kLargest ||
      source_pitch > kLargest)
    return fail(cudaErrorInvalidPitchValue, std::string(what) + " with a pitch below its width");
  const bool to_device = is_device_address(destination), from_device = is_device_address(source);
  if (from_device && !to_device) refuse_readback(what);
  if (direction_is_wrong(kind, to_device, from_device))
    return fail(cudaErrorInvalidValue, std::string(what) + " in another direction than its pointers");
  const auto* rows = static_cast<const char*>(source);
  if (!to_device) {
    for (size_t y = 0; y < height; ++y)
      std::memcpy(static_cast<char*>(destination) + y * destination_pitch, rows + y * source_pitch, width);
    return cudaSuccess;
  }
  const size_t destination_span = rows_span(destination_pitch, width, height);
  if (find_span(destination, destination_span) == nullptr ||
      (from_device && find_span(source, rows_span(source_pitch, width, height)) == nullptr))
    return out_of_span(what, destination_span);
  if (from_device) {
    operation_on("copy_device_2d", *stream)
        .number("destination", reinterpret_cast<uint64_t>(destination))
        .number("destination_pitch", destination_pitch)
        .number("source", reinterpret_cast<uint64_t>(source))
        .number("source_pitch", source_pitch)
        .number("width", width)
        .number("height", height)
        .write();
    return cudaSuccess;
  }
  for (size_t y = 0; y < height; ++y)
    copy_from_host(static_cast<char*>(destination) + y * destination_pitch, rows + y * source_pitch, width, *stream);
  if (!asynchronous) {
    count_operation();
    Line("synchronize").text("scope", "copy").number("stream", stream->id).number("event", 0).write();
  }
  return cudaSuccess;
}

cudaError_t fill(void* destination, int value, size_t size, cudaStream_t handle, const char* what) {
  Stream* stream = nullptr;
  if (const cudaError_t code = ready_for_work(handle, what, &stream)) return code;
  if (size == 0) return cudaSuccess;
  if (find_span(destination, size) == nullptr) return out_of_span(what, size);
  operation_on("memset", *stream)
      .number("destination", reinterpret_cast<uint64_t>(destination))
      .number("value", static_cast<unsigned char>(value))
      .number("size", size)
      .write();
  return cudaSuccess;
}

cudaError_t fill_rows(void* destination, size_t pitch, int value, size_t width, size_t height,
                      cudaStream_t stream, const char* what) {
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > pitch || height > (1u << 30) || pitch > (1ull << 40))
    return fail(cudaErrorInvalidValue, std::string(what) + " with a pitch below its width");
  if (find_span(destination, rows_span(pitch, width, height)) == nullptr)
    return out_of_span(what, rows_span(pitch, width, height));
  if (width == pitch) return fill(destination, value, pitch * height, stream, what);
  for (size_t y = 0; y < height; ++y)
    if (const cudaError_t code = fill(static_cast<char*>(destination) + y * pitch, value, width, stream, what))
      return code;
  return cudaSuccess;
}

Symbol* find_symbol(const void* host) {
  const auto found = symbols.find(host);
  if (found == symbols.end()) return nullptr;
  Symbol& symbol = found->second;
  if (symbol.allocation == nullptr)
    symbol.allocation = &allocate(symbol.size, Allocation::Kind::symbol, symbol.name);
  return &symbol;
}

cudaError_t no_symbol(const char* what) {
  return fail(cudaErrorInvalidSymbol, std::string(what) + " of a variable that the device code lacks");
}

// The address of `count` bytes at `offset` of a device variable, or null with the error set.
char* inside_symbol(const void* host, size_t count, size_t offset, const char* what, cudaError_t* code) {
  const Symbol* symbol = find_symbol(host);
  if (symbol == nullptr) {
    *code = no_symbol(what);
    return nullptr;
  }
  if (offset > symbol->size || count > symbol->size - offset) {
    *code = out_of_span(what, count);
    return nullptr;
  }
  return reinterpret_cast<char*>(symbol->allocation->base + offset);
}

cudaError_t copy_to_symbol(const void* host, const void* source, size_t count, size_t offset, cudaMemcpyKind kind,
                           cudaStream_t stream, bool asynchronous, const char* what) {
  cudaError_t code = cudaSuccess;
  char* address = inside_symbol(host, count, offset, what, &code);
  return address == nullptr ? code : copy(address, source, count, kind, stream, asynchronous, what);
}

cudaError_t copy_from_symbol(void* destination, const void* host, size_t count, size_t offset, cudaMemcpyKind kind,
                             cudaStream_t stream, bool asynchronous, const char* what) {
  cudaError_t code = cudaSuccess;
  const char* address = inside_symbol(host, count, offset, what, &code);
  return address == nullptr ? code : copy(destination, address, count, kind, stream, asynchronous, what);
}

}  // namespace

void register_symbol(const void* host, const char* name) {
  const auto found = specification.variables.find(name);
  if (found == specification.variables.end()) return;
  symbols[host] = Symbol{name, found->second, nullptr};
}

}  // namespace recorder

using namespace recorder;

// ---- copies and fills

RECORDER_API cudaError_t cudaMemcpy(void* destination, const void* source, size_t size, cudaMemcpyKind kind) {
  return copy(destination, source, size, kind, nullptr, false, "cudaMemcpy");
}

RECORDER_API cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t size, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
  return copy(destination, source, size, kind, stream, true, "cudaMemcpyAsync");
}

RECORDER_API cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source,
                                      size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return copy_rows(destination, destination_pitch, source, source_pitch, width, height, kind, nullptr, false,
                   "cudaMemcpy2D");
}

RECORDER_API cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source,
                                           size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                           cudaStream_t stream) {
  return copy_rows(destination, destination_pitch, source, source_pitch, width, height, kind, stream, true,
                   "cudaMemcpy2DAsync");
}

RECORDER_API cudaError_t cudaMemset(void* destination, int value, size_t size) {
  return fill(destination, value, size, nullptr, "cudaMemset");
}

RECORDER_API cudaError_t cudaMemsetAsync(void* destination, int value, size_t size, cudaStream_t stream) {
  return fill(destination, value, size, stream, "cudaMemsetAsync");
}

RECORDER_API cudaError_t cudaMemset2D(void* destination, size_t pitch, int value, size_t width, size_t height) {
  return fill_rows(destination, pitch, value, width, height, nullptr, "cudaMemset2D");
}

RECORDER_API cudaError_t cudaMemset2DAsync(void* destination, size_t pitch, int value, size_t width,
                                           size_t height, cudaStream_t stream) {
  return fill_rows(destination, pitch, value, width, height, stream, "cudaMemset2DAsync");
}

// ---- device variables

RECORDER_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t count, size_t offset,
                                            cudaMemcpyKind kind) {
  return copy_to_symbol(symbol, source, count, offset, kind, nullptr, false, "cudaMemcpyToSymbol");
}

RECORDER_API cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t count,
                                                 size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_to_symbol(symbol, source, count, offset, kind, stream, true, "cudaMemcpyToSymbolAsync");
}

RECORDER_API cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, size_t count, size_t offset,
                                              cudaMemcpyKind kind) {
  return copy_from_symbol(destination, symbol, count, offset, kind, nullptr, false, "cudaMemcpyFromSymbol");
}

RECORDER_API cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const void* symbol, size_t count,
                                                   size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_from_symbol(destination, symbol, count, offset, kind, stream, true, "cudaMemcpyFromSymbolAsync");
}

RECORDER_API cudaError_t cudaGetSymbolAddress(void** out, const void* host) {
  const Symbol* symbol = find_symbol(host);
  if (symbol == nullptr) return no_symbol("cudaGetSymbolAddress");
  *out = reinterpret_cast<void*>(symbol->allocation->base);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaGetSymbolSize(size_t* size, const void* host) {
  const Symbol* symbol = find_symbol(host);
  if (symbol == nullptr) return no_symbol("cudaGetSymbolSize");
  *size = symbol->size;
  return cudaSuccess;
}
