"""A loop round a store as an axis: a thread's whole row of a product becomes points of a tile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.promotion import with_loops_as_axes
from kernelskill.algorithm.schedule import Schedule
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected
from tests.unit.algorithm.lifting_samples import body

ROWS = "for (int j = 0; j < m; ++j) { float s = 0.f; for (int k = 0; k < m; ++k) s += a[i * m + k] * b[k * m + j]; c[i * m + j] = s; }"
COLUMNS = "for (int r = 0; r < m; ++r) { float s = 0.f; for (int k = 0; k < m; ++k) s += a[r * m + k] * b[k * n + i]; c[r * n + i] = s; }"
FROM_TWO = "for (int j = 2; j < m; ++j) { float s = 0.f; for (int k = 0; k < m; ++k) s += a[i * m + k] * b[j * m + k]; c[i * m + j] = s; }"


def axes_of(algorithm: Algorithm) -> list[str]:
    return [axis.name for axis in with_loops_as_axes(algorithm).axes]


def arguments(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    arrays = {
        name: rng.standard_normal(max(n, m) * max(n, m) + 1).astype(np.float32) for name in ("a", "b", "c")
    }
    return {**arrays, "n": n, "m": m}


def tiled(algorithm: Algorithm, blocks: dict[str, str] | None = None) -> Plan:
    plan = MOVES["share_tiles"].apply(Plan(algorithm, Schedule()), {"tile": "8"})
    return MOVES["block_points"].apply(plan, blocks) if blocks else plan


@pytest.mark.slow
def test_tiles_of_such_points_agree_with_the_loop(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    blocked = {"points": "4x4", "threads": "8x8", "depth": "8"}
    sources, wanted, calls = {}, [], []
    for name, text in {"rows": ROWS, "columns": COLUMNS, "from_two": FROM_TWO}.items():
        algorithm = body(text)
        for kind, blocks in (("plain", None), ("blocked", blocked)):
            label = f"{name}_{kind}"
            sources[label] = emitted_text(tiled(algorithm, blocks))
            for n, m in ((1, 1), (3, 2), (9, 17), (40, 33), (64, 8)):
                given = arguments(rng, n, m)
                wanted.append(expected(algorithm, given))
                calls.append(cpu.Call(label, given, flush=("end", "start", "odd")[len(calls) % 3]))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        found = differences(want, got, exact=True)
        assert not found, (call.library_name, call.arguments["n"], call.arguments["m"], found)


def test_the_largest_stride_comes_first() -> None:
    assert axes_of(body(ROWS)) == ["i", "j"]
    assert axes_of(body(COLUMNS)) == ["r", "i"]


@pytest.mark.parametrize(
    "text",
    [
        "for (int j = 0; j < i; ++j) { float s = 0.f; for (int k = 0; k < m; ++k) s += a[i * m + k] * b[k * m + j]; c[i * m + j] = s; }",
        "int e = (int)a[i]; for (int j = 0; j < e; ++j) c[i * m + j] = b[j];",
        "for (int j = 0; j < m; ++j) atomicAdd(&c[j], a[i * m + j]);",
        "float t = c[i * m]; for (int j = 0; j < m; ++j) c[i * m + j] = t * b[j];",
        "for (int j = 0; j < m; ++j) c[i * m + j] = b[j]; for (int j = 0; j < m; ++j) c[n * m + i * m + j] = a[j];",
    ],
)
def test_other_loops_stay_in_their_thread(text: str) -> None:
    try:
        algorithm = body(text)
    except (IllegalMove, ValueError):
        pytest.skip("not lifted")
    assert axes_of(algorithm) == [axis.name for axis in algorithm.axes]


GATHER = "for (int j = 0; j < m; ++j) c[i * m + j] = a[(int)b[i] * m + j];"


@pytest.mark.slow
def test_a_row_that_is_copied_becomes_points_of_a_wide_access(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    algorithm = body(GATHER)
    plans = {
        "wide": MOVES["vector_points"].apply(Plan(algorithm, Schedule()), {"vector": "4", "threads": "8"}),
        "four": MOVES["coarsen_points"].apply(
            Plan(algorithm, Schedule()), {"points": "4x1", "threads": "2x8"}
        ),
    }
    sources = {name: emitted_text(plan) for name, plan in plans.items()}
    assert "m % 4 == 0" in sources["wide"], sources["wide"]
    assert "*reinterpret_cast<const Pack<float, 4>*>(&a[" in sources["wide"]
    wanted, calls = [], []
    for name in sources:
        for n, m in ((1, 1), (3, 4), (9, 17), (7, 64)):
            given = {**arguments(rng, n, m), "b": rng.integers(0, n, max(n, m) ** 2 + 1).astype(np.float32)}
            wanted.append(expected(algorithm, given))
            calls.append(cpu.Call(name, given, flush=("end", "start", "odd")[len(calls) % 3]))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        assert not differences(want, got, exact=True), (call.library_name, call.arguments["n"])
