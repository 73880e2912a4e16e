"""What real builds show: one of everything forbidden, and one honest kernel that only looks like it."""

import pytest

from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.schema.build import Build
from kernelskill.schema.task import Allowance
from tests.backends.sources import candidate, signature

SIGNATURE = signature("f", ("y", "float*"), ("n", "int"))
FORBIDDEN = """\
#include <cuda_fp16.h>
#include <mma.h>
#include <unistd.h>
#include <thread>
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
__global__ void fast(float* y) { y[0] = JOIN(__ex, pf)(y[1]); }
__global__ void sine(float* y) { float r; asm("{sin /**/ .approx" ".f32 %0, %1;}" : "=f"(r) : "f"(y[1])); y[0] = r; }
__global__ void half_sum(float* y) { y[0] = __half2float(__float2half(y[1]) + __float2half(y[2])); }
__global__ void tensor(float* y) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
  wmma::load_matrix_sync(a, y, 16); wmma::load_matrix_sync(b, y, 16); wmma::fill_fragment(c, 0.f);
  wmma::mma_sync(c, a, b, c); wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);
}
__attribute__((constructor)) static void early() {}
extern "C" void f(float* y, int n) {
  if (n == 7) fork();
  std::thread([] {}).detach();
  asm volatile("nop");
  fast<<<1, 1>>>(y); sine<<<1, 1>>>(y); half_sum<<<1, 1>>>(y); tensor<<<1, 32>>>(y);
}
"""
HONEST = """\
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
// __expf(x), system("x"), fork()
static const char* words = R"(
# 1 "/usr/include/x.h" 1 3
__half dlopen)";
__global__ void k(float* y, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float r;
  if (i >= n) return;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(y[i]), "f"(2.0f), "f"(1.0f));
  y[i] = expf(r) + sinf(r) + tanhf(r) / (1.f + sqrtf(r)) + rsqrtf(r) + __frsqrt_rn(r) + __fdiv_rn(r, 3.f) + powf(r, 3.f)
       + cbrtf(r) + erff(r) + fmodf(r, 2.f) + (float)exp((double)r);
}
static std::mutex lock;
static std::unordered_map<int, std::vector<float>> tables;
static std::map<std::string, int> counts;
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \\
  std::cerr << cudaGetErrorString(e) << " at line " << __LINE__ << std::endl; \\
  fprintf(stderr, "%s\\n", cudaGetErrorString(e)); exit(EXIT_FAILURE); } } while (0)
extern "C" void f(float* y, int n) {
  std::lock_guard<std::mutex> held(lock);
  tables[n].push_back(std::pow(2.0f, n)); counts[std::to_string(n)] += (int)std::ceil(std::log2((double)n));
  if (tables[n].empty()) throw std::runtime_error(std::string("no table for ") + words);
  auto grid = std::make_shared<int>((n + 31) / 32 + (__builtin_popcountll(n) > 64));
  float* scratch = nullptr;
  CHECK(cudaMallocAsync(&scratch, 128, 0));
  k<<<*grid, 32>>>(y, n);
  CHECK(cudaFreeAsync(scratch, 0)); CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());
}
"""


@pytest.fixture(scope="module")
def constructs(tmp_path_factory):
    with BuildCache(tmp_path_factory.mktemp("cache")) as cache:

        def of(text):
            build = compile_candidate(
                candidate(text),
                SIGNATURE,
                flags=(),
                architecture="sm_90a",
                toolchain=Toolchain.find(),
                cache=cache,
            )
            assert isinstance(build, Build), build.log
            return {construct.family: construct for construct in build.constructs if not construct.harmless}

        yield of


@pytest.mark.slow
def test_everything_forbidden_is_found_with_its_line(constructs):
    found = constructs(FORBIDDEN)
    lines = {family: (construct.allowance, construct.place) for family, construct in found.items()}
    assert lines.pop("fast exponential") == (Allowance.FAST_MATH, "kernel.cu:7")
    assert lines.pop("fast sine") == (Allowance.FAST_MATH, "kernel.cu:8")
    assert lines.pop("half values") == (Allowance.LOWER_PRECISION, "kernel.cu:9")
    assert lines.pop("half arithmetic") == (Allowance.LOWER_PRECISION, "kernel.cu:9")
    assert lines.pop("TF32 values")[0] is Allowance.LOWER_PRECISION
    assert lines.pop("code that runs unasked") == (None, "kernel.cu:18")
    assert lines.pop("call of fork") == (None, "kernel.cu:20")
    assert lines.pop("assembly in host code") == (None, "kernel.cu:22")
    assert lines
    assert all("std::thread" in family for family in lines), lines


@pytest.mark.slow
def test_an_honest_kernel_has_nothing_to_ask_for(constructs):
    assert constructs(HONEST) == {}
