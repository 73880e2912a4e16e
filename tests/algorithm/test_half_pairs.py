"""Kernels on pairs of halves: read field by field, they compute what the kernel does, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import Algorithm, CannotLift, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm import cpu
from tests.algorithm.emission import HEAD, differences, emitted_text, expected

PARAMETERS = "const __half* x, const __half* g, __half* y, int n"
AT = "const half2 a = reinterpret_cast<const half2*>(x)[i], b = ((const __half2*)g)[i]; half2* out = (half2*)y;"
KERNELS = {
    "relu": "out[i] = __hmax2(a, __float2half2_rn(0.0f));",
    "scale": "out[i] = __hfma2(a, b, __floats2half2_rn(0.5f, -2.0f));",
    "operators": "half2 v = a * b; v = v + a; out[i] = v - __half2half2(__high2half(b));",
    "floats": "float2 v = __half22float2(a); v.x = v.x * 3.0f + v.y; v.y -= __low2float(b); out[i] = __float22half2_rn(v);",
    "fields": "half2 v = __halves2half2(a.y, b.x); out[i] = __hmin2(__lowhigh2highlow(v), __hneg2(__habs2(b)));",
    "mixed": "out[i] = __hsub2(__lows2half2(a, b), __h2div(__highs2half2(a, b), __float2half2_rn(3.0f)));",
    "single": "out[i] = make_half2(__hadd(__low2half(a), a.y), __float2half(__high2float(b) * 2.0f));",
}
SIZES = (0, 2, 34, 256)


def source_of(body: str, before: str = "") -> str:
    index = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (2 * i + 1 >= n) return;"
    return (
        f"{HEAD}{before}__global__ void k({PARAMETERS}) {{ {index} {AT} {body} }}\n"
        f'extern "C" void f({PARAMETERS}) {{ k<<<(n / 2 + 31) / 32, 32>>>(x, g, y, n); }}\n'
    )


def algorithm_of(body: str) -> Algorithm:
    unit = SourceUnit.parse(source_of(body))
    return lift_kernel(unit, unit.kernels[0]).algorithm


@pytest.mark.slow
def test_pairs_are_read_field_by_field(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sources, calls, wanted = {}, [], []
    for name, body in KERNELS.items():
        algorithm = algorithm_of(body)
        sources[f"{name}_own"] = source_of(body)
        labels = [f"{name}_own"]
        plan = MOVES["coarsen_points"].apply(
            Plan(algorithm, Schedule()), {"points": "1x4", "threads": "1x32"}
        )
        sources[f"{name}_moved"] = emitted_text(plan)
        labels.append(f"{name}_moved")
        for n in SIZES:
            arrays = {key: rng.standard_normal(n).astype(np.float16) for key in "xgy"}
            arguments = {**arrays, "n": n}
            for label in labels:
                calls.append(cpu.Call(label, dict(arguments)))
                wanted.append(expected(algorithm, arguments))
    for call, want, got in zip(calls, wanted, cpu.build(sources, tmp_path).run(calls), strict=True):
        assert not differences(want, {"y": got["y"], **{k: want[k] for k in want if k != "y"}}, exact=True), (
            call.library_name
        )


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("out[i] = __hgt2(a, b);", ""),
        ("out[i] = a % b;", ""),
        ("out[i] = a + 1.0f;", ""),
        ("out[i] = __hadd2_sat(a, b);", ""),
        ("out[i] = __hadd2(a, b.x);", ""),
        ("out[i] = a + b;", "__device__ half2 operator+(half2 a, half2 b) { return __hmul2(a, b); }\n"),
        ("out[i] = __hmax2(__half22float2(a), b);", ""),
    ],
)
def test_other_functions_are_refused(body: str, before: str) -> None:
    unit = SourceUnit.parse(source_of(body, before))
    with pytest.raises((CannotLift, IllegalMove)):
        lift_kernel(unit, unit.kernels[0])
