// Tensor maps. A real one holds an encoded address; a marked block stands for it, and the worker encodes the
// real one from the arguments written down here.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>

#include "errors.h"
#include "transcript_writer.h"

#undef cuTensorMapEncodeTiled
#undef cudaGetDriverEntryPoint
#undef cudaGetDriverEntryPointByVersion

namespace recorder {
namespace {

constexpr char kMark[9] = "sensormT";
constexpr unsigned kMaxRank = 5;
uint64_t next_map = 0;

bool is_legal(cuuint32_t rank, const void* address, const cuuint64_t* dimensions, const cuuint64_t* strides,
              const cuuint32_t* box, const cuuint32_t* element_strides) {
  if (rank < 1 || rank > kMaxRank || reinterpret_cast<uint64_t>(address) % 16 != 0) return false;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (dimensions[i] == 0 || dimensions[i] > (1ull << 32)) return false;
    if (box[i] == 0 || box[i] > 256) return false;
    if (element_strides[i] == 0 || element_strides[i] > 8) return false;
    if (i + 1 < rank && (strides[i] % 16 != 0 || strides[i] >= (1ull << 40))) return false;
  }
  return true;
}

}  // namespace
}  // namespace recorder

using namespace recorder;

RECORDER_API CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                             void* address, const cuuint64_t* dimensions,
                                             const cuuint64_t* strides, const cuuint32_t* box,
                                             const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                             CUtensorMapFloatOOBfill out_of_bounds) {
  if (!is_legal(rank, address, dimensions, strides, box, element_strides)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t boxes[kMaxRank], steps[kMaxRank];
  for (cuuint32_t i = 0; i < rank; ++i) {
    boxes[i] = box[i];
    steps[i] = element_strides[i];
  }
  const uint64_t modes[] = {static_cast<uint64_t>(interleave), static_cast<uint64_t>(swizzle),
                            static_cast<uint64_t>(promotion), static_cast<uint64_t>(out_of_bounds)};
  const uint64_t id = next_map++;
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, kMark, 8);
  std::memcpy(reinterpret_cast<char*>(map) + 8, &id, sizeof id);
  count_operation();
  Line("encode_tensor_map")
      .number("id", id)
      .number("data_type", static_cast<uint64_t>(type))
      .number("address", reinterpret_cast<uint64_t>(address))
      .numbers("dimensions", reinterpret_cast<const uint64_t*>(dimensions), rank)
      .numbers("strides", reinterpret_cast<const uint64_t*>(strides), rank - 1)
      .numbers("box", boxes, rank)
      .numbers("element_strides", steps, rank)
      .numbers("modes", modes, 4)
      .write();
  return CUDA_SUCCESS;
}

static cudaError_t find_entry_point(const char* name, void** out, cudaDriverEntryPointQueryResult* result) {
  if (std::strcmp(name, "cuTensorMapEncodeTiled") != 0)
    refuse(std::string("the launcher asks for the driver function ") + name + ", which cannot be recorded",
           Direct::possible);
  *out = reinterpret_cast<void*>(&cuTensorMapEncodeTiled);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaGetDriverEntryPoint(const char* name, void** out, unsigned long long,
                                                 cudaDriverEntryPointQueryResult* result) {
  return find_entry_point(name, out, result);
}

RECORDER_API cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned,
                                                          unsigned long long,
                                                          cudaDriverEntryPointQueryResult* result) {
  return find_entry_point(name, out, result);
}
