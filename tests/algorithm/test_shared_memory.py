"""Dynamic shared memory: tiles that need more than an array may have, and kernels that are written with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.lowering.shared_memory import MOST_BYTES, STATIC_BYTES
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm import cpu
from tests.algorithm.emission import HEAD, Case, compare, differences, emitted_text, expected

MATRICES = "const float* a, const float* b, float* c, int n, int m, int d"
PRODUCT = f"""__global__ void k({MATRICES}) {{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= m) return;
    float s = 0.0f;
    for (int q = 0; q < d; ++q) s += a[i * d + q] * b[q * m + j];
    c[i * m + j] = s;
}}
extern "C" void f({MATRICES}) {{ k<<<dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(a, b, c, n, m, d); }}
"""
ROWS = "const float* x, float* y, int rows, int n"
SUM = """extern __shared__ float s[];
float part = 0.0f;
for (int j = threadIdx.x; j < n; j += blockDim.x) part += x[blockIdx.x * n + j];
s[threadIdx.x] = part;
__syncthreads();
for (int k = blockDim.x / 2; k > 0; k /= 2) { if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k]; __syncthreads(); }
if (threadIdx.x == 0) y[blockIdx.x] = s[0];"""
SOFTMAX = """extern __shared__ float s[];
float* t = s + blockDim.x;
float m = -INFINITY, part = 0.0f;
for (int j = threadIdx.x; j < n; j += blockDim.x) m = fmaxf(m, x[blockIdx.x * n + j]);
s[threadIdx.x] = m;
__syncthreads();
for (int k = 16; k > 0; k >>= 1) { if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]); __syncthreads(); }
m = s[0];
for (int j = threadIdx.x; j < n; j += blockDim.x) part += expf(x[blockIdx.x * n + j] - m);
t[threadIdx.x] = part;
__syncthreads();
for (int k = 16; k > 0; k >>= 1) { if (threadIdx.x < k) t[threadIdx.x] += t[threadIdx.x + k]; __syncthreads(); }
for (int j = threadIdx.x; j < n; j += blockDim.x) y[blockIdx.x * n + j] = expf(x[blockIdx.x * n + j] - m) / t[0];"""


def blocked(depth: int, copy: str, vector: int) -> Plan:
    unit = SourceUnit.parse(PRODUCT)
    plan = Plan(lift_kernel(unit, unit.kernels[0]).algorithm, Schedule())
    plan = MOVES["share_tiles"].apply(plan, {"tile": "8"})
    values = {"points": "8x8", "threads": "8x8", "depth": str(depth)}
    plan = MOVES["block_points"].apply(plan, values)
    if vector > 1:
        plan = MOVES["wide_access"].apply(plan, {"vector": str(vector)})
    return MOVES["overlap_copies"].apply(plan, {"copy": copy}) if copy else plan


def matrices(rng: np.random.Generator, n: int, m: int, d: int) -> dict[str, Any]:
    sizes = {"a": n * d, "b": d * m, "c": n * m}
    arrays = {name: rng.integers(-8, 8, size).astype(np.float32) for name, size in sizes.items()}
    return {**arrays, "n": n, "m": m, "d": d}


@pytest.mark.slow
def test_large_tiles_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cases = []
    for depth, copy, vector in ((128, "", 1), (64, "double", 4), (64, "async", 4), (128, "registers", 1)):
        plan = blocked(depth, copy, vector)
        text = emitted_text(plan)
        assert "extern __shared__" in text
        assert text.count("cudaFuncSetAttribute") == text.count("<<<")
        for n, m, d in ((5, 70, 33), (64, 64, 128), (1, 1, 1)):
            arguments = matrices(rng, n, m, d)
            wanted = expected(plan.algorithm, arguments)
            cases.append(Case(f"{depth} {copy} {n}", text, arguments, wanted, exact=True))
    assert compare(cases, tmp_path) == []


def test_tiles_that_fit_stay_arrays() -> None:
    assert "extern" not in emitted_text(blocked(64, "", 1)).split("f(const")[0].replace('extern "C"', "")
    with pytest.raises(IllegalMove, match=f"{MOST_BYTES} are there"):
        blocked(256, "double", 1)
    assert STATIC_BYTES < MOST_BYTES


def source_of(body: str) -> str:
    launch = "k<<<rows, 32, 2 * 32 * sizeof(float)>>>(x, y, rows, n);"
    return f'{HEAD}__global__ void k({ROWS}) {{ {body} }}\nextern "C" void f({ROWS}) {{ {launch} }}\n'


def algorithm_of(body: str) -> Algorithm:
    unit = SourceUnit.parse(source_of(body))
    return lift_kernel(unit, unit.kernels[0]).algorithm


@pytest.mark.slow
def test_kernels_with_dynamic_shared_memory_are_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sources, calls = {}, []
    for name, body in (("sum", SUM), ("softmax", SOFTMAX)):
        algorithm = algorithm_of(body)
        assert algorithm.reorders
        values = {"lanes": "16", "threads": "32", "vector": "4"}
        sources[f"{name}_own"] = source_of(body)
        sources[f"{name}_lanes"] = emitted_text(
            MOVES["share_rows"].apply(Plan(algorithm, Schedule()), values)
        )
        for rows, n in ((3, 1), (2, 31), (5, 64), (1, 100)):
            x = rng.standard_normal(rows * n).astype(np.float32)
            arguments = {"x": x, "y": np.zeros(rows * n, np.float32), "rows": rows, "n": n}
            calls += [cpu.Call(f"{name}_{each}", dict(arguments)) for each in ("own", "lanes")]
    found = cpu.build(sources, tmp_path).run(calls)
    for own, lanes, call in zip(found[::2], found[1::2], calls[::2], strict=True):
        arguments = dict(call.arguments)
        body = SUM if call.library_name.startswith("sum") else SOFTMAX
        read = expected(algorithm_of(body), arguments)
        assert not differences({"y": own["y"]}, read, exact=False)
        assert not differences({"y": own["y"]}, lanes, exact=False)
