from __future__ import annotations

import pytest
import scripted_backend as scripted

from kernelskill.errors import ArtifactCorrupt, UsageError
from kernelskill.evaluation.baseline import establish_baseline
from kernelskill.evaluation.judge import judge
from kernelskill.evaluation.replay import NOT_RECORDED, ReplayEvaluator
from kernelskill.schema.evaluation import Status, VerdictKind


@pytest.fixture
def recorded(laboratory):
    """A run folder with an original, a better and a wrong candidate; the GPU is a known one."""
    lab = laboratory(settings={"ms": 2.0})
    lab.backend.gpu = lab.evaluator.gpu = scripted.GPU.model_copy(update={"name": "NVIDIA H200"})
    establish_baseline(lab.evaluator, lab.task, lab.original, seed_pool=lab.pool.digest)
    lab.time("right", ms=1.0)
    lab.time("tail")
    lab.evaluator.profile(lab.original)
    return lab


def test_a_run_folder_answers_by_key(recorded):
    replay = ReplayEvaluator.open(recorded.folder)
    request = recorded.request(scripted.source("right", ms=1.0), stage="time", incumbent=recorded.original)
    assert replay.evaluate(request) == recorded.store.get(request.key)
    assert (replay.device, replay.gpu.short_name, replay.evidence) == ("replay", "h200", "measured")
    assert replay.profile(recorded.original).kernels
    assert replay.profile(scripted.source("other")).unavailable.startswith(NOT_RECORDED)


def test_other_keys_are_answered_by_candidate_and_stage(recorded):
    replay = ReplayEvaluator.open(recorded.folder)
    request = recorded.request(
        scripted.source("right", ms=1.0),
        stage="time",
        incumbent=recorded.original,
        device="replay",
        seed_pool="s",
    )
    found = replay.evaluate(request)
    assert found.key == request.key
    assert found.paired[0].median == pytest.approx(2.0, rel=0.01)
    assert judge(recorded.task, found).kind is VerdictKind.ACCEPTED
    wrong = replay.evaluate(request.model_copy(update={"candidate": scripted.source("tail")}))
    assert wrong.status is Status.INCORRECT
    check = replay.evaluate(request.model_copy(update={"stage": "check", "incumbent": None}))
    assert (check.status, check.timings) == (Status.PASSED, ())


def test_what_is_unknown_is_called_so(recorded):
    replay = ReplayEvaluator.open(recorded.folder)
    found = replay.evaluate(recorded.request(scripted.source("never")))
    assert (found.status, found.detail) == (Status.UNSUPPORTED, "not recorded")
    against_unknown = recorded.request(
        scripted.source("right", ms=1.0), stage="time", incumbent=scripted.source("never"), device="replay"
    )
    verdict = judge(recorded.task, replay.evaluate(against_unknown))
    assert verdict.kind is VerdictKind.REFUSED


def test_a_file_of_lines_and_a_plain_folder_do_as_well(recorded, tmp_path):
    texts = [path.read_text() for path in sorted((recorded.folder / "evaluations").glob("*.json"))]
    lines = tmp_path / "recorded.jsonl"
    lines.write_text("\n".join(texts) + "\n")
    request = recorded.request(recorded.original, stage="time", incumbent=recorded.original)
    assert ReplayEvaluator.open(lines).evaluate(request).passed
    assert ReplayEvaluator.open(recorded.folder / "evaluations").evaluate(request).passed


def test_bad_sources_are_named(tmp_path):
    with pytest.raises(UsageError, match="no recorded evaluations at"):
        ReplayEvaluator.open(tmp_path / "absent")
    with pytest.raises(UsageError, match="holds no evaluations"):
        ReplayEvaluator.open(tmp_path)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"key": 1}\n')
    with pytest.raises(ArtifactCorrupt, match=r"broken.jsonl:1 is no evaluation"):
        ReplayEvaluator.open(broken)


def test_a_brief_record_answers_brief_requests_only(recorded):
    fast = scripted.source("right", ms=0.7)
    request = recorded.request(fast, stage="time", incumbent=recorded.original, depth="cheap")
    cheap = recorded.evaluator.evaluate(request)
    elsewhere = request.model_copy(update={"device": "replay", "seed_pool": "s"})
    replay = ReplayEvaluator.open(recorded.folder)
    assert replay.evaluate(elsewhere).timings == cheap.timings
    deep = elsewhere.model_copy(update={"depth": "search"})
    assert replay.evaluate(deep).detail == "not recorded"
    whole = recorded.evaluator.evaluate(request.model_copy(update={"depth": "search"}))
    again = ReplayEvaluator.open(recorded.folder)
    assert again.evaluate(deep).timings == whole.timings
    assert again.evaluate(elsewhere).timings == cheap.timings
