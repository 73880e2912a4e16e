"""The time model against figures measured on an H200, by kind of access, never by kernel name."""

import numpy as np
import pytest
from direct import Session, backend, build, launch

from kernelskill.backends.emulated.profile import kernel_profiles, launch_metrics

SOURCE = """
#include <math.h>
extern "C" {
__global__ void add(const float* a, const float* b, float* c, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }
__global__ void strided(const float* a, float* c, int n, int s) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[(int)((long long)i * s % n)]; }
__global__ void product_rows(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    float s = 0; for (int k = 0; k < n; k++) s += a[row * n + k] * b[k * n + col]; c[row * n + col] = s; }
__global__ void product_columns(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float s = 0; for (int k = 0; k < n; k++) s += a[row * n + k] * b[k * n + col]; c[row * n + col] = s; }
__global__ void product_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float x[32][32], y[32][32];
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y; float s = 0;
    for (int t = 0; t < n; t += 32) {
        x[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x]; y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
        __syncthreads();
        for (int k = 0; k < 32; k++) s += x[threadIdx.y][k] * y[k][threadIdx.x];
        __syncthreads(); }
    c[row * n + col] = s; }
__global__ void transpose_plain(const float* a, float* c, int n) { int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; c[x * n + y] = a[y * n + x]; }
#define TRANSPOSE(name, pad) __global__ void name(const float* a, float* c, int n) { __shared__ float s[32][32 + pad]; \\
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y; \\
    for (int j = 0; j < 32; j += 8) s[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x]; __syncthreads(); \\
    x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y; \\
    for (int j = 0; j < 32; j += 8) c[(y + j) * n + x] = s[threadIdx.x][threadIdx.y + j]; }
TRANSPOSE(transpose_conflicts, 0)
TRANSPOSE(transpose_padded, 1)
__global__ void sum_one_address(const float* a, float* c, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(c, a[i]); }
__global__ void gelu(const float* a, float* c, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float x = a[i]; c[i] = 0.5f * x * (1.0f + tanhf(0.79788f * (x + 0.044715f * x * x * x))); } }
__global__ void gelu_double(const float* a, float* c, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float x = a[i]; c[i] = 0.5 * x * (1.0 + tanh(0.79788 * (x + 0.044715 * x * x * x))); } }
__global__ void divides(const int* a, int* c, int n, int w) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] / w + i % w; }
__global__ void turns_differ(const float* a, float* c, int n, int votes) { int i = blockIdx.x * blockDim.x + threadIdx.x; float x = a[i];
    for (int r = 0; r < 32; r++) { for (int k = (r + i) % 32; k > 0; k--) x = x * x + 1.0f; if (votes && __any_sync(~0u, x < 0)) break; } c[i] = x; }
__global__ void lanes_differ(const float* a, float* c, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; float x = a[i]; if (threadIdx.x % 8 == 0) for (int k = 0; k < 64; k++) x = sinf(x); c[i] = x; }
}
"""
F = np.float32


class Estimates:
    def __init__(self):
        self.device = backend(2)
        self.made = build(SOURCE, self.device)
        self.known = {}

    def __call__(self, kernel, n, elements, arguments, grid, block):
        key = (kernel, n)
        if key not in self.known:
            names = dict.fromkeys(a for a in arguments if isinstance(a, str))
            buffers = {name: np.zeros(elements, F) for name in names}
            operations = lambda ids: [launch(self.made, kernel, ids, arguments, grid, block)]  # noqa: E731
            with Session(self.made, buffers, operations, self.device) as session:
                self.known[key] = session.worker.trace(timeout_s=120)
        return self.known[key]

    def line(self, kernel, n, *more, arguments=("a", "c")):
        return self(kernel, n, n, [*arguments, n, *more], (-(-n // 256),), (256,))

    def square(self, kernel, n, block, arguments=("a", "c")):
        return self(kernel, n, n * n, [*arguments, n], (n // 32 if block[0] == 32 else n // 16,) * 2, block)

    def product(self, kernel, n):
        return self(kernel, n, n * n, ["a", "b", "c", n], (n // 32, n // 32), (32, 32))

    def metrics(self, traced):
        (one,) = traced.launches
        return launch_metrics(self.device.gpu, one.trace, one.estimate)


@pytest.fixture(scope="module")
def estimates():
    return Estimates()


def test_streaming_is_near_the_measured_bandwidth(estimates):
    n = 1 << 24
    traced = estimates.line("add", n, arguments=("a", "b", "c"))
    assert 12 * n / 4.2e12 < traced.seconds < 12 * n / 2.8e12
    assert traced.moved_bytes == 12 * n


@pytest.mark.slow
def test_products_rank_as_measured(estimates):
    rows, columns, tiled = (
        estimates.product(kernel, 1024).seconds
        for kernel in ("product_rows", "product_columns", "product_tiled")
    )
    assert 8 < rows / columns < 20  # measured 12 at 4096
    assert 1.05 < columns / tiled < 2.2  # measured 1.5 at 4096


def test_transposes_rank_as_measured(estimates):
    plain = estimates.square("transpose_plain", 2048, (16, 16)).seconds
    conflicts = estimates.square("transpose_conflicts", 2048, (32, 8)).seconds
    padded = estimates.square("transpose_padded", 2048, (32, 8)).seconds
    assert plain > conflicts > padded
    assert 26e-6 < plain < 40e-6  # measured 32.6
    assert 18e-6 < conflicts < 30e-6  # measured 23.1


def test_access_figures(estimates):
    plain = estimates.metrics(estimates.square("transpose_plain", 2048, (16, 16)))
    assert plain["smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"] == 32
    assert plain["smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"] == 8
    conflicts = estimates.metrics(estimates.square("transpose_conflicts", 2048, (32, 8)))
    assert conflicts["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 2048 * 2048 / 32 * 31
    padded = estimates.metrics(estimates.square("transpose_padded", 2048, (32, 8)))
    assert padded["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 0
    assert padded["trace__barriers_per_thread"] == 1


def test_wider_strides_never_get_cheaper(estimates):
    n = 1 << 20
    found = [estimates.line("strided", n + s, s).seconds for s in (1, 2, 4, 8)]
    assert found == sorted(found)
    assert found[-1] > 1.5 * found[0]


def test_atomics_on_one_address_serialise(estimates):
    n = 1 << 20
    traced = estimates.line("sum_one_address", n)
    assert traced.seconds == pytest.approx(1.76e-9 * n, rel=0.2)
    assert estimates.metrics(traced)["trace__atomic_same_address_max"] == n


def test_double_precision_is_seen_and_costs(estimates):
    n = 1 << 22
    single, double = estimates.line("gelu", n), estimates.line("gelu_double", n)
    assert double.seconds > single.seconds
    assert estimates.metrics(single)["trace__fp64_instructions_pct"] == 0
    assert estimates.metrics(double)["trace__fp64_instructions_pct"] > 30
    assert estimates.metrics(double)["estimate__fp64_pct"] > 30


def test_division_and_divergence_are_seen(estimates):
    n = 1 << 18
    division = estimates.metrics(estimates.line("divides", n, 7))
    assert division["trace__integer_division_pct"] > 40
    lanes = estimates.metrics(estimates.line("lanes_differ", n))
    assert lanes["smsp__thread_inst_executed_per_inst_executed.ratio"] < 8


def test_lanes_wait_where_their_warp_meets(estimates):
    lanes = "smsp__thread_inst_executed_per_inst_executed.ratio"
    apart, together = (estimates.metrics(estimates.line("turns_differ", 1 << n, n == 12)) for n in (11, 12))
    assert apart[lanes] > 30
    assert together[lanes] < 24


def test_profile_carries_lines_and_shares(estimates):
    traced = estimates.square("transpose_plain", 2048, (16, 16))
    (profile,) = kernel_profiles(estimates.device.gpu, estimates.made, traced)
    assert profile.kernel == "transpose_plain"
    assert profile.time_share == pytest.approx(1)
    (line,) = profile.lines
    text = SOURCE.splitlines()[line.line - 1]
    assert "transpose_plain" in text
    assert line.metrics["global_st_sectors"] == 4 * line.metrics["global_ld_sectors"]
