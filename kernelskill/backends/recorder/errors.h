// The runtime's error state: the last error, as cudaGetLastError reports it, and why it came.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#define RECORDER_API extern "C" __attribute__((visibility("default")))

namespace recorder {

// Sets the last error and returns it. `reason` says what was wrong, for people.
cudaError_t fail(cudaError_t code, const std::string& reason);

cudaError_t last_error();
const std::string& last_error_reason();

const char* error_name(cudaError_t code);

}  // namespace recorder
