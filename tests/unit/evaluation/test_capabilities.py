"""What some devices offer beyond the least: direct execution, a sanitizer, a lock."""

from __future__ import annotations

import pytest
import scripted_backend as scripted

from kernelskill.errors import TaskError
from kernelskill.evaluation.judge import judge
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.evaluation.user_baseline import time_user_baseline
from kernelskill.schema.evaluation import Status, VerdictKind
from kernelskill.tasks.description import BaselineTiming


def test_a_launcher_that_cannot_be_recorded_runs_itself_and_is_labelled(laboratory):
    lab = laboratory(full=True)
    found = lab.check("reads_back")
    assert (found.status, found.execution) == (Status.PASSED, "direct")
    assert found.notes[0] == "the launcher ran itself, since it cannot be recorded: reads device memory"
    assert {c.layout for c in found.checks} == {"plain", "repeat", "moved", "offset", "aliased"}
    timed = lab.time("reads_back", ms=0.5)
    assert judge(lab.task, timed).kind is VerdictKind.ACCEPTED
    assert timed.execution == "direct"


def test_a_launcher_that_runs_itself_must_turn_back_at_other_addresses_too(laboratory):
    found = laboratory(full=True).check("caches_when_moved")
    assert found.status is Status.INCORRECT
    assert "(other inputs at other addresses, nothing reset)" in found.detail


def test_without_direct_execution_it_is_unsupported(laboratory):
    found = laboratory().check("reads_back")
    assert (found.status, found.execution) == (Status.UNSUPPORTED, "none")
    assert "reads device memory" in found.detail


def test_an_original_that_runs_itself_is_compared_with_others_that_do(laboratory):
    lab = laboratory("reads_back", full=True)
    found = lab.time("right", ms=0.5)
    assert (found.execution, found.passed) == ("replayed", True)
    assert "aliased" in {c.layout for c in found.checks}, "its layouts were found out directly"


def confirm(lab, **settings):
    request = lab.request(scripted.source("right", **settings), fresh=1)
    return lab.evaluator.evaluate(request)


def test_the_confirmation_runs_under_the_sanitizer(laboratory):
    lab = laboratory(full=True)
    assert lab.check("right", ms=2).passed
    assert lab.backend.sanitized == 0, "only the original is looked at before it counts"
    assert confirm(lab, ms=2).passed
    assert lab.backend.sanitized == 1
    found = confirm(lab, finding="memcheck")
    assert found.status is Status.SANITIZER_ERROR
    assert found.detail == "case n=1000: memcheck: Invalid __global__ read of size 4 bytes at line 7"
    assert "no sanitizer ran: compute-sanitizer was not found" in confirm(lab, finding="missing").unverified


def test_what_the_original_shows_too_is_only_noted(laboratory):
    lab = laboratory(full=True, settings={"finding": "memcheck"})
    found = confirm(lab, ms=2, finding="memcheck")
    assert found.passed
    assert "the original shows memcheck errors too" in found.notes[-1]
    assert confirm(lab, ms=2, finding="racecheck").status is Status.SANITIZER_ERROR


def test_a_device_without_sanitizer_says_so(laboratory):
    assert "no sanitizer ran: this device has none" in confirm(laboratory()).unverified


def test_the_device_is_held_while_it_works(laboratory):
    lab = laboratory(full=True)
    lab.time("right", ms=2)
    assert lab.backend.held == 3, "for the original's layouts, the check and the times"


def test_sizes_of_the_timed_cases_are_recorded(laboratory):
    (shape,) = laboratory().check("right").shapes
    assert (shape.case, shape.buffers, shape.scalars) == (2, {"x": 16384, "y": 16384}, {"n": 4096})
    assert shape.least_bytes == 32768


class Values:
    """A test process whose baseline takes 2 ms, or cannot run."""

    def __init__(self, reason="", disagreement=""):
        self.reason = reason
        self.disagreement = disagreement

    def ready_baseline(self, case, seed):
        pass

    def baseline(self, case, seed):
        if self.reason:
            raise TaskError(self.reason)
        return BaselineTiming(
            library="cupy",
            call="CUB",
            samples_ms=(1.0, 2.0, 3.0),
            median_ms=2.0,
            disagreement=self.disagreement,
        )


@pytest.mark.parametrize(
    ("values", "evidence", "reason"),
    [
        (Values("no CuPy here"), "measured", "no CuPy here"),
        (Values(), "estimated", "this device only estimates"),
    ],
)
def test_a_baseline_that_cannot_be_timed_is_a_note(values, evidence, reason):
    task = scripted.make_task(scripted.source("right"), has_baseline=True)
    timings, notes = time_user_baseline(task, values, SeedPool((1,)), evidence)
    assert (timings, notes) == ((), (f"baseline() of the test was not timed: {reason}",))


def test_the_users_baseline_is_timed_on_every_timed_case():
    task = scripted.make_task(scripted.source("right"), has_baseline=True)
    timings, notes = time_user_baseline(task, Values(), SeedPool((1,)), "measured")
    assert [(t.case, t.median_ms, t.low_ms, t.high_ms, t.call) for t in timings] == [
        (2, 2.0, 1.5, 2.5, "CUB")
    ]
    assert notes == ()
    plain = scripted.make_task(scripted.source("right"))
    assert time_user_baseline(plain, Values(), SeedPool((1,)), "measured") == ((), ())


def test_a_baseline_that_does_another_job_is_told():
    task = scripted.make_task(scripted.source("right"), has_baseline=True)
    values = Values(disagreement="CASES[0]: y is 1 instead of 2")
    timings, notes = time_user_baseline(task, values, SeedPool((1,)), "measured")
    assert len(timings) == 1
    assert notes == ("baseline() of the test differs from its reference: CASES[0]: y is 1 instead of 2",)
