// Registration of kernels and variables, and every way to launch a kernel.
#include "launch.h"

#include <cstring>
#include <map>
#include <vector>

#include "errors.h"
#include "occupancy.h"
#include "streams.h"
#include "symbols.h"
#include "transcript_writer.h"

namespace recorder {
namespace {

struct PushedConfiguration {
  dim3 grid, block;
  size_t dynamic_shared;
  void* stream;
};

// What launch attributes add to a launch.
struct Extras {
  bool cooperative = false;
  bool programmatic = false;
  bool clustered = false;
  dim3 cluster{1, 1, 1};
  int carveout = -1;
};

struct Problem {
  cudaError_t code = cudaSuccess;
  std::string reason;
};

std::map<const void*, Kernel*> kernel_of_stub;
std::map<const void*, std::string> unknown_stubs;
std::vector<PushedConfiguration> pushed;

// What a launch of an impossible shape answers; the same for bounds of the kernel since CUDA 13.
#if CUDART_VERSION >= 13000
constexpr cudaError_t kBadShape = cudaErrorInvalidValue;
constexpr cudaError_t kAboveBounds = cudaErrorInvalidValue;
#else
constexpr cudaError_t kBadShape = cudaErrorInvalidConfiguration;
constexpr cudaError_t kAboveBounds = cudaErrorLaunchOutOfResources;
#endif

std::string decimal(uint64_t value) { return std::to_string(value); }

std::string shape(const dim3& d) { return decimal(d.x) + "x" + decimal(d.y) + "x" + decimal(d.z); }

Problem check_block(const Kernel& kernel, const dim3& block) {
  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  if (threads == 0) return {kBadShape, "an empty block of " + shape(block)};
  if (threads > Gpu::kMaxThreadsPerBlock || block.x > 1024 || block.y > 1024 || block.z > 64)
    return {kBadShape, "a block of " + shape(block) + " threads"};
  if (kernel.max_threads != 0 && threads > kernel.max_threads)
    return {kAboveBounds, "a block of " + decimal(threads) +
                                               " threads, above its __launch_bounds__ of " +
                                               decimal(kernel.max_threads)};
  const uint64_t warps = (threads + 31) / 32;
  const uint64_t registers = (kernel.registers * 32 + 255) / 256 * 256 * ((warps + 3) / 4 * 4);
  if (registers > specification.gpu.registers_per_sm)
    return {cudaErrorLaunchOutOfResources, decimal(kernel.registers) + " registers a thread in a block of " +
                                               decimal(threads) + " threads"};
  return {};
}

Problem check_grid(const dim3& grid) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return {kBadShape, "an empty grid of " + shape(grid)};
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    return {kBadShape, "a grid of " + shape(grid) + " blocks"};
  return {};
}

Problem check_shared(const Kernel& kernel, size_t dynamic_shared) {
  const uint64_t optin = specification.gpu.shared_per_block_optin;
  if (dynamic_shared > optin || dynamic_shared + kernel.static_shared > optin)
    return {cudaErrorInvalidValue, decimal(dynamic_shared + kernel.static_shared) +
                                       " bytes of shared memory, limit " + decimal(optin)};
  const uint64_t allowed = kernel.allowed_dynamic_shared();
  if (dynamic_shared > allowed)
    return {cudaErrorInvalidValue, decimal(dynamic_shared) + " bytes of dynamic shared memory, above the " +
                                       decimal(allowed) + " that cudaFuncSetAttribute allows"};
  return {};
}

Problem check_cluster(const Kernel& kernel, const dim3& grid, const Extras& extras) {
  if (!extras.clustered) return {};
  if (specification.gpu.major < 9) return {cudaErrorNotSupported, "thread block clusters on this GPU"};
  const dim3& cluster = extras.cluster;
  const uint64_t size = static_cast<uint64_t>(cluster.x) * cluster.y * cluster.z;
  if (size == 0 || size > (kernel.large_clusters ? 16u : 8u))
    return {cudaErrorInvalidClusterSize, "a cluster of " + shape(cluster) + " blocks"};
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    return {cudaErrorInvalidClusterSize, "a grid of " + shape(grid) + " that clusters of " + shape(cluster) +
                                             " do not divide"};
  return {};
}

Problem check_cooperative(const Kernel& kernel, const dim3& grid, const dim3& block, size_t dynamic_shared,
                          const Extras& extras) {
  if (!extras.cooperative) return {};
  const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
  const int each = blocks_per_sm(kernel, static_cast<int>(block.x * block.y * block.z), dynamic_shared);
  if (each >= 0 && blocks > static_cast<uint64_t>(each) * specification.gpu.sm_count)
    return {cudaErrorCooperativeLaunchTooLarge,
            "a cooperative grid of " + decimal(blocks) + " blocks, more than fit the GPU at once"};
  return {};
}

Problem check_launch(const Kernel& kernel, const dim3& grid, const dim3& block, size_t dynamic_shared,
                     const Extras& extras) {
  Problem problem = check_grid(grid);
  if (problem.code == cudaSuccess) problem = check_block(kernel, block);
  if (problem.code == cudaSuccess) problem = check_shared(kernel, dynamic_shared);
  if (problem.code == cudaSuccess) problem = check_cluster(kernel, grid, extras);
  if (problem.code == cudaSuccess) problem = check_cooperative(kernel, grid, block, dynamic_shared, extras);
  return problem;
}

void write_dim(Line& line, const char* key, const dim3& d) {
  const uint64_t values[] = {d.x, d.y, d.z};
  line.numbers(key, values, 3);
}

cudaError_t unknown_function(const void* function) {
  const auto found = unknown_stubs.find(function);
  return fail(cudaErrorInvalidDeviceFunction,
              found == unknown_stubs.end() ? std::string("a launch of something that is no kernel")
                                           : "a launch of " + found->second + ", which the device code lacks");
}

cudaError_t launch(const void* function, const dim3& grid, const dim3& block, void** arguments,
                   size_t dynamic_shared, void* stream_handle, const Extras& extras) {
  Kernel* kernel = find_kernel(function);
  if (kernel == nullptr) return unknown_function(function);
  Stream* stream = nullptr;
  if (const cudaError_t code = ready_for_work(static_cast<cudaStream_t>(stream_handle), "a launch", &stream))
    return code;
  const Problem problem = check_launch(*kernel, grid, block, dynamic_shared, extras);
  if (problem.code != cudaSuccess) return fail(problem.code, kernel->name + ": " + problem.reason);
  Line line = operation_on("launch", *stream);
  line.text("kernel", kernel->name);
  write_dim(line, "grid", grid);
  write_dim(line, "block", block);
  line.number("dynamic_shared", dynamic_shared).number("max_dynamic_shared", kernel->max_dynamic_shared);
  const int carveout = extras.carveout >= 0 ? extras.carveout : kernel->carveout;
  if (carveout >= 0) line.integer("carveout", carveout);
  if (extras.cooperative) line.flag("cooperative", true);
  if (extras.programmatic) line.flag("programmatic", true);
  if (extras.clustered) write_dim(line, "cluster", extras.cluster);
  line.open_list("arguments");
  for (size_t i = 0; i < kernel->parameters.size(); ++i)
    line.list_bytes(arguments[i], kernel->parameters[i].size);
  line.close_list().write();
  return cudaSuccess;
}

Extras read_attributes(const cudaLaunchConfig_t& configuration) {
  Extras extras;
  for (unsigned i = 0; i < configuration.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = configuration.attrs[i];
    switch (static_cast<int>(attribute.id)) {
      case cudaLaunchAttributeIgnore: break;
      case cudaLaunchAttributeClusterDimension:
        extras.clustered = true;
        extras.cluster = dim3(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
        break;
      case cudaLaunchAttributeCooperative: extras.cooperative = attribute.val.cooperative != 0; break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        extras.programmatic = attribute.val.programmaticStreamSerializationAllowed != 0;
        break;
      case cudaLaunchAttributeAccessPolicyWindow: note("the L2 access policy has no effect on the plan"); break;
      case cudaLaunchAttributePriority: note("launch priorities have no effect on the plan"); break;
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        note("the cluster scheduling policy has no effect on the plan");
        break;
#if CUDART_VERSION >= 12030
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributeMemSyncDomainMap: note("memory synchronisation domains have no effect on the plan"); break;
#endif
#if CUDART_VERSION >= 12080
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
        extras.carveout = static_cast<int>(attribute.val.sharedMemCarveout);
        break;
#endif
      default:
        refuse("the launcher uses launch attribute " + decimal(attribute.id) + ", which a plan cannot hold",
               Direct::possible);
    }
  }
  return extras;
}

}  // namespace

Kernel* find_kernel(const void* function) {
  const auto found = kernel_of_stub.find(function);
  if (found != kernel_of_stub.end()) return found->second;
  for (auto& [name, kernel] : specification.kernels)
    if (&kernel == function) return &kernel;
  return nullptr;
}

}  // namespace recorder

using namespace recorder;

// ---- registration, called by constructors that the compiler puts into the host object

RECORDER_API void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}

RECORDER_API void __cudaRegisterFatBinaryEnd(void**) {}
RECORDER_API void __cudaUnregisterFatBinary(void**) {}
RECORDER_API char __cudaInitModule(void**) { return 1; }

RECORDER_API void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, void*, void*,
                                         void*, void*, int*) {
  const auto found = specification.kernels.find(name);
  if (found != specification.kernels.end())
    kernel_of_stub[stub] = &found->second;
  else
    unknown_stubs[stub] = name;
}

RECORDER_API void __cudaRegisterVar(void**, char* host, char*, const char* name, int, size_t, int, int) {
  register_symbol(host, name);
}

RECORDER_API void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int, size_t, int, int) {
  refuse(std::string("the __managed__ variable ") + name + ": memory that host and device share",
         Direct::possible);
}

// ---- launches: the stubs of CUDA 12.0 to 12.3 call cudaLaunchKernel, later ones the functions with underscores

RECORDER_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_shared, void* stream) {
  pushed.push_back({grid, block, dynamic_shared, stream});
  return 0;
}

RECORDER_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* dynamic_shared,
                                                    void* stream) {
  if (pushed.empty()) return fail(cudaErrorIllegalState, "a kernel stub called without a configuration");
  const PushedConfiguration top = pushed.back();
  pushed.pop_back();
  *grid = top.grid;
  *block = top.block;
  *dynamic_shared = top.dynamic_shared;
  std::memcpy(stream, &top.stream, sizeof top.stream);
  return cudaSuccess;
}

RECORDER_API cudaError_t __cudaGetKernel(void** kernel, const void* stub) {
  *kernel = find_kernel(stub);
  return *kernel != nullptr ? cudaSuccess : unknown_function(stub);
}

RECORDER_API cudaError_t __cudaLaunchKernel(void* kernel, dim3 grid, dim3 block, void** arguments,
                                            size_t dynamic_shared, void* stream) {
  return launch(kernel, grid, block, arguments, dynamic_shared, stream, Extras());
}

#if CUDART_VERSION >= 12010
RECORDER_API cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(find_kernel(stub));
  return *kernel != nullptr ? cudaSuccess : unknown_function(stub);
}
#endif

RECORDER_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                          size_t dynamic_shared, cudaStream_t stream) {
  return launch(function, grid, block, arguments, dynamic_shared, stream, Extras());
}

RECORDER_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                                     void** arguments, size_t dynamic_shared,
                                                     cudaStream_t stream) {
  Extras extras;
  extras.cooperative = true;
  return launch(function, grid, block, arguments, dynamic_shared, stream, extras);
}

RECORDER_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* function,
                                             void** arguments) {
  return launch(function, configuration->gridDim, configuration->blockDim, arguments,
                configuration->dynamicSmemBytes, configuration->stream, read_attributes(*configuration));
}
