from __future__ import annotations

import scripted_backend as scripted

from kernelskill.evaluation.spool_folder import Answer, EvaluateJob, Lease, ProfileJob, SpoolFolder, Watch
from kernelskill.schema.evaluation import Request


def job(name="right"):
    return EvaluateJob(
        request=Request(
            task="t", candidate=scripted.source(name), stage="check", device="spool", seed_pool="p"
        )
    )


def test_a_job_is_submitted_once_and_taken_once(tmp_path):
    folder, other = SpoolFolder(tmp_path), SpoolFolder(tmp_path)
    assert folder.submit(job())
    assert not other.submit(job())
    key = job().key
    assert (folder.waiting(), folder.state(key)) == ([key], "waiting")
    assert folder.read_job(key) == job()
    assert folder.claim(key)
    assert not other.claim(key)
    assert (folder.waiting(), folder.claimed(), folder.state(key)) == ([], [key], "claimed")
    assert not folder.submit(job()), "what is worked on is not asked again"


def test_an_answer_ends_the_job_wherever_it_is(tmp_path):
    folder = SpoolFolder(tmp_path)
    folder.submit(job())
    folder.claim(job().key)
    folder.answer(Answer(key=job().key, error="no"))
    assert (folder.state(job().key), folder.waiting(), folder.claimed()) == ("answered", [], [])
    assert folder.result(job().key).error == "no"
    assert not folder.submit(job())
    folder.forget(job().key)
    assert folder.submit(job())


def test_unfinished_and_foreign_files_are_ignored(tmp_path):
    folder = SpoolFolder(tmp_path)
    (tmp_path / "jobs" / ".half.1234").mkdir(parents=True)
    (tmp_path / "jobs" / "empty").mkdir()
    (tmp_path / "jobs" / "torn").mkdir()
    (tmp_path / "jobs" / "torn" / "job.json").write_text('{"job": {"kin')
    folder.submit(job())
    (tmp_path / "jobs" / job().key).rename(tmp_path / "jobs" / "misnamed")
    assert sorted(folder.waiting()) == ["empty", "misnamed", "torn"]
    assert [folder.read_job(key) for key in folder.waiting()] == [None, None, None]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "torn.json").write_text('{"key": "to')
    assert folder.result("torn") is None


def test_the_oldest_job_comes_first(tmp_path):
    folder = SpoolFolder(tmp_path)
    jobs = [job("right"), job("tail"), ProfileJob(task="t", candidate=scripted.source("nan"), seed_pool="p")]
    for one in jobs:
        assert folder.submit(one)
    assert folder.waiting() == [one.key for one in jobs]
    assert folder.read_job(jobs[2].key) == jobs[2]


def test_a_claim_can_be_given_back_with_its_count(tmp_path):
    folder = SpoolFolder(tmp_path)
    folder.submit(job())
    key = job().key
    folder.claim(key)
    assert folder.attempt(key) == 1
    folder.renew(key, Lease(worker="w", beat=1))
    assert folder.lease_text(key)
    assert folder.give_back(key)
    assert folder.waiting() == [key]
    folder.renew(key, Lease(worker="w", beat=2))
    assert folder.claim(key)
    assert folder.attempt(key) == 2


def test_a_claim_whose_answer_is_there_is_dropped(tmp_path):
    folder = SpoolFolder(tmp_path)
    folder.submit(job())
    folder.claim(job().key)
    # The worker was killed between the answer and the removal of its claim.
    (tmp_path / "kept").mkdir()
    (tmp_path / "claimed" / job().key).rename(tmp_path / "kept" / "claim")
    folder.answer(Answer(key=job().key, error="no"))
    (tmp_path / "kept" / "claim").rename(tmp_path / "claimed" / job().key)
    assert not folder.give_back(job().key)
    assert (folder.claimed(), folder.waiting()) == ([], [])


def test_silence_is_told_by_the_observers_clock():
    watch = Watch(10.0)
    assert not watch.is_silent("a", "1", 0.0)
    assert not watch.is_silent("a", "1", 9.0)
    assert not watch.is_silent("a", "2", 11.0)
    assert not watch.is_silent("a", "2", 20.0)
    assert watch.is_silent("a", "2", 21.5)
    assert not watch.is_silent("b", "", 100.0), "the first look never tells"
