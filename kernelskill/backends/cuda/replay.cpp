// The replay loop of the trusted worker: carries out an array of operations through the driver API.
// No candidate code is here. The layout of Operation is repeated in replay_core.py.
#include <cuda.h>

#include <cstdint>

extern "C" {

enum Kind : int32_t { LAUNCH, MEMSET, COPY_DEVICE, COPY_HOST, COPY_2D, RECORD, WAIT, GRAPH };

enum Flag : int32_t { COOPERATIVE = 1, PROGRAMMATIC = 2, CLUSTER = 4 };

struct Operation {
  int32_t kind;
  int32_t flags;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t shared_bytes;
  uint64_t handle;  // function, event or executable graph
  uint64_t stream;
  void** parameters;
  uint64_t destination;
  uint64_t source;
  uint64_t size;  // bytes; of a 2-D copy the width of a row
  uint64_t value;
  uint64_t destination_pitch;
  uint64_t source_pitch;
  uint64_t height;
};

int operation_size() { return sizeof(Operation); }

static CUresult launch(const Operation& op) {
  CUlaunchAttribute attributes[3] = {};
  unsigned count = 0;
  if (op.flags & COOPERATIVE) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  if (op.flags & PROGRAMMATIC) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (op.flags & CLUSTER) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count].value.clusterDim.x = op.cluster[0];
    attributes[count].value.clusterDim.y = op.cluster[1];
    attributes[count++].value.clusterDim.z = op.cluster[2];
  }
  CUlaunchConfig config = {};
  config.gridDimX = op.grid[0];
  config.gridDimY = op.grid[1];
  config.gridDimZ = op.grid[2];
  config.blockDimX = op.block[0];
  config.blockDimY = op.block[1];
  config.blockDimZ = op.block[2];
  config.sharedMemBytes = op.shared_bytes;
  config.hStream = (CUstream)op.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  return cuLaunchKernelEx(&config, (CUfunction)op.handle, op.parameters, nullptr);
}

static CUresult copy_2d(const Operation& op) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = op.source;
  copy.srcPitch = op.source_pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = op.destination;
  copy.dstPitch = op.destination_pitch;
  copy.WidthInBytes = op.size;
  copy.Height = op.height;
  return cuMemcpy2DAsync(&copy, (CUstream)op.stream);
}

static CUresult carry_out(const Operation& op) {
  CUstream stream = (CUstream)op.stream;
  switch (op.kind) {
    case LAUNCH: return launch(op);
    case MEMSET: return cuMemsetD8Async(op.destination, (unsigned char)op.value, op.size, stream);
    case COPY_DEVICE: return cuMemcpyDtoDAsync(op.destination, op.source, op.size, stream);
    case COPY_HOST: return cuMemcpyHtoDAsync(op.destination, (const void*)op.source, op.size, stream);
    case COPY_2D: return copy_2d(op);
    case RECORD: return cuEventRecord((CUevent)op.handle, stream);
    case WAIT: return cuStreamWaitEvent(stream, (CUevent)op.handle, 0);
    case GRAPH: return cuGraphLaunch((CUgraphExec)op.handle, stream);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// Carries out all operations; `where` is the last one that was started.
int replay(const Operation* operations, int count, int* where) {
  for (int i = 0; i < count; i++) {
    *where = i;
    if (CUresult result = carry_out(operations[i])) return result;
  }
  return CUDA_SUCCESS;
}

// One timed replay. `ahead` fills of the flush buffer keep the GPU busy while the host queues the plan, so that
// launch latency stays outside; they also empty the L2.
int timed(const Operation* operations, int count, int repeats, uint64_t stream, uint64_t flush, uint64_t flush_bytes,
          int ahead, uint64_t start, uint64_t end, int* where) {
  static unsigned char value = 0;
  *where = -1;
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < ahead && !result; i++) result = cuMemsetD8Async(flush, value++, flush_bytes, (CUstream)stream);
  if (!result) result = cuEventRecord((CUevent)start, (CUstream)stream);
  if (result) return result;
  for (int i = 0; i < repeats; i++)
    if (int failed = replay(operations, count, where)) return failed;
  *where = -1;
  return cuEventRecord((CUevent)end, (CUstream)stream);
}

}  // extern "C"
