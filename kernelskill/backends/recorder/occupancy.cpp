#include "occupancy.h"

#include <cuda_occupancy.h>

namespace recorder {
namespace {

cudaOccDeviceProp device_properties() {
  const Gpu& gpu = specification.gpu;
  cudaOccDeviceProp out;
  out.computeMajor = static_cast<int>(gpu.major);
  out.computeMinor = static_cast<int>(gpu.minor);
  out.maxThreadsPerBlock = static_cast<int>(Gpu::kMaxThreadsPerBlock);
  out.maxThreadsPerMultiprocessor = static_cast<int>(gpu.max_threads_per_sm);
  out.regsPerBlock = static_cast<int>(gpu.registers_per_sm);
  out.regsPerMultiprocessor = static_cast<int>(gpu.registers_per_sm);
  out.warpSize = 32;
  out.sharedMemPerBlock = Gpu::kSharedPerBlock;
  out.sharedMemPerMultiprocessor = gpu.shared_per_sm;
  out.numSms = static_cast<int>(gpu.sm_count);
  out.sharedMemPerBlockOptin = gpu.shared_per_block_optin;
  out.reservedSharedMemPerBlock = Gpu::kReservedShared;
  return out;
}

cudaOccFuncAttributes function_attributes(const Kernel& kernel) {
  cudaOccFuncAttributes out;
  out.maxThreadsPerBlock = static_cast<int>(kernel.max_threads != 0 ? kernel.max_threads : Gpu::kMaxThreadsPerBlock);
  out.numRegs = static_cast<int>(kernel.registers);
  out.sharedSizeBytes = kernel.static_shared;
  out.partitionedGCConfig = PARTITIONED_GC_OFF;
  out.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  out.maxDynamicSharedSizeBytes = kernel.allowed_dynamic_shared();
  out.numBlockBarriers = 1;
  return out;
}

}  // namespace

int blocks_per_sm(const Kernel& kernel, int threads, size_t dynamic_shared) {
  const uint64_t bound = kernel.max_threads != 0 ? kernel.max_threads : Gpu::kMaxThreadsPerBlock;
  if (threads <= 0) return -1;
  if (static_cast<uint64_t>(threads) > bound) return 0;
  const cudaOccDeviceProp device = device_properties();
  const cudaOccFuncAttributes function = function_attributes(kernel);
  const cudaOccDeviceState state;
  cudaOccResult result;
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, dynamic_shared) !=
      CUDA_OCC_SUCCESS)
    return -1;
  return result.activeBlocksPerMultiprocessor;
}

bool shared_for_blocks(const Kernel& kernel, int blocks, int threads, size_t* bytes) {
  const cudaOccDeviceProp device = device_properties();
  const cudaOccFuncAttributes function = function_attributes(kernel);
  const cudaOccDeviceState state;
  return cudaOccAvailableDynamicSMemPerBlock(bytes, &device, &function, &state, blocks, threads) == CUDA_OCC_SUCCESS;
}

}  // namespace recorder
