"""Reductions shared by blocks, in stages: statistics of channels in any layout, columns, rows, one result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import CannotLift, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected

PARAMETERS = "const float* x, const float* g, float* y, float* z, int n, int c, int m"
CHANNEL = "int k = blockIdx.x * blockDim.x + threadIdx.x; if (k >= c) return;\n"


def statistics(index: str) -> str:
    """Return mean, variance and what a batch norm makes of them, elements addressed in some layout."""
    loop = "for (int b = 0; b < n; ++b) for (int i = 0; i < m; ++i)"
    return f"""{CHANNEL}float sum = 0.0f, square = 0.0f;
{loop} sum += x[{index}];
float mean = sum / (n * m);
{loop} {{ float d = x[{index}] - mean; square += d * d; }}
{loop} y[{index}] = (x[{index}] - mean) / sqrtf(square / (n * m) + 1e-5f) * g[k];
z[k] = mean;"""


PLANES = statistics("(b * c + k) * m + i")
KERNELS = {
    "planes": PLANES,
    "channels_last": statistics("(b * m + i) * c + k"),
    "in_place": PLANES.replace("x[", "y["),
    "columns": f"{CHANNEL}float top = x[k];\nfor (int i = 0; i < m; ++i) top = fmaxf(top, x[i * c + k] * g[i]);\nz[k] = top;",
    "softmax": f"""{CHANNEL}float top = -1e30f, sum = 0.0f;
for (int i = 0; i < m; ++i) top = fmaxf(top, x[k * m + i]);
for (int i = 0; i < m; ++i) sum += expf(x[k * m + i] - top);
for (int i = 0; i < m; ++i) y[k * m + i] = expf(x[k * m + i] - top) / sum;""",
    "online": f"""{CHANNEL}float top = -1e30f, sum = 0.0f;
for (int i = 0; i < m; ++i) {{
    float v = x[k * m + i], now = fmaxf(top, v);
    sum = sum * expf(top - now) + expf(v - now);
    top = now;
}}
for (int i = 0; i < m; ++i) y[k * m + i] = expf(x[k * m + i] - top) / sum;""",
    "welford": f"""{CHANNEL}float mean = 0.0f, spread = 0.0f;
for (int i = 0; i < m; ++i) {{
    float d = x[k * m + i] - mean;
    mean += d / (i + 1);
    spread += d * (x[k * m + i] - mean);
}}
z[k] = spread / m;""",
    "one_result": "float sum = 1.0f;\nfor (int i = 3; i < n * m; ++i) sum += x[i] * x[i];\nz[0] = sqrtf(sum);",
    "norm_of_all": """float sum = 0.0f;
for (int i = 0; i < n * m; ++i) sum += x[i] * x[i];
for (int i = 0; i < n * m; ++i) y[i] = x[i] / sqrtf(sum);""",
    "two_writers": f"""{CHANNEL}float sum = 0.0f;
for (int i = 0; i < m; ++i) sum += x[k * m + i];
for (int i = 0; i < m; ++i) {{ y[k * m + i] = sum; z[k * m + i] = x[k * m + i] * sum; }}""",
    "kept_apart": f"""{CHANNEL}float sum = 0.0f;
for (int i = 0; i < m; ++i) sum += z[k] * x[k * m + i];
for (int i = 0; i < m; ++i) y[k * m + i] = sum + z[k];
z[k] = sum;""",
    "guarded": f"""{CHANNEL}float sum = 0.0f;
for (int i = 0; i < m; ++i) if (x[k * m + i] > g[k]) sum += x[k * m + i];
for (int i = 0; i < m; ++i) if (i % 3 != 1) y[k * m + i] = sum * g[k];""",
}
SIZES = ((1, 1, 1), (2, 3, 7), (3, 5, 64), (5, 2, 131), (1, 1, 600), (0, 3, 4), (20, 4, 3), (2, 33, 70))
CHOICES = (
    {"blocks": "24", "threads": "64", "shape": "1x64", "vector": "4"},
    {"blocks": "7", "threads": "64", "shape": "2x32", "vector": "2"},
)


def plan_of(body: str, values: dict[str, str], parameters: str = PARAMETERS) -> Plan:
    grid = "1, 1" if "blockIdx" not in body else "(c + 31) / 32, 32"
    names = ", ".join(part.split()[-1].lstrip("*") for part in parameters.split(","))
    text = (
        f"#include <cuda_fp16.h>\n__global__ void k({parameters}) {{ {body} }}\n"
        f'extern "C" void f({parameters}) {{ k<<<{grid}>>>({names}); }}\n'
    )
    unit = SourceUnit.parse(text)
    algorithm = lift_kernel(unit, unit.kernels[0]).algorithm
    return MOVES["split_over_blocks"].apply(Plan(algorithm, Schedule()), values)


def arguments_of(rng: np.random.Generator, n: int, c: int, m: int) -> dict[str, Any]:
    sizes = {
        "x": max(n * c * m, c * m, n * m, c),
        "g": max(c, m),
        "y": max(n * c * m, c * m, n * m),
        "z": max(c * m, c, 1),
    }
    arrays = {name: rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    return {**arrays, "n": n, "c": c, "m": m}


@pytest.mark.slow
def test_shared_reductions_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sources, wanted, calls = {}, [], []
    for name, body in KERNELS.items():
        for number, values in enumerate(CHOICES):
            label = f"{name}_{number}"
            plan = plan_of(body, values)
            sources[label] = emitted_text(plan)
            for sizes in SIZES:
                arguments = arguments_of(rng, *sizes)
                wanted.append((label, sizes, expected(plan.algorithm, arguments)))
                calls.append(cpu.Call(label, arguments, reversed=number == 1))
    library = cpu.build(sources, tmp_path)
    problems = [
        f"{label} {sizes}: {text}"
        for (label, sizes, want), got in zip(wanted, library.run(calls), strict=True)
        if (text := differences(want, got, exact=False))
    ]
    assert not problems, "\n".join(problems[:10])


SUM = "float sum = 0.0f;\nfor (int i = 0; i < m; ++i) sum += x[k * m + i];\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{CHANNEL}y[k] = x[k] * 2.0f;", "no loop of unknown or great length"),
        (f"{CHANNEL}{SUM.replace('i < m', 'i < 16')}z[k] = sum;", "no loop of unknown or great length"),
        (f"{CHANNEL}{SUM.replace('i < m', 'i < k')}z[k] = sum;", "length of a loop differs"),
        (f"{CHANNEL}{SUM.replace('i < m', 'i < (int)g[k]')}z[k] = sum;", "length of a loop differs"),
        (f"{CHANNEL}{SUM.replace('k * m + i', 'k + i')}z[k] = sum;", "read for many results"),
        (f"{CHANNEL}{SUM.replace('k * m + i]', 'i] * g[k]')}z[k] = sum;", "read for many results"),
        (f"{CHANNEL}{SUM.replace('x[k * m + i]', '1.5f')}z[k] = sum;", "reads no elements"),
        (f"{CHANNEL}{SUM}z[k] = sum; z[k + c] = 1.0f;", "stored to in several places"),
        (f"{CHANNEL}{SUM}atomicAdd(&z[k], sum);", "atomics"),
        (
            f"{CHANNEL}int best = 0; float top = x[k * m];\n"
            "for (int i = 1; i < m; ++i) if (x[k * m + i] > top) { top = x[k * m + i]; best = i; }\nz[k] = best;",
            "more than one associative accumulator",
        ),
        (
            f"{CHANNEL}{SUM}for (int i = 0; i < m; ++i) y[k * m + i] = sum;\nz[k] = y[k * m];",
            "is read after a store",
        ),
    ],
)
def test_what_blocks_cannot_share_is_refused(body: str, reason: str) -> None:
    with pytest.raises((IllegalMove, CannotLift), match=reason):
        plan_of(body, CHOICES[0])


@pytest.mark.parametrize(
    "values", [{"threads": "96"}, {"threads": "32"}, {"columns": "12"}, {"shape": "16"}, {"blocks": "0"}]
)
def test_bad_values_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(IllegalMove):
        plan_of(KERNELS["columns"], {**CHOICES[0], **values})


def test_neighbouring_results_are_read_by_neighbouring_threads() -> None:
    plan = plan_of(KERNELS["channels_last"], CHOICES[0])
    assert plan.stages is not None
    assert plan.stages.stages[0].schedule.lanes_outer
    assert [option.name for option in MOVES["split_over_blocks"].options(replace(plan, stages=None))][
        -1
    ] == "columns"


def test_what_follows_from_results_alone_is_computed_once() -> None:
    text = emitted_text(plan_of(PLANES, CHOICES[0]))
    assert text.count("sqrtf(") == 1
    assert text.count("__global__") == 5
    assert text.count("float lanes_sum(float value)") == 1


def test_results_in_halves_and_wide_indices(tmp_path: Path) -> None:
    parameters = "const __half* x, float* z, int c, long m"
    body = f"{CHANNEL}float sum = 0.0f;\nfor (long i = 0; i < m; ++i) sum += __half2float(x[k * m + i]);\nz[k] = sum;"
    plan = plan_of(body, CHOICES[0], parameters)
    rng = np.random.default_rng(1)
    arguments = {
        "x": rng.standard_normal(3 * 517).astype(np.float16),
        "z": np.zeros(3, np.float32),
        "c": 3,
        "m": 517,
    }
    got = cpu.run_one(emitted_text(plan), arguments, tmp_path)
    assert not differences(expected(plan.algorithm, arguments), got, exact=False)
