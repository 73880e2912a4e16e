// What a launcher can ask about the device and its kernels, answered from the facts of the GPU in question.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "errors.h"
#include "launch.h"
#include "occupancy.h"
#include "specification.h"
#include "transcript_writer.h"

namespace recorder {
namespace {

constexpr uint64_t kL2PersistingShare = 16;  // sixteenths of the L2 cache; ten of them may persist
constexpr int kMaxAccessPolicyWindow = 134217728;

int persisting_bytes() {
  return specification.gpu.major >= 8 ? static_cast<int>(specification.gpu.l2_bytes * 10 / kL2PersistingShare) : 0;
}

bool limit_attribute(int attribute, int* out) {
  const Gpu& gpu = specification.gpu;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *out = 1024; return true;
    case cudaDevAttrMaxBlockDimZ: *out = 64; return true;
    case cudaDevAttrMaxGridDimX: *out = 2147483647; return true;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *out = 65535; return true;
    case cudaDevAttrMaxSharedMemoryPerBlock: *out = static_cast<int>(Gpu::kSharedPerBlock); return true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *out = static_cast<int>(gpu.shared_per_block_optin); return true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *out = static_cast<int>(gpu.shared_per_sm); return true;
    case cudaDevAttrReservedSharedMemoryPerBlock: *out = static_cast<int>(Gpu::kReservedShared); return true;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *out = static_cast<int>(gpu.max_threads_per_sm); return true;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *out = static_cast<int>(gpu.max_blocks_per_sm); return true;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *out = static_cast<int>(gpu.registers_per_sm); return true;
    case cudaDevAttrMaxPersistingL2CacheSize: *out = persisting_bytes(); return true;
    case cudaDevAttrMaxAccessPolicyWindowSize: *out = gpu.major >= 8 ? kMaxAccessPolicyWindow : 0; return true;
    case cudaDevAttrTotalConstantMemory: *out = 65536; return true;
    case cudaDevAttrMaxPitch: *out = 2147483647; return true;
    case cudaDevAttrTextureAlignment: *out = 512; return true;
    case cudaDevAttrTexturePitchAlignment: *out = 32; return true;
    default: return false;
  }
}

bool feature_attribute(int attribute, int* out) {
  const Gpu& gpu = specification.gpu;
  switch (attribute) {
    case cudaDevAttrWarpSize: *out = 32; return true;
    case cudaDevAttrMultiProcessorCount: *out = static_cast<int>(gpu.sm_count); return true;
    case cudaDevAttrClockRate: *out = static_cast<int>(gpu.clock_khz); return true;
    case cudaDevAttrMemoryClockRate: *out = static_cast<int>(gpu.memory_clock_khz); return true;
    case cudaDevAttrGlobalMemoryBusWidth: *out = static_cast<int>(gpu.bus_width); return true;
    case cudaDevAttrL2CacheSize: *out = static_cast<int>(gpu.l2_bytes); return true;
    case cudaDevAttrComputeCapabilityMajor: *out = static_cast<int>(gpu.major); return true;
    case cudaDevAttrComputeCapabilityMinor: *out = static_cast<int>(gpu.minor); return true;
    case cudaDevAttrClusterLaunch: *out = gpu.major >= 9; return true;
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrEccEnabled: *out = 1; return true;
    case cudaDevAttrAsyncEngineCount: *out = 3; return true;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: *out = gpu.minor == 0 ? 2 : 64; return true;
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrTccDriver:
    case cudaDevAttrIsMultiGpuBoard:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrHostNativeAtomicSupported: *out = 0; return true;
    default: return false;
  }
}

void fill_properties(cudaDeviceProp& out) {
  const Gpu& gpu = specification.gpu;
  std::memset(&out, 0, sizeof out);
  std::snprintf(out.name, sizeof out.name, "%s", gpu.name.c_str());
  out.totalGlobalMem = gpu.memory_bytes;
  out.sharedMemPerBlock = Gpu::kSharedPerBlock;
  out.regsPerBlock = static_cast<int>(gpu.registers_per_sm);
  out.warpSize = 32;
  out.memPitch = 2147483647;
  out.maxThreadsPerBlock = 1024;
  out.maxThreadsDim[0] = out.maxThreadsDim[1] = 1024;
  out.maxThreadsDim[2] = 64;
  out.maxGridSize[0] = 2147483647;
  out.maxGridSize[1] = out.maxGridSize[2] = 65535;
  out.totalConstMem = 65536;
  out.major = static_cast<int>(gpu.major);
  out.minor = static_cast<int>(gpu.minor);
  out.textureAlignment = 512;
  out.texturePitchAlignment = 32;
  out.multiProcessorCount = static_cast<int>(gpu.sm_count);
  out.concurrentKernels = 1;
  out.asyncEngineCount = 3;
  out.unifiedAddressing = 1;
  out.memoryBusWidth = static_cast<int>(gpu.bus_width);
  out.l2CacheSize = static_cast<int>(gpu.l2_bytes);
  out.persistingL2CacheMaxSize = persisting_bytes();
  out.maxThreadsPerMultiProcessor = static_cast<int>(gpu.max_threads_per_sm);
  out.streamPrioritiesSupported = 1;
  out.globalL1CacheSupported = 1;
  out.localL1CacheSupported = 1;
  out.sharedMemPerMultiprocessor = gpu.shared_per_sm;
  out.regsPerMultiprocessor = static_cast<int>(gpu.registers_per_sm);
  out.computePreemptionSupported = 1;
  out.canMapHostMemory = 1;
  out.managedMemory = 1;
  out.concurrentManagedAccess = 1;
  out.hostRegisterSupported = 1;
  out.ECCEnabled = 1;
  out.cooperativeLaunch = 1;
  out.sharedMemPerBlockOptin = gpu.shared_per_block_optin;
  out.maxBlocksPerMultiProcessor = static_cast<int>(gpu.max_blocks_per_sm);
  out.accessPolicyMaxWindowSize = gpu.major >= 8 ? kMaxAccessPolicyWindow : 0;
  out.reservedSharedMemPerBlock = Gpu::kReservedShared;
  out.memoryPoolsSupported = 1;
#if CUDART_VERSION >= 11080
  out.clusterLaunch = gpu.major >= 9;
#endif
#if CUDART_VERSION < 13000
  out.clockRate = static_cast<int>(gpu.clock_khz);
  out.memoryClockRate = static_cast<int>(gpu.memory_clock_khz);
  out.deviceOverlap = 1;
  out.singleToDoublePrecisionPerfRatio = gpu.minor == 0 ? 2 : 64;
#endif
}

cudaError_t no_kernel(const char* what) {
  return fail(cudaErrorInvalidDeviceFunction, std::string(what) + " of something that is no kernel");
}

cudaError_t no_device(const char* what, int device) {
  return fail(cudaErrorInvalidDevice, std::string(what) + " of device " + std::to_string(device) + "; there is one, device 0");
}

}  // namespace
}  // namespace recorder

using namespace recorder;

// ---- device

RECORDER_API cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : no_device("cudaSetDevice", device);
}

RECORDER_API cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
RECORDER_API cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

RECORDER_API cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return no_device("cudaDeviceGetAttribute", device);
  const int code = static_cast<int>(attribute);
  if (limit_attribute(code, value) || feature_attribute(code, value)) return cudaSuccess;
  refuse("the launcher asks for device attribute " + std::to_string(code) + " (cudaDeviceGetAttribute), which is not known here",
         Direct::possible);
}

// In CUDA 12 the header makes this name cudaGetDeviceProperties_v2, with that version's structure.
RECORDER_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return no_device("cudaGetDeviceProperties", device);
  fill_properties(*properties);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaDeviceReset() {
  refuse("the launcher calls cudaDeviceReset: it would end every buffer of its caller", Direct::broken);
}

RECORDER_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  note("cudaDeviceSetLimit " + std::to_string(static_cast<int>(limit)) + " to " + std::to_string(value) +
       " has no effect on the plan");
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  switch (static_cast<int>(limit)) {
    case cudaLimitStackSize: *value = 1024; return cudaSuccess;
    case cudaLimitPrintfFifoSize: *value = 8650752; return cudaSuccess;
    case cudaLimitMallocHeapSize: *value = 8 << 20; return cudaSuccess;
    case cudaLimitDevRuntimePendingLaunchCount: *value = 2048; return cudaSuccess;
    case cudaLimitMaxL2FetchGranularity: *value = 64; return cudaSuccess;
    case cudaLimitPersistingL2CacheSize: *value = persisting_bytes() * 3 / 10; return cudaSuccess;
    default: return fail(cudaErrorUnsupportedLimit, "cudaDeviceGetLimit");
  }
}

RECORDER_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }

RECORDER_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaCtxResetPersistingL2Cache() {
  note("cudaCtxResetPersistingL2Cache has no effect on the plan");
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaProfilerStart() { return cudaSuccess; }
RECORDER_API cudaError_t cudaProfilerStop() { return cudaSuccess; }

// ---- kernels

RECORDER_API cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  Kernel* kernel = find_kernel(function);
  if (kernel == nullptr) return no_kernel("cudaFuncSetAttribute");
  switch (static_cast<int>(attribute)) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || static_cast<uint64_t>(value) + kernel->static_shared > specification.gpu.shared_per_block_optin)
        return fail(cudaErrorInvalidValue, kernel->name + ": cudaFuncSetAttribute of " + std::to_string(value) +
                                               " bytes of dynamic shared memory");
      kernel->dynamic_shared_set = true;
      kernel->max_dynamic_shared = static_cast<uint64_t>(value);
      return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < -1 || value > 100) return fail(cudaErrorInvalidValue, "cudaFuncSetAttribute: a carveout above 100");
      kernel->carveout = value;
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed: kernel->large_clusters = value != 0; return cudaSuccess;
    default:
      refuse("the launcher sets function attribute " + std::to_string(static_cast<int>(attribute)) +
                 " (cudaFuncSetAttribute), which a plan cannot hold",
             Direct::possible);
  }
}

RECORDER_API cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return find_kernel(function) != nullptr ? cudaSuccess : no_kernel("cudaFuncSetCacheConfig");
}

RECORDER_API cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return find_kernel(function) != nullptr ? cudaSuccess : no_kernel("cudaFuncSetSharedMemConfig");
}

RECORDER_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* function) {
  const Kernel* kernel = find_kernel(function);
  if (kernel == nullptr) return no_kernel("cudaFuncGetAttributes");
  std::memset(out, 0, sizeof *out);
  const int version = static_cast<int>(specification.gpu.major * 10 + specification.gpu.minor);
  out->sharedSizeBytes = kernel->static_shared;
  out->localSizeBytes = kernel->stack;
  out->maxThreadsPerBlock = static_cast<int>(kernel->max_threads != 0 ? kernel->max_threads : 1024);
  out->numRegs = static_cast<int>(kernel->registers);
  out->ptxVersion = version;
  out->binaryVersion = version;
  out->maxDynamicSharedSizeBytes = static_cast<int>(kernel->allowed_dynamic_shared());
  out->preferredShmemCarveout = kernel->carveout;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                               int threads, size_t dynamic_shared,
                                                                               unsigned) {
  const Kernel* kernel = find_kernel(function);
  if (kernel == nullptr) return no_kernel("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const int each = blocks_per_sm(*kernel, threads, dynamic_shared);
  if (each < 0) return fail(cudaErrorInvalidValue, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  *blocks = each;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                                      int threads, size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic_shared, 0);
}

RECORDER_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                                   int threads) {
  const Kernel* kernel = find_kernel(function);
  if (kernel == nullptr) return no_kernel("cudaOccupancyAvailableDynamicSMemPerBlock");
  if (!shared_for_blocks(*kernel, blocks, threads, bytes))
    return fail(cudaErrorInvalidValue, "cudaOccupancyAvailableDynamicSMemPerBlock");
  return cudaSuccess;
}
