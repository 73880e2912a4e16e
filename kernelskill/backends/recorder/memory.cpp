// Allocation on the device and of pinned host memory.
#include <cstdlib>
#include <cstring>
#include <map>

#include "device_memory.h"
#include "errors.h"
#include "own_heap.h"
#include "specification.h"
#include "streams.h"
#include "transcript_writer.h"

namespace recorder {
namespace {

constexpr size_t kPitchAlignment = 512;

std::map<const void*, size_t> pinned;

std::string decimal(uint64_t value) { return std::to_string(value); }

[[noreturn]] void refuse_call(const char* what, const char* why) {
  refuse(std::string("the launcher calls ") + what + ": " + why, Direct::possible);
}

cudaError_t allocate_temporary(void** out, size_t size, bool asynchronous, cudaStream_t handle, const char* what) {
  Stream* stream = find_stream(nullptr);
  if (asynchronous) {
    if (const cudaError_t code = ready_for_work(handle, what, &stream)) return code;
    if (stream->capture != nullptr) refuse("the launcher allocates memory inside a captured graph", Direct::possible);
  } else if (const cudaError_t code = ready_for_host_call(what)) {
    return code;
  }
  if (size == 0) {
    *out = nullptr;
    return cudaSuccess;
  }
  const uint64_t memory = specification.gpu.memory_bytes;
  if (size > memory || bytes_in_use() > memory - size)
    return fail(cudaErrorMemoryAllocation, std::string(what) + " of " + decimal(size) + " bytes");
  const Allocation& made = allocate(size, Allocation::Kind::temporary, "");
  *out = reinterpret_cast<void*>(made.base);
  count_operation();
  Line line("allocate");
  line.number("allocation", made.id).flag("asynchronous", asynchronous).number("stream", stream->id).write();
  return cudaSuccess;
}

cudaError_t release_temporary(void* pointer, bool asynchronous, cudaStream_t handle, const char* what) {
  Stream* stream = find_stream(nullptr);
  if (asynchronous) {
    if (const cudaError_t code = ready_for_work(handle, what, &stream)) return code;
    if (stream->capture != nullptr) refuse("the launcher frees memory inside a captured graph", Direct::possible);
  } else if (const cudaError_t code = ready_for_host_call(what)) {
    return code;
  }
  if (pointer == nullptr) return cudaSuccess;
  Allocation* found = find_allocation(pointer);
  const bool exact = found != nullptr && found->base == reinterpret_cast<uint64_t>(pointer);
  if (!exact || found->kind != Allocation::Kind::temporary)
    refuse(std::string("the launcher frees memory that it did not allocate (") + what + ")", Direct::broken);
  if (found->freed) refuse(std::string("the launcher frees memory twice (") + what + ")", Direct::broken);
  release(*found);
  count_operation();
  Line("release")
      .number("allocation", found->id)
      .flag("asynchronous", asynchronous)
      .number("stream", stream->id)
      .write();
  return cudaSuccess;
}

// Pinned memory is ordinary memory here. Its place is written down, to name it when a kernel is given it.
cudaError_t allocate_pinned(void** out, size_t size) {
  *out = std::calloc(1, size > 0 ? size : 1);
  if (*out == nullptr) return fail(cudaErrorMemoryAllocation, "pinned host memory of " + decimal(size) + " bytes");
  pinned[*out] = size;
  give_to_candidate(*out, size);
  Line("pinned").number("base", reinterpret_cast<uint64_t>(*out)).number("size", size).write();
  return cudaSuccess;
}

}  // namespace

}  // namespace recorder

using namespace recorder;

// ---- allocation

RECORDER_API cudaError_t cudaMalloc(void** out, size_t size) {
  return allocate_temporary(out, size, false, nullptr, "cudaMalloc");
}

RECORDER_API cudaError_t cudaMallocAsync(void** out, size_t size, cudaStream_t stream) {
  return allocate_temporary(out, size, true, stream, "cudaMallocAsync");
}

RECORDER_API cudaError_t cudaMallocFromPoolAsync(void** out, size_t size, cudaMemPool_t, cudaStream_t stream) {
  return allocate_temporary(out, size, true, stream, "cudaMallocFromPoolAsync");
}

RECORDER_API cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (height != 0 && *pitch > specification.gpu.memory_bytes / height)
    return fail(cudaErrorMemoryAllocation, "cudaMallocPitch of more than the GPU holds");
  return allocate_temporary(out, *pitch * height, false, nullptr, "cudaMallocPitch");
}

RECORDER_API cudaError_t cudaFree(void* pointer) { return release_temporary(pointer, false, nullptr, "cudaFree"); }

RECORDER_API cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return release_temporary(pointer, true, stream, "cudaFreeAsync");
}

RECORDER_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static char only_pool;
  *pool = reinterpret_cast<cudaMemPool_t>(&only_pool);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}

RECORDER_API cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }

RECORDER_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return cudaDeviceGetDefaultMemPool(pool, 0);
}

RECORDER_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
RECORDER_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
RECORDER_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }

RECORDER_API cudaError_t cudaMallocHost(void** out, size_t size) { return allocate_pinned(out, size); }

RECORDER_API cudaError_t cudaHostAlloc(void** out, size_t size, unsigned flags) {
  if ((flags & cudaHostAllocMapped) != 0)
    refuse_call("cudaHostAlloc with cudaHostAllocMapped", "memory that host and device share");
  return allocate_pinned(out, size);
}

RECORDER_API cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  if (pinned.erase(pointer) != 1) return fail(cudaErrorInvalidValue, "cudaFreeHost of something else");
  std::free(pointer);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaHostGetDevicePointer(void**, void*, unsigned) {
  refuse_call("cudaHostGetDevicePointer", "memory that host and device share");
}

RECORDER_API cudaError_t cudaHostRegister(void*, size_t, unsigned) {
  refuse_call("cudaHostRegister", "memory that host and device share");
}

RECORDER_API cudaError_t cudaMallocManaged(void**, size_t, unsigned) {
  refuse_call("cudaMallocManaged", "memory that host and device share");
}

RECORDER_API cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  const uint64_t memory = specification.gpu.memory_bytes;
  *total = memory;
  *available = memory > bytes_in_use() ? memory - bytes_in_use() : 0;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  std::memset(attributes, 0, sizeof *attributes);
  const auto above = pinned.upper_bound(pointer);
  const bool is_pinned = above != pinned.begin() &&
                         pointer < static_cast<const char*>(std::prev(above)->first) + std::prev(above)->second;
  if (is_device_address(pointer)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(pointer);
  } else if (is_pinned) {
    attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = const_cast<void*>(pointer);
    attributes->devicePointer = const_cast<void*>(pointer);
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -2;
    attributes->hostPointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}
