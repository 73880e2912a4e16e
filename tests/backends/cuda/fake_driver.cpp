// A stand-in for libcuda.so.1 in host memory, for tests of the worker without a GPU. It knows a few kernels by name
// and writes every call that matters for order to `calls.log` beside itself.
#include <cuda.h>
#undef cuEventElapsedTime  // the worker asks for the name that all drivers have
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

CUresult broken = CUDA_SUCCESS;
std::map<void*, size_t> sizes;
struct Function { std::string name; int shared_limit = 48 * 1024; };
struct Event { double at = 0; };
int counter = 7;
uintptr_t last_stream = 0x100, last_event = 0;
std::map<uintptr_t, double> recorded;
bool capturing = false;
int graphs = 0;

void note(const char* text, unsigned long long a = 0, unsigned long long b = 0) {
  static FILE* log = nullptr;
  if (!log) {
    Dl_info info;
    dladdr((void*)&note, &info);
    std::string path = info.dli_fname;
    log = fopen((path.substr(0, path.rfind('/')) + "/calls.log").c_str(), "a");
  }
  if (log) { fprintf(log, "%s %llu %llu\n", text, a, b); fflush(log); }
}

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

CUresult run(const Function& f, void** p) {
  float* data = *(float**)p[0];
  int n = *(int*)p[1];
  if (f.name == "add_one") for (int i = 0; i < n; i++) data[i] += 1;
  else if (f.name == "overrun") data[n] = 1;
  else if (f.name == "underrun") data[-1] = 1;
  else if (f.name == "count") data[0] = (float)counter++;
  else if (f.name == "illegal") broken = CUDA_ERROR_ILLEGAL_ADDRESS;
  else if (f.name == "hang") sleep(1000);
  return CUDA_SUCCESS;
}

}  // namespace

#define CHECK if (broken) return broken
extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* v) { *v = 13000; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* n) { *n = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* d, int i) { *d = i; return i ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* s, int n, CUdevice) { snprintf(s, n, "NVIDIA H200"); return CUDA_SUCCESS; }
CUresult cuDeviceGetUuid(CUuuid* u, CUdevice) { memset(u, 0x5a, 16); return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute a, CUdevice) {
  switch ((int)a) {
    case 16: *v = 132; break;
    case 38: *v = 1 << 20; break;
    case 39: *v = 2048; break;
    case 75: *v = 9; break;
    case 76: *v = 0; break;
    case 81: *v = 233472; break;
    case 82: *v = 65536; break;
    case 97: *v = 232448; break;
    case 106: *v = 32; break;
    default: *v = 1;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* n, CUdevice) { *n = 1ull << 34; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice) { *c = (CUcontext)1; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return broken; }
CUresult cuCtxResetPersistingL2Cache() { note("reset persisting"); return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule* m, const void*) { *m = (CUmodule)2; counter = 7; return CUDA_SUCCESS; }
CUresult cuModuleUnload(CUmodule) { return broken; }
CUresult cuModuleGetFunction(CUfunction* f, CUmodule, const char* name) { *f = (CUfunction) new Function{name}; return CUDA_SUCCESS; }
CUresult cuModuleGetGlobal_v2(CUdeviceptr* p, size_t* n, CUmodule, const char* name) {
  if (strcmp(name, "counter")) return CUDA_ERROR_NOT_FOUND;
  *p = (CUdeviceptr)&counter;
  *n = 4;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction, size_t i, size_t* offset, size_t* size) {
  if (i > 1) return CUDA_ERROR_INVALID_VALUE;
  *offset = 8 * i;
  *size = i ? 4 : 8;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  note("attribute", a, v);
  if (a == 8) ((Function*)f)->shared_limit = v;
  return v > 232448 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t n) {
  CHECK;
  if (n > (1ull << 34)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = aligned_alloc(512, (n + 511) / 512 * 512);
  sizes[memory] = n;
  *p = (CUdeviceptr)memory;
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr p) { CHECK; sizes.erase((void*)p); free((void*)p); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void* s, size_t n) { CHECK; memcpy((void*)d, s, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoH_v2(void* d, CUdeviceptr s, size_t n) { CHECK; memcpy(d, (void*)s, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n) { CHECK; memcpy((void*)d, (void*)s, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream) { CHECK; memmove((void*)d, (void*)s, n); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void* s, size_t n, CUstream) { CHECK; memcpy((void*)d, s, n); return CUDA_SUCCESS; }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream) {
  CHECK;
  for (size_t r = 0; r < c->Height; r++)
    memcpy((char*)c->dstDevice + r * c->dstPitch, (char*)c->srcDevice + r * c->srcPitch, c->WidthInBytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8_v2(CUdeviceptr d, unsigned char v, size_t n) { CHECK; memset((void*)d, v, n); return CUDA_SUCCESS; }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream) { CHECK; memset((void*)d, v, n); return CUDA_SUCCESS; }
CUresult cuStreamCreate(CUstream* s, unsigned) { *s = (CUstream)++last_stream; return CUDA_SUCCESS; }
CUresult cuStreamDestroy_v2(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode) { capturing = true; note("begin capture"); return CUDA_SUCCESS; }
CUresult cuStreamEndCapture(CUstream, CUgraph* g) { capturing = false; *g = (CUgraph)(uintptr_t)++graphs; return CUDA_SUCCESS; }
CUresult cuGraphInstantiateWithFlags(CUgraphExec* e, CUgraph g, unsigned long long) { *e = (CUgraphExec)g; return CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec) { return CUDA_SUCCESS; }
CUresult cuGraphDestroy(CUgraph) { return CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) { note("graph", (uintptr_t)e, (uintptr_t)s); return CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent* e, unsigned) { *e = (CUevent)++last_event; return CUDA_SUCCESS; }
CUresult cuEventDestroy_v2(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent e, CUstream s) { CHECK; note("record", (uintptr_t)e, (uintptr_t)s); recorded[(uintptr_t)e] = now_ms(); return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) { note("wait", (uintptr_t)e, (uintptr_t)s); return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent) { return broken; }
CUresult cuEventElapsedTime(float* ms, CUevent a, CUevent b) { *ms = (float)(recorded[(uintptr_t)b] - recorded[(uintptr_t)a]); return broken; }
CUresult cuTensorMapEncodeTiled(CUtensorMap* m, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  memset((void*)m, 0x77, 128);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** p, void**) {
  CHECK;
  const Function& function = *(Function*)f;
  for (unsigned i = 0; i < c->numAttrs; i++) note("launch attribute", c->attrs[i].id);
  note(("launch " + function.name).c_str(), (uintptr_t)c->hStream, c->gridDimX);
  if ((int)c->sharedMemBytes > function.shared_limit) return CUDA_ERROR_INVALID_VALUE;
  return capturing ? CUDA_SUCCESS : run(function, p);
}
CUresult cuGetErrorName(CUresult r, const char** s) {
  *s = r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : r == 1 ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}

}  // extern "C"
