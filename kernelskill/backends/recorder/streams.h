// Streams, events and captured graphs of the launcher's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "transcript_writer.h"

namespace recorder {

// A copy from host memory inside a captured graph: the memory is read again at each launch of the graph.
struct CapturedHostCopy {
  const void* source;
  std::string bytes;
};

// A stream capture, later the graph made of it.
struct Capture {
  uint64_t id = 0;
  uint64_t origin_stream = 0;
  void* origin = nullptr;
  bool open = true;
  bool invalid = false;
  std::vector<CapturedHostCopy> host_copies;
};

struct Stream {
  uint64_t id = 0;
  bool blocking = true;  // whether it orders itself with the legacy default stream
  bool legacy = false;   // the legacy default stream itself
  bool alive = true;
  Capture* capture = nullptr;
};

// The stream behind a handle, or null where there is none.
Stream* find_stream(cudaStream_t handle);

// The handle that a launcher with a stream parameter is given; operations on it stand in stream 0.
cudaStream_t given_stream();

// Whether an operation may go to the stream now; sets the error where it may not.
cudaError_t ready_for_work(cudaStream_t handle, const char* what, Stream** stream);

// Whether a call that no capture can hold, such as a synchronisation, may happen now.
cudaError_t ready_for_host_call(const char* what);

// The line of an operation on a stream, with its graph where the stream is being captured.
Line operation_on(const char* name, const Stream& stream);

}  // namespace recorder
