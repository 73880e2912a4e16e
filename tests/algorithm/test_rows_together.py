"""Lanes that take several rows together: rows out of range are neither read nor written, and count nowhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected
from tests.unit.algorithm.lifting_samples import body

BODIES = {
    "from_an_element": "float s = b[i]; for (int k = 0; k < m; ++k) s += a[k] * a[i * m + k]; c[i] = s;",
    "in_place": "float s = c[i]; for (int k = 0; k < m; ++k) s += a[k] * b[i * m + k]; c[i] = s;",
    "two_sums": "float s = b[i], t = 1.f; for (int k = 0; k < m; ++k) { s += a[k] * a[i * m + k]; t += a[k]; } c[i] = s * t;",
    "largest": "float s = b[i]; for (int k = 0; k < m; ++k) s = fmaxf(s, a[k] * a[i * m + k]); c[i] = s;",
    "two_loops": "float s = 0.f; for (int k = 0; k < m; ++k) s += a[k] * a[i * m + k]; float t = b[i]; for (int k = 0; k < m; ++k) t += s * a[k]; c[i] = t;",
}
POINTS = (("8", "32", "2"), ("32", "64", "4"), ("64", "64", "2"))
"""Lanes, threads and rows."""


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_rows_taken_together_agree(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(17)
    algorithm = body(BODIES[name])
    sources, wanted, calls = {}, [], []
    for lanes, threads, rows in POINTS:
        values = {"lanes": lanes, "threads": threads, "vector": "1", "points": rows}
        label = f"rows_{lanes}_{rows}"
        sources[label] = emitted_text(MOVES["share_rows"].apply(Plan(algorithm, Schedule()), values))
        for n, m in ((1, 1), (3, 5), (9, 40), (17, 3)):
            sizes = {"a": n * m, "b": n * m if name == "in_place" else n, "c": n}
            given = {key: rng.standard_normal(size).astype(np.float32) for key, size in sizes.items()}
            call = {**given, "n": n, "m": m}
            wanted.append(expected(algorithm, call))
            calls.append(cpu.Call(label, call, flush=("end", "start", "odd")[len(calls) % 3]))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        found = differences(want, got, exact=False)
        assert not found, (call.library_name, call.arguments["n"], found, sources[call.library_name])
