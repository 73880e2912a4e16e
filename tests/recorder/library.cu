// A launcher that calls another library, and functions of the runtime that a plan cannot hold.
#include <cuda_runtime.h>

extern "C" int cublasCreate_v2(void**);
extern "C" int cublasSscal_v2(void*, int, const float*, float*, int);

extern "C" void calls_a_library(const float* x, float* y, int n) {
  void* handle;
  const float a = 3;
  cublasCreate_v2(&handle);
  cublasSscal_v2(handle, n, &a, y, 1);
}

extern "C" void uses_a_texture(const float* x, float* y, int n) {
  cudaTextureObject_t texture;
  cudaResourceDesc resource = {};
  cudaTextureDesc description = {};
  cudaCreateTextureObject(&texture, &resource, &description, nullptr);
}

__global__ void nothing() {}

extern "C" void calls_nothing_unknown(const float* x, float* y, int n) { nothing<<<1, 1>>>(); }
