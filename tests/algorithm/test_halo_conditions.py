"""Halo tiles of stencils with borders: no element is read that the user's kernel could not read."""

from __future__ import annotations

from pathlib import Path

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
from tests.unit.algorithm.lifting_samples import box

CROSS = "x[(i - 1) * w + j] + x[(i + 1) * w + j] + x[i * w + j - 1] + x[i * w + j + 1]"
RING = f"{CROSS} - x[(i - 1) * w + j - 1] - x[(i + 1) * w + j + 1] - x[(i - 1) * w + j + 1] - x[(i + 1) * w + j - 1]"
EDGE = "i == 0 || j == 0 || i == h - 1 || j == w - 1"
INNER = "i > 0 && i < h - 1 && 0 < j && j <= w - 2"
KERNELS = {
    "copied_border": f"if ({INNER}) y[p] = {CROSS}; else y[p] = x[p];",
    "copied_edge": f"if ({EDGE}) y[p] = x[p]; else y[p] = x[p] + 0.5f * ({CROSS});",
    "zero_edge": f"y[p] = {EDGE} ? 0.0f : {RING};",
    "cross_only": f"y[p] = {INNER} ? {CROSS} : 1.0f;",
    "doubled_edge": f"y[p] = {EDGE} ? 2.0f * x[p] : {RING};",
    "one_sided": "y[p] = (j + 2 < w ? x[p + 2] : 0.0f) + (i >= 1 ? x[p - w] : x[p]);",
    "each_side": "y[p] = (j > 0 ? x[p - 1] : 0.0f) + (j < w - 1 ? x[p + 1] : 0.0f) + (i > 0 ? x[p - w] : 0.0f);",
    "far": "y[p] = j >= 2 && j < w - 3 ? x[p - 2] + x[p + 3] : 0.0f;",
    "given_border": "y[p] = i >= r && i < h - r && j >= r ? x[p - 1] * x[p + 1] : x[p];",
}
SIZES = ((1, 1), (1, 5), (2, 2), (3, 3), (3, 1), (9, 4), (17, 40), (8, 33))


def algorithm_of(body: str) -> Algorithm:
    parameters = "const float* x, float* y, int h, int w, int r"
    point = "int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;"
    text = (
        f"__global__ void k({parameters}) {{ {point} if (i >= h || j >= w) return; int p = i * w + j; {body} }}\n"
        f'extern "C" void f({parameters}) {{ k<<<dim3((w + 31) / 32, (h + 7) / 8), dim3(32, 8)>>>(x, y, h, w, r); }}\n'
    )
    unit = SourceUnit.parse(text)
    return lift_kernel(unit, unit.kernels[0]).algorithm


def tiled(algorithm: Algorithm, points: str, threads: str) -> Plan:
    values = {"points": points, "threads": threads}
    return MOVES["halo_tiles"].apply(Plan(algorithm, Schedule()), values)


HEAT = """int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, k = blockIdx.z;
if (i >= w || j >= h) return;
size_t plane = (size_t)h * w, p = k * plane + (size_t)j * w + i;
if (i == 0 || j == 0 || k == 0 || i == w - 1 || j == h - 1 || k == d - 1) y[p] = x[p];
else y[p] = x[p - 1] + x[p + 1] + x[p - w] + x[p + w] + x[p - plane] + x[p + plane];"""


@pytest.mark.slow
def test_planes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    algorithm = box(HEAT, "dim3((w + 31) / 32, h, d), 32")
    sources, wanted, calls = {}, [], []
    for planes in ("1", "2", "4"):
        values = {"points": "1x1", "threads": "4x8", "planes": planes}
        sources[f"k{planes}"] = emitted_text(MOVES["halo_tiles"].apply(Plan(algorithm, Schedule()), values))
        for d, h, w in ((1, 1, 1), (3, 3, 3), (2, 5, 9), (5, 4, 17), (9, 7, 8)):
            arrays = {key: rng.standard_normal(d * h * w).astype(np.float32) for key in ("x", "y")}
            arguments = {**arrays, "d": d, "h": h, "w": w}
            wanted.append(expected(algorithm, arguments))
            calls.append(cpu.Call(f"k{planes}", arguments, flush=("end", "start")[len(calls) % 2]))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        assert not differences(want, got, exact=True), (call.library_name, call.arguments["d"])


@pytest.mark.slow
def test_borders(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sources, wanted, calls = {}, [], []
    for name, body in KERNELS.items():
        algorithm = algorithm_of(body)
        for points, threads in (("1x1", "4x8"), ("2x1", "4x32")):
            label = f"{name}_{points}"
            sources[label] = emitted_text(tiled(algorithm, points, threads))
            assert "x_tile" in sources[label]
            for h, w in SIZES:
                if name == "given_border" and (h < 3 or w < 3):
                    continue
                arrays = {key: rng.standard_normal(h * w).astype(np.float32) for key in ("x", "y")}
                arguments = {**arrays, "h": h, "w": w, "r": 1}
                wanted.append(expected(algorithm, arguments))
                calls.append(cpu.Call(label, arguments, flush=("end", "start")[len(calls) % 2]))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        sizes = call.arguments["h"], call.arguments["w"]
        assert not differences(want, got, exact=True), (call.library_name, sizes)


def test_no_more_tests_than_needed() -> None:
    text = emitted_text(tiled(algorithm_of(KERNELS["copied_border"]), "1x1", "8x32"))
    fill = next(line for line in text.splitlines() if "float in = " in line)
    assert fill.split("&& ", 1)[1].startswith("load_i >= 0 && load_i < h && load_j >= 0 && load_j < w ? x[")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y[p] = j % 2 > 0 ? x[p - 1] : x[p];", "is not a bound|several conditions"),
        ("y[p] = i + j > 2 ? x[p - 1] : x[p];", "is not a bound|several conditions"),
        ("y[p] = x[p] > 0.0f ? x[p] : x[p + 1];", "is not a bound|several conditions"),
    ],
)
def test_other_conditions_are_refused(body: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=reason):
        tiled(algorithm_of(body), "1x1", "8x32")
