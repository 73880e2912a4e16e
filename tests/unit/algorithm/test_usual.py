"""Usual sizes: they order choices and change nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from kernelskill.algorithm.expression import Loop, Sym
from kernelskill.algorithm.integers import constant, multiply
from kernelskill.algorithm.model import Algorithm, Parameter
from kernelskill.algorithm.usual import nearest_first, usual_length, with_usual
from kernelskill.schema.candidate import Candidate, Step
from kernelskill.schema.task import Case
from kernelskill.skills.apply import FoundStep, combine, find_steps
from kernelskill.skills.transformation import SkillContext
from tests.skills.applying import LIBRARY, context_for

ROWS = Algorithm("k", (Parameter("int n", "n", "int", False), Parameter("int m", "m", "int", False)), (), ())


def test_parameters_know_what_they_usually_are_in_the_launchers_terms() -> None:
    width, height = Sym("width", "int"), Sym("height", "int")
    found = with_usual(ROWS, [("n", multiply(width, height)), ("m", height)], {"width": 6})
    assert [p.usual for p in found.parameters] == [None, None]
    found = with_usual(ROWS, [("n", multiply(width, height))], {"width": 6, "height": 7})
    assert [p.usual for p in found.parameters] == [42, None]
    assert found == ROWS


def test_the_longest_known_loop_counts() -> None:
    loops = [Loop("i", constant(2), Sym("n", "int")), Loop("j", constant(0), Sym("m", "int"))]
    assert usual_length(ROWS, loops) is None
    known = with_usual(ROWS, [("n", Sym("n", "int"))], {"n": 12})
    assert usual_length(known, loops) == 10
    assert usual_length(known, loops[1:]) is None
    assert usual_length(known, []) is None


def test_values_come_in_the_order_of_their_distance() -> None:
    assert nearest_first(("32", "256", "128", "64"), 100.0) == ("128", "64", "256", "32")
    assert nearest_first(("4", "8", "2", "1"), 4) == ("4", "8", "2", "1")


ROW_SUMS = """\
__global__ void sums(const float *x, float *y, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float peak = -1e30f;
    for (int i = 0; i < columns; ++i) peak = fmaxf(peak, x[row * columns + i]);
    float sum = 0.0f;
    for (int i = 0; i < columns; ++i) sum += expf(x[row * columns + i] - peak);
    y[row] = sum;
}

extern "C" void run(const float *x, float *y, int rows, int columns)
{
    sums<<<(rows + 127) / 128, 128>>>(x, y, rows, columns);
}
"""
NO_SHAPES = "32 256 128 512 64 16 8"


@pytest.mark.parametrize(
    ("arguments", "lanes", "chunks"),
    [
        ({"rows": 1000, "columns": 2048}, "128 256 64 32 512 16 8", "4 8 16 2 1"),
        ({"rows": 1000, "columns": 300}, "16 32 8 64 128 256 512", "8 16 4 2 1"),
        ({"rows": 1000, "columns": 100_000}, "256 128 512 64 32 16 8", "4 8 2 1 16"),
        ({"rows": 1000}, NO_SHAPES, "4 8 2 1 16"),
        ({"columns": "many"}, NO_SHAPES, "4 8 2 1 16"),
        ({"columns": 0}, NO_SHAPES, "4 8 2 1 16"),
    ],
)
def test_lanes_and_registers_suit_the_rows_that_are_timed(
    arguments: dict[str, Any], lanes: str, chunks: str
) -> None:
    task = context_for("run").task
    assert task is not None
    context = SkillContext(
        task=task.model_copy(update={"cases": (Case(index=0, arguments=arguments, timed=True),)})
    )
    base = Candidate.of("kernel.cu", {"kernel.cu": ROW_SUMS})
    found, _ = find_steps(base, LIBRARY.get("parallelism/row_lanes"), LIBRARY, context)
    assert values_of(found[0], "lanes") == lanes
    shared = combine(base, [found[0].step], LIBRARY, context).candidate
    kept, _ = find_steps(shared, LIBRARY.get("memory/rows_in_registers"), LIBRARY, context)
    assert values_of(kept[0], "chunks") == chunks


def values_of(step: FoundStep, name: str) -> str:
    """Return the values of one parameter of a step, the most promising first."""
    return " ".join(next(p.values for p in step.site.parameters if p.name == name))


PRODUCT = """\
__global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && col < n) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
        c[row * n + col] = sum;
    }
}

extern "C" void run(const float *a, const float *b, float *c, int m, int n, int k)
{
    product<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k);
}
"""


@pytest.mark.parametrize(
    ("arguments", "points", "threads"),
    [
        ({"m": 2048, "n": 2048}, "8x8", "16x16"),
        ({"m": 128, "n": 64}, "8x8", "16x8"),
        ({"m": 64, "n": 128}, "8x8", "8x16"),
        ({"m": 32, "n": 32}, "4x4", "8x8"),
        ({"m": 3, "n": 5}, "8x8", "16x16"),
        ({"m": 128}, "8x8", "16x16"),
    ],
)
def test_blocks_of_points_suit_the_sizes_that_are_timed(
    arguments: dict[str, Any], points: str, threads: str
) -> None:
    task = context_for("run").task
    assert task is not None
    context = SkillContext(
        task=task.model_copy(update={"cases": (Case(index=0, arguments=arguments, timed=True),)})
    )
    tile = Step(skill="memory/shared_tile", site="product", parameters=(("tile", "16"),))
    base = combine(Candidate.of("kernel.cu", {"kernel.cu": PRODUCT}), [tile], LIBRARY, context).candidate
    found, _ = find_steps(base, LIBRARY.get("compute/register_blocking"), LIBRARY, context)
    assert values_of(found[0], "points").split()[0] == points
    assert values_of(found[0], "threads").split()[0] == threads
