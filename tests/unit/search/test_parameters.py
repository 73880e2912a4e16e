"""The search over parameters, on a bench whose answers are known in advance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log

import pytest

from kernelskill.agents.families import Values, points
from kernelskill.schema.build import KernelResources
from kernelskill.schema.candidate import Step
from kernelskill.schema.evaluation import Evaluation, Status, VerdictKind
from kernelskill.schema.proposal import Choice, Proposal, Refusal
from kernelskill.schema.search import PointTrial
from kernelskill.search.parameters import PointSearch, mark_kept
from tests.records import evaluation, proposal, step

TILES = tuple(str(n) for n in range(1, 9))
CHOICES = (Choice(name="tile", values=TILES, steps=(0,)), Choice(name="depth", values=TILES, steps=(0,)))


def valley(tile: int, depth: int) -> float:
    """Time in milliseconds; least at tile 6, depth 3."""
    return 1.0 + 0.1 * abs(tile - 6) + 0.1 * abs(depth - 3)


@dataclass
class Table:
    """Implements `search.parameters.Workbench`: every point's time is a formula."""

    milliseconds: Callable[[int, int], float] = valley
    refuses: Callable[[int, int], bool] = lambda tile, depth: False
    pruned: Callable[[int, int], bool] = lambda tile, depth: False
    fails: Callable[[int, int], bool] = lambda tile, depth: False
    breaks: Callable[[int, int], bool] = lambda tile, depth: False
    spills: Callable[[int, int], int] = lambda tile, depth: 0
    known: set[str] = field(default_factory=set)
    budget: int = 1000
    built: list[tuple[int, int]] = field(default_factory=list)
    fetched: int = 0
    dropped: list[str] = field(default_factory=list)

    def make(self, steps: tuple[Step, ...]) -> Proposal | Refusal:
        tile, depth = self._point(steps)
        if self.refuses(tile, depth):
            return Refusal(skill=steps[0].skill, kernel="k", reason="does not divide")
        return proposal(f"// {tile} {depth}\n", steps=steps)

    def is_known(self, digest: str) -> bool:
        return digest in self.known

    def before_building(self, proposal: Proposal) -> str:
        return "too many threads" if self.pruned(*self._point(proposal.steps)) else ""

    def before_timing(self, proposal: Proposal, check: Evaluation) -> str:
        return ""

    def prefetch(self, proposals: Sequence[Proposal], stage: str) -> None:
        self.fetched += len(proposals) if stage == "check" else 0

    def check(self, proposal: Proposal) -> Evaluation | None:
        if len(self.built) == self.budget:
            return None
        point = self._point(proposal.steps)
        self.built.append(point)
        status = Status.INCORRECT if self.fails(*point) else Status.PASSED
        status = Status.COMPILE_ERROR if self.breaks(*point) else status
        spilled = self.spills(*point)
        kernel = KernelResources(
            name="k", display_name="k", registers=32, static_shared_bytes=0, spill_store_bytes=spilled
        )
        return evaluation(None, status=status).model_copy(update={"kernels": (kernel,)})

    def drop(self, proposal: Proposal, check: Evaluation, reason: str) -> None:
        self.dropped.append(reason)

    def time(self, proposal: Proposal) -> tuple[Evaluation, VerdictKind, float | None] | None:
        ms = self.milliseconds(*self._point(proposal.steps))
        return evaluation(ms), VerdictKind.TIE, -log(ms)

    @staticmethod
    def _point(steps: Sequence[Step]) -> tuple[int, int]:
        given = dict(steps[0].parameters)
        return int(given["tile"]), int(given["depth"])


def search(bench: Table, limit: int = 12, seed: int = 3, order: Sequence[Values] = ()) -> list[PointTrial]:
    family = proposal("// 1 1\n", steps=[step("memory/tile", tile="1", depth="1")]).model_copy(
        update={"choices": CHOICES}
    )
    ordered = list(order) or points(CHOICES, 48)
    return list(PointSearch(family, ordered, limit, seed, bench).run())


def test_neighbours_of_the_best_point_come_next_where_the_order_says_much() -> None:
    bench = Table()
    order = [("1", "1"), ("6", "6"), ("1", "8"), *points(CHOICES, 64)]
    family = proposal("// 1 1\n", steps=[step("memory/tile", tile="1", depth="1")]).model_copy(
        update={"choices": CHOICES}
    )
    trials = PointSearch(family, order, 5, 3, bench, climbs=True).run()
    assert bench.built[:3] == [(1, 1), (6, 6), (1, 8)]
    # The first of the order that differ from (6, 6) in one value.
    assert bench.built[3:] == [(1, 6), (6, 1)]
    assert max(trials, key=lambda trial: trial.log_speedup or -9.0).outcome == "kept"


def times(trials: Sequence[PointTrial]) -> list[float]:
    return [trial.log_speedup for trial in trials if trial.log_speedup is not None]


def test_the_policy_s_points_come_first_and_the_sampler_goes_on_from_what_they_brought() -> None:
    bench = Table()
    order = [("6", "6"), ("6", "1"), ("1", "1"), *points(CHOICES, 64)]
    trials = search(bench, limit=12, order=order)
    assert bench.built[:3] == [(6, 6), (6, 1), (1, 1)]
    assert len(bench.built) == len(set(bench.built)) == bench.fetched == 12
    kept = [trial for trial in trials if trial.outcome == "kept"]
    assert len(kept) == 3
    assert min(times(kept)) == sorted(times(trials))[-3]
    assert bench.built != [(int(a), int(b)) for a, b in order[:12]]


def test_equal_seeds_and_answers_give_the_equal_search() -> None:
    assert search(Table()) == search(Table())
    tables = [Table(), Table()]
    for table, seed in zip(tables, (1, 2), strict=True):
        search(table, seed=seed)
    assert tables[0].built != tables[1].built


def test_a_search_cut_short_and_run_again_does_the_same_points() -> None:
    whole, cut = Table(), Table(budget=5)
    search(cut)
    search(whole)
    assert cut.built == whole.built[:5]


def test_what_is_refused_pruned_or_known_costs_no_build() -> None:
    known = proposal("// 8 1\n", steps=[step("memory/tile", tile="8", depth="1")]).candidate.digest
    bench = Table(refuses=lambda t, d: t == 1, pruned=lambda t, d: t == 2, known={known})
    trials = search(bench, limit=8)
    assert len(bench.built) == 8
    assert not {tile for tile, _ in bench.built} & {1, 2}
    assert (8, 1) not in bench.built
    outcomes = {trial.outcome for trial in trials}
    assert {"refused", "pruned", "kept", "timed"} <= outcomes
    assert all(trial.log_speedup is None for trial in trials if trial.outcome in ("refused", "pruned"))


def test_points_that_spill_are_not_timed_once_one_does_not() -> None:
    bench = Table(spills=lambda t, d: 64 if t > 1 else 0)
    trials = search(bench, limit=6)
    assert trials[0].outcome in ("timed", "kept")
    spilling = [trial for trial in trials if dict(trial.steps[0].parameters)["tile"] != "1"]
    assert spilling
    assert len(bench.dropped) == len(spilling)
    assert {trial.detail for trial in spilling} == {"64 bytes spill, and none do at another point"}


def test_the_first_points_can_be_started_ahead_of_the_search() -> None:
    bench = Table()
    family = proposal("// 1 1\n", steps=[step("memory/tile", tile="1", depth="1")])
    family = family.model_copy(update={"choices": CHOICES})
    search_ = PointSearch(family, points(CHOICES, 48), 6, 3, bench)
    search_.prefetch()
    assert (bench.fetched, bench.built) == (3, [])
    ahead = search_.run()
    assert ahead == tuple(search(Table(), limit=6))


def test_a_family_that_does_not_compile_is_left_and_what_did_is_timed() -> None:
    bench = Table(breaks=lambda tile, depth: tile > 2)
    trials = search(bench, order=[("1", "1"), ("3", "1"), ("4", "1"), ("2", "1"), *points(CHOICES, 64)])
    assert bench.built == [(1, 1), (3, 1), (4, 1)]
    assert [trial.outcome for trial in trials] == ["kept", "failed", "failed"]


def test_a_space_without_a_right_point_shows_one_that_failed() -> None:
    trials = search(Table(fails=lambda t, d: True), limit=4)
    assert [trial.outcome for trial in trials] == ["failed"] * 4
    assert not [trial for trial in mark_kept(trials, 1) if trial.outcome == "kept"]


def test_a_space_smaller_than_the_limit_is_tried_whole() -> None:
    few = points(CHOICES, 3)
    bench = Table()
    search(bench, limit=10, order=few)
    assert len(bench.built) == 3


def test_a_point_that_leads_in_one_case_goes_on_beside_the_best() -> None:
    def point(name: str, *gains: float) -> PointTrial:
        whole = sum(gains) / len(gains)
        return PointTrial(
            steps=(step(tile=name),), proposal=name, outcome="timed", log_speedup=whole, case_gains=gains
        )

    best, near, small = point("best", 0.5, 0.5), point("near", 0.55, 0.4), point("small", 0.9, -0.5)
    kept = [t.proposal for t in mark_kept([near, small, best], 1) if t.outcome == "kept"]
    assert kept == ["small", "best"]
    assert [t.proposal for t in mark_kept([near, best], 1) if t.outcome == "kept"] == ["best"]
    one_case = [point("best", 0.5), point("other", 0.4)]
    assert [t.proposal for t in mark_kept(one_case, 1) if t.outcome == "kept"] == ["best"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_never_more_is_built_than_allowed(limit: int) -> None:
    bench = Table()
    assert sum(trial.outcome == "kept" for trial in search(bench, limit=limit)) == 1
    assert len(bench.built) == limit
