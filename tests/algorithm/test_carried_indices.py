"""Elements that a recurrence leads to are read in every step, by every point for itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.algorithm.extents import extent_of
from kernelskill.algorithm.lowering.staging import plan_tile
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule, Staging, plain_schedule
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected
from tests.unit.algorithm.lifting_samples import body

BODIES = {
    "shared": "unsigned at = 0; float s = 0.f; for (int k = 0; k < m; ++k) { s += a[i * m + k] * b[at]; at += m; } c[i] = s;",
    "own": "unsigned at = i; float s = 0.f; for (int k = 0; k < m; ++k) { s += a[i * m + k] * b[at]; at = at * 3u % 50u; } c[i] = s;",
}


@pytest.mark.slow
def test_points_of_a_thread_follow_their_own_recurrence(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    sources, wanted, calls = {}, [], []
    for name, text in BODIES.items():
        algorithm = body(text)
        coarsen = MOVES["coarsen_points"]
        four = coarsen.apply(Plan(algorithm, Schedule()), {"points": "1x4", "threads": "1x8"})
        plans = {"one": Plan(algorithm, plain_schedule(algorithm, 8)), "four": four}
        for kind, plan in plans.items():
            sources[f"{name}_{kind}"] = emitted_text(plan)
            for n, m in ((1, 1), (5, 3), (40, 7)):
                arrays = {key: rng.standard_normal(2000).astype(np.float32) for key in ("a", "b", "c")}
                given = {**arrays, "n": n, "m": m}
                wanted.append(expected(algorithm, given))
                calls.append(cpu.Call(f"{name}_{kind}", given, flush="end"))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        found = differences(want, got, exact=True)
        assert not found, (call.library_name, call.arguments["n"], found, sources[call.library_name])


@pytest.mark.parametrize("name", BODIES)
def test_no_tile_and_no_reach_is_known_of_what_a_recurrence_leads_to(name: str) -> None:
    algorithm = body(BODIES[name])
    with pytest.raises(IllegalMove, match="recurrence leads to"):
        extent_of(algorithm, "b")
    assert extent_of(algorithm, "a").ends
    with pytest.raises(IllegalMove, match="recurrence leads to"):
        plan_tile(algorithm, plain_schedule(algorithm, 8), Staging("b", ""))
