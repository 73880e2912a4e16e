"""Times too good to be taken on trust are looked at again; what would be accepted is sanitized."""

from __future__ import annotations

import pytest
import scripted_backend as scripted

from kernelskill.evaluation.judge import judge
from kernelskill.evaluation.suspicion import floor_of, suspicions
from kernelskill.schema.evaluation import CaseShape, Status, VerdictKind
from kernelskill.schema.task import Case, Cost

SMALL_CACHE = scripted.GPU.model_copy(update={"dram_bytes_per_s": 32768.0, "l2_bytes": 0})


def test_the_floor_is_what_the_cache_cannot_hold():
    gpu = scripted.GPU
    shape = CaseShape(case=0, buffers={}, scalars={}, least_bytes=gpu.l2_bytes + 10**9)
    assert floor_of(shape, gpu) == pytest.approx(1.0)
    assert floor_of(shape.model_copy(update={"least_bytes": gpu.l2_bytes}), gpu) == 0


def test_ordinary_gains_are_not_suspicious(laboratory):
    lab = laboratory(full=True)
    found = lab.time("right", ms=0.2)
    assert not suspicions(lab.task, found, lab.backend.gpu)
    assert [stage.stage for stage in found.seconds][-1] == "review"
    assert lab.backend.sanitized == 1, "it would be accepted"
    assert "suspicious" not in " ".join(found.notes)


def test_a_great_gain_is_confirmed_with_a_note(laboratory):
    found = laboratory().time("right", ms=0.05)
    assert found.passed
    (note,) = [note for note in found.notes if "suspicious" in note]
    assert "as fast at once" in note
    assert "comparisons with new seeds in a fresh process" in note


def test_a_great_gain_that_does_not_hold_is_refused(laboratory):
    lab = laboratory()
    found = lab.time("wrong_later", ms=0.05, workers=2)
    assert found.status is Status.SUSPICIOUS
    assert "as fast at once; looked at again: " in found.detail
    assert (found.timings, found.paired) == ((), ())
    assert judge(lab.task, found).kind is VerdictKind.REFUSED
    assert lab.time("wrong_later", ms=0.5, workers=2).passed, "an ordinary gain is not looked at again"


def test_an_estimate_is_looked_at_again_too(laboratory):
    lab = laboratory(evidence="estimated")
    found = lab.time("right", ms=0.05)
    assert found.passed
    assert "suspicious, and confirmed" in found.notes[-1]
    assert lab.time("wrong_later", ms=0.04, workers=2).status is Status.SUSPICIOUS


def test_a_race_that_shows_only_later_refuses(laboratory):
    lab = laboratory(full=True)
    found = lab.time("right", ms=0.05, finding="racecheck")
    assert found.status is Status.SANITIZER_ERROR
    assert "racecheck" in found.detail


@pytest.mark.parametrize(
    ("behaviour", "settings", "said"),
    [
        ("wrong_directly", {}, "where the launcher ran itself: "),
        ("right", {"direct_ms": 3}, "no less than the incumbent's"),
    ],
)
def test_the_launcher_itself_must_agree(laboratory, behaviour, settings, said):
    found = laboratory(full=True).time(behaviour, ms=0.05, **settings, spread=0.0)
    assert found.status is Status.SUSPICIOUS
    assert said in found.detail


def test_a_launcher_that_agrees_is_noted(laboratory):
    found = laboratory(full=True).time("right", ms=0.05, direct_ms=0.5)
    assert found.passed
    assert any("where the launcher ran itself" in note for note in found.notes)


def test_a_time_below_the_floor_is_looked_at_again(laboratory):
    lab = laboratory(settings={"ms": 2000.0})
    found = lab.time("right", ms=900.0)
    assert not suspicions(lab.task, found, lab.backend.gpu)
    (reason,) = suspicions(lab.task, found, SMALL_CACHE)
    assert reason.startswith("case n=4096 took ")
    assert reason.endswith("but moving its arrays once takes 1000 ms on Scripted")
    fast = found.model_copy(update={"incumbent_timings": found.timings})
    assert not suspicions(lab.task, fast, SMALL_CACHE), "the incumbent does not move all of it either"


def test_a_time_that_no_event_resolves_is_suspicious(laboratory):
    lab = laboratory(settings={"ms": 0.0011})
    found = lab.time("right", ms=0.0004)
    assert any("less than an event can resolve" in note for note in found.notes)


def test_the_users_own_count_of_work_makes_no_suspicion(laboratory):
    cases = (
        Case(index=0, arguments={"n": 1}),
        Case(index=2, arguments={"n": 4096}, timed=True, cost=Cost(bytes=1e12, flops=1e18)),
    )
    found = laboratory(cases=cases).time("right", ms=0.5)
    assert found.passed
    assert "suspicious" not in " ".join(found.notes)


def test_what_initcheck_says_is_only_noted(laboratory):
    found = laboratory(full=True).time("right", ms=0.5, finding="initcheck")
    assert found.passed
    assert found.notes[-1].endswith("(advisory)")
