"""Rows in registers: short and long rows, wide and single elements, in place, and what cannot be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected

ROW = "int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= rows) return;"
SOFTMAX = """float top = -1e30f;
for (int j = 0; j < n; ++j) top = fmaxf(top, x[r * n + j]);
float sum = 0.0f;
for (int j = 0; j < n; ++j) sum += expf(x[r * n + j] - top);
for (int j = 0; j < n; ++j) y[r * n + j] = expf(x[r * n + j] - top) / sum * g[j];"""
VARIANCE = """float mean = 0.0f, spread = 0.0f;
for (int j = 0; j < n; ++j) mean += x[r * n + j];
mean /= n;
for (int j = 0; j < n; ++j) { float d = x[r * n + j] - mean; spread += d * d; }
y[r] = spread;"""
PAIRS = """float dot = 0.0f;
for (int j = 0; j < n; ++j) dot += x[r * n + j] * g[j];
for (int j = 0; j < n; ++j) y[r * n + j] = x[r * n + j] - dot * g[j];"""
FILTERED = """float sum = 0.0f;
for (int j = 0; j < n; ++j) sum += x[r * n + j];
for (int j = 0; j < n; ++j) if (j % 3 > 0) y[r * n + j] = x[r * n + j] * sum * g[j];"""
IN_PLACE = PAIRS.replace("x[", "y[")
KERNELS = {
    "softmax": SOFTMAX,
    "variance": VARIANCE,
    "pairs": PAIRS,
    "filtered": FILTERED,
    "in_place": IN_PLACE,
}
SIZES = ((3, 1), (5, 8), (9, 33), (2, 64), (3, 100), (1, 132), (3, 0))


def algorithm_of(body: str) -> Algorithm:
    parameters = "const float* x, const float* g, float* y, int rows, int n"
    text = (
        f"__global__ void k({parameters}) {{ {ROW} {body} }}\n"
        f'extern "C" void f({parameters}) {{ k<<<(rows + 31) / 32, 32>>>(x, g, y, rows, n); }}\n'
    )
    unit = SourceUnit.parse(text)
    return lift_kernel(unit, unit.kernels[0]).algorithm


def kept(algorithm: Algorithm, lanes: int, vector: int, chunks: int) -> Plan:
    values = {"lanes": str(lanes), "threads": str(max(lanes, 32)), "vector": str(vector)}
    plan = MOVES["share_rows"].apply(Plan(algorithm, Schedule()), values)
    return MOVES["keep_rows"].apply(plan, {"chunks": str(chunks)})


def arguments_of(rng: np.random.Generator, rows: int, n: int) -> dict[str, Any]:
    floats = {"x": rows * n, "g": n, "y": max(rows * n, rows)}
    arrays = {name: rng.standard_normal(size).astype(np.float32) for name, size in floats.items()}
    return {**arrays, "rows": rows, "n": n}


@pytest.mark.slow
def test_rows_in_registers_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sources, wanted, calls = {}, [], []
    for name, body in KERNELS.items():
        algorithm = algorithm_of(body)
        for lanes, vector, chunks in ((8, 4, 3), (8, 1, 4), (32, 2, 1)):
            label = f"{name}_{lanes}_{vector}_{chunks}"
            sources[label] = emitted_text(kept(algorithm, lanes, vector, chunks))
            assert "const bool kept" in sources[label]
            for rows, n in SIZES:
                arguments = arguments_of(rng, rows, n)
                wanted.append(expected(algorithm, arguments))
                flush = ("end", "start", "odd")[len(calls) % 3]
                calls.append(cpu.Call(label, arguments, flush=flush))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        assert not differences(want, got, exact=False), (call.library_name, call.arguments["n"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("float s = 0; for (int j = 0; j < n; ++j) s += x[r * n + j]; y[r] = s;", "no two loops in sequence"),
        (SOFTMAX.replace("j = 0", "j = 1"), "no two loops in sequence"),
        (SOFTMAX.replace("j < n", "j < r"), "of a length that all rows share"),
        (
            "float s = 0, q = 0; for (int j = 0; j < n; ++j) s += x[r * n + j];"
            " for (int j = 0; j < n; ++j) q += x[r * n + j] * x[r * n + j]; y[r] = s + q;",
            "no two loops in sequence",
        ),
        (
            "float s = 0; for (int j = 0; j < n; ++j) if (g[j] > 0) s += x[r * n + j];"
            " for (int j = 0; j < n; ++j) if (j > r) y[r * n + j] = x[r * n + j] * s;",
            "no two loops in sequence",
        ),
    ],
)
def test_nothing_to_keep(body: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=reason):
        kept(algorithm_of(body), 8, 1, 4)


def test_rows_must_be_shared_first() -> None:
    with pytest.raises(IllegalMove, match="not shared by lanes"):
        MOVES["keep_rows"].options(Plan(algorithm_of(SOFTMAX), Schedule()))


def test_registers_are_limited() -> None:
    with pytest.raises(IllegalMove, match="bytes of a thread's registers"):
        kept(algorithm_of(SOFTMAX), 8, 4, 64)
