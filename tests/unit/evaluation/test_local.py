"""What the evaluator does around the protocol: keys, retries, demands, estimates, profiles."""

from __future__ import annotations

import random
import re
import time

import pytest
import scripted_backend as scripted

from kernelskill.errors import HarnessError, TaskError
from kernelskill.evaluation.baseline import establish_baseline
from kernelskill.evaluation.judge import judge
from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.protocol import CheckRules
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Request, Status, VerdictKind
from kernelskill.schema.task import Allowance, Promise, Tolerance
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.testsource import read_test_source


def test_an_answer_is_made_once_and_kept(laboratory):
    lab = laboratory()
    first = lab.check("right")
    workers = lab.backend.opened
    assert lab.check("right") == first
    assert lab.backend.opened == workers
    kept = EvaluationStore(lab.folder).get(first.key)
    assert kept == first
    assert [s.stage for s in first.seconds] == ["build", "data", "record", "check"]
    assert lab.store.device_seconds > 0


def test_the_record_holds_what_people_ask_for(laboratory):
    found = laboratory().check("right")
    assert (found.launches, found.synchronizations, found.execution) == (1, 2, "replayed")
    assert found.commands == ("nvcc kernel.cu",)
    assert found.kernels[0].registers == 16
    layouts = {(c.case, c.layout) for c in found.checks}
    assert layouts >= {
        (case, name) for case in (0, 1) for name in ("plain", "repeat", "moved", "offset", "aliased")
    }
    assert {layout for case, layout in layouts if case == 2} == {"plain", "repeat", "moved"}
    assert all(c.bit_identical for c in found.checks if c.layout == "repeat" and c.bit_identical is not None)


def test_seeds_never_enter_a_record(laboratory):
    lab = laboratory()
    text = lab.check("tail").model_dump_json() + lab.check("right").model_dump_json()
    assert not any(str(seed) in text for seed in lab.pool.seeds)


def test_bit_differences_within_the_tolerance_are_noted(laboratory):
    found = laboratory().check("noisy")
    assert found.passed
    assert "repeats differ in their last bits, within the tolerance" in found.notes
    assert any(c.bit_identical is False for c in found.checks)


def test_cheap_takes_two_cases_and_one_seed(laboratory):
    lab = laboratory()
    found = lab.evaluator.evaluate(lab.request(scripted.source("right"), depth="cheap"))
    assert [(c.case, c.trial, c.layout) for c in found.checks] == [(0, 0, "plain"), (1, 0, "plain")]


def test_no_candidate_must_survive_what_the_original_does_not(laboratory):
    lab = laboratory("needs_alignment")
    found = lab.check("needs_alignment", ms=2)
    assert found.passed
    assert "unaligned pointers are not tested" in found.unverified[0]
    assert "offset" not in {c.layout for c in found.checks}
    assert "aliased" in {c.layout for c in found.checks}


def test_promises_take_layouts_away(laboratory):
    lab = laboratory(promise=frozenset({Promise.ALIGNED16, Promise.NO_ALIAS}))
    found = lab.check("clears_first")
    assert found.passed
    assert {c.layout for c in found.checks} == {"plain", "repeat", "moved"}
    assert lab.check("needs_alignment").passed


def test_an_original_that_aliases_wrongly_demands_no_aliasing(laboratory):
    assert laboratory("clears_first").check("clears_first", ms=3).passed


def test_what_the_original_makes_in_one_order_of_blocks_only_is_not_demanded(laboratory):
    lab = laboratory("ordered_in_place")
    found = lab.check("clears_first", ms=3)
    assert found.passed
    assert "x and y in one buffer are not tested" in found.unverified[0]
    assert "order in which its blocks run" in found.unverified[0]


def test_a_candidate_must_be_right_in_either_order_where_the_original_is(laboratory):
    found = laboratory().check("ordered_in_place")
    assert (found.status, "with x and y in one buffer" in found.detail) == ("incorrect", True)


def test_a_result_that_depends_on_the_order_of_blocks_is_called_so(laboratory):
    found = laboratory().check("ordered")
    assert found.status == "incorrect"
    assert "depends on the order of its blocks" in found.detail
    assert "order" not in laboratory().check("tail").detail


def test_an_original_with_races_does_not_make_races_of_others_fatal(laboratory):
    found = laboratory("racy").check("racy", ms=2)
    assert found.passed
    assert found.notes == ("race: k.cu:7 and k.cu:9 on tile[3]",)


def test_large_timed_cases_stay_unverified_where_a_device_estimates(laboratory):
    lab = laboratory(evidence="estimated")
    lab.evaluator._check_rules = CheckRules(estimated_bytes=4096)
    found = lab.check("hangs_large")
    assert found.passed
    assert found.unverified == ("case n=4096: too large to run in full on the emulated device",)
    assert 2 not in {c.case for c in found.checks}


def test_estimates_are_one_sample_without_interval(laboratory):
    lab = laboratory(evidence="estimated", settings={"ms": 3.0})
    found = lab.time("right", ms=1.5)
    paired = found.paired[0]
    assert (paired.ratios, paired.low, paired.high) == ((2.0,), 2.0, 2.0)
    assert found.timings[0].evidence == "estimated"
    workers = lab.backend.opened
    lab.time("right", ms=1.0)
    assert lab.backend.opened == workers + 2, "the incumbent's estimate is kept"
    assert judge(lab.task, found).kind is VerdictKind.ACCEPTED


def test_timing_reuses_the_check_and_adds_its_own_stage(laboratory):
    lab = laboratory(settings={"ms": 2.0})
    lab.check("right", ms=1.0)
    builds = lab.backend.builds
    found = lab.time("right", ms=1.0)
    assert [s.stage for s in found.seconds] == ["build", "data", "record", "check", "data", "time"]
    assert lab.backend.builds == builds + 2
    assert len(found.checks) > 10
    verdict = judge(lab.task, found)
    assert (verdict.kind, verdict.evidence) == (VerdictKind.ACCEPTED, "measured")


@pytest.mark.parametrize(
    ("behaviour", "status", "detail"),
    [
        ("tail", Status.INCORRECT, "the tail"),
        ("wrong_when_timed", Status.NONDETERMINISTIC, "right before and wrong while timed"),
        ("breaks_when_timed", Status.RUNTIME_ERROR, "while timed: an illegal address"),
    ],
)
def test_what_fails_has_no_times(laboratory, behaviour, status, detail):
    lab = laboratory()
    found = lab.time(behaviour)
    assert (found.status, found.stage, detail in found.detail) == (status, "time", True)
    assert not found.timings
    assert not found.paired
    assert judge(lab.task, found).kind is VerdictKind.REFUSED


def test_a_clear_loss_is_short_and_judged_slower(laboratory):
    lab = laboratory(settings={"ms": 1.0})
    found = lab.time("right", ms=2.0)
    assert len(found.paired[0].ratios) == 6
    assert "a clear loss after 6 pairs" in found.notes[-1]
    assert judge(lab.task, found).kind is VerdictKind.SLOWER


def test_a_worker_that_dies_once_is_our_trouble_and_said(laboratory):
    found = laboratory().check("dies", deaths=1)
    assert found.passed
    assert found.notes[0] == "a worker died and the evaluation was repeated: the worker ended with signal 9"


def test_a_worker_that_dies_twice_spoils_the_evaluation_and_is_not_kept(laboratory):
    lab = laboratory()
    found = lab.check("dies", deaths=2)
    assert found.status is Status.HARNESS_ERROR
    assert "died twice" in found.detail
    assert lab.store.get(found.key) is None
    assert lab.check("dies", deaths=2).passed, "asked again it is done again"
    assert judge(lab.task, found).kind is VerdictKind.REFUSED


def test_candidates_are_built_ahead(laboratory):
    lab = laboratory()
    lab.evaluator.prefetch([lab.request(scripted.source("right", ms=ms)) for ms in (1, 2, 1)])
    deadline = time.monotonic() + 10
    while lab.backend.builds < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    lab.evaluator.close()
    assert lab.backend.builds == 2
    assert not (lab.folder / "data").exists()


def test_profiles_are_kept(laboratory):
    lab = laboratory()
    profile = lab.evaluator.profile(lab.original)
    assert (profile.candidate, profile.case, profile.source) == (lab.original.digest, 2, "trace")
    assert profile.kernels[0].occupancy is not None
    assert lab.evaluator.profile(lab.original) == profile
    with pytest.raises(HarnessError, match="does not build"):
        lab.evaluator.profile(scripted.source("compile_error"))


def test_foreign_seeds_are_refused(laboratory):
    lab = laboratory()
    with pytest.raises(HarnessError, match="no seed pool with digest"):
        lab.evaluator.evaluate(lab.request(lab.original, seed_pool="0" * 64))


def test_fresh_seeds_make_another_answer(laboratory):
    lab = laboratory()
    first = lab.check("right")
    pool = lab.seeds.pool("confirmation", size=2)
    again = lab.evaluator.evaluate(lab.request(scripted.source("right"), seed_pool=pool.digest, fresh=1))
    assert again.passed
    assert again.key != first.key


def test_baseline_tells_the_noise_of_the_clock(laboratory):
    lab = laboratory(settings={"ms": 1.0, "spread": 0.2})
    report = establish_baseline(lab.evaluator, lab.task, lab.original, seed_pool=lab.pool.digest)
    assert report.noise[2] > 0.005
    # One pair errs by up to 0.2 and the median of sixty by a seventh of that, however long warming up took.
    assert report.evaluation.paired[0].median == pytest.approx(1.0, rel=0.2)
    workers = lab.backend.opened
    assert establish_baseline(lab.evaluator, lab.task, lab.original, seed_pool=lab.pool.digest) == report
    assert lab.backend.opened == workers


@pytest.mark.parametrize(
    ("behaviour", "text"),
    [
        (
            "tail",
            r"the original kernel ends with incorrect: case n=1000: y\[999\] was never written, expected",
        ),
        ("compile_error", "the original kernel ends with compile_error: kernel.cu:3: expected a ';'"),
        ("unsupported", "the original kernel ends with unsupported: case n=1: cannot: unsupported"),
        ("out_of_bounds", "the original kernel ends with out_of_bounds: case n=1: wrote outside y"),
        ("racy", "the original kernel ends with sanitizer_error: case n=1: race: k.cu:7 and k.cu:9"),
    ],
)
def test_a_wrong_original_is_the_users_to_correct(laboratory, behaviour, text):
    lab = laboratory(behaviour)
    with pytest.raises(TaskError, match=text) as caught:
        establish_baseline(lab.evaluator, lab.task, lab.original, seed_pool=lab.pool.digest)
    assert caught.value.remedy


def test_an_original_that_the_sanitizer_objects_to_is_refused(laboratory):
    lab = laboratory("right", full=True, settings={"finding": "racecheck"})
    with pytest.raises(TaskError, match="ends with sanitizer_error: case n=1000: racecheck: Invalid"):
        establish_baseline(lab.evaluator, lab.task, lab.original, seed_pool=lab.pool.digest)


LOOSE = {"y": Tolerance(rtol=1e-2, atol=1e-2)}


def test_an_error_far_beyond_the_originals_own_is_refused_though_the_tolerance_allows_it(laboratory):
    lab = laboratory(tolerances=LOOSE)
    found = lab.check("coarse", error=1e-3)
    assert found.status is Status.INCORRECT
    assert re.fullmatch(
        r"case n=\d+: y errs by 0.001, \d+ times as much as the original \(\S+\); "
        r"only ALLOW = \{'lower_precision'\} in the tests permits that",
        found.detail,
    )
    assert lab.check("coarse", error=1e-7).notes == ()
    noted = lab.check("coarse", error=4e-5)
    assert noted.passed
    assert "times as much as the original" in noted.notes[0]


def test_lower_precision_that_is_allowed_is_noted(laboratory):
    found = laboratory(tolerances=LOOSE, allow=frozenset({Allowance.LOWER_PRECISION})).check(
        "coarse", error=1e-3
    )
    assert found.passed
    assert "y errs by 0.001" in found.notes[0]


def test_an_original_that_errs_itself_leaves_room_to_others(laboratory):
    lab = laboratory("coarse", settings={"error": 1e-4}, tolerances=LOOSE)
    assert lab.check("coarse", error=9e-4).notes == ()
    assert lab.check("right").notes == ()


def test_a_baseline_on_a_dying_worker_is_a_harness_error(laboratory):
    lab = laboratory("dies", settings={"deaths": 9})
    with pytest.raises(HarnessError):
        establish_baseline(lab.evaluator, lab.task, lab.original, seed_pool=lab.pool.digest)


def test_the_users_own_check_decides(tmp_path):
    tests = tmp_path / "test.py"
    tests.write_text(
        scripted.TESTS
        + "def check(outputs, expected, case):\n"
        + "    if outputs['y'][-1] != expected['y'][-1]: return 'the last one is off'\n"
    )
    backend, original = scripted.ScriptedBackend(), scripted.source("right")
    task = scripted.make_task(original, custom_check=True, tolerances={})
    with TestProcess.start(read_test_source(tests)) as values:
        seeds = SeedFile(tmp_path / "seeds.json", random.Random(1))
        evaluator = LocalEvaluator(
            backend, task, original, values, seeds=seeds, store=EvaluationStore(tmp_path),
            data=tmp_path / "data", clock=SystemClock(),
        )  # fmt: skip

        def check(behaviour):
            request = {
                "task": task.content_digest(), "candidate": scripted.source(behaviour), "stage": "check",
                "device": "d", "seed_pool": seeds.pool().digest,
            }  # fmt: skip
            return evaluator.evaluate(Request(**request))

        assert check("right").passed
        wrong = check("tail")
    assert wrong.status is Status.INCORRECT
    assert wrong.detail == "case n=1000: check() of the tests says: the last one is off"


def test_a_worker_that_checked_a_candidate_times_it_too_and_the_incumbents_stays(laboratory):
    lab = laboratory(settings={"ms": 2.0})
    lab.time("right", ms=1.5)
    before = lab.backend.opened
    assert lab.time("right", ms=1.0).passed
    assert lab.backend.opened == before + 1
    candidate = scripted.source("right", ms=0.5)
    lab.evaluator.evaluate(lab.request(candidate, stage="time", incumbent=lab.original, fresh=1))
    assert lab.backend.opened >= before + 1 + 3, "a confirmation shares no process with anything"


def test_a_worker_that_failed_is_not_used_again(laboratory):
    lab = laboratory()
    assert not lab.check("tail").passed
    assert not lab.evaluator._workshop._kept
