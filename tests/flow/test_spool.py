"""Client and worker as processes of their own, on one folder, killed at bad moments."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelskill.errors import DeviceUnavailable, HarnessError, JobsWaiting
from kernelskill.evaluation.baseline import establish_baseline
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.spool import SpoolEvaluator, SpoolRules
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Request, Status
from kernelskill.tasks.snapshot import StoredTask
from kernelskill.tasks.testsource import read_test_source

FAKES = Path(__file__).parents[1] / "fakes"
sys.path.insert(0, str(FAKES))
import scripted_backend as scripted  # noqa: E402


class Client:
    """A run that hands its work to a spool."""

    def __init__(self, root, **rules):
        self.root, self.spool = root, root / "spool"
        tests = root / "tests" / "test.py"
        tests.parent.mkdir(parents=True, exist_ok=True)
        tests.write_text(scripted.TESTS)
        source = read_test_source(tests)
        self.original = scripted.source("right", ms=2.0)
        task = scripted.make_task(self.original, tests=source.digest)
        self.parts = StoredTask(task=task, original=self.original, tests=source)
        self.seeds = SeedFile(root / "seeds.json", random.Random(3))
        self.pool = self.seeds.pool(size=2)
        self.said = []
        self.evaluator = SpoolEvaluator(
            self.spool, self.parts, seeds=self.seeds, store=EvaluationStore(root / "run"), clock=SystemClock(),
            rules=SpoolRules(**{"poll_s": 0.05, "patience_s": 20.0, "lease_s": 1.5} | rules), progress=self.said.append,
        )  # fmt: skip

    def request(self, behaviour, **settings):
        return Request(
            task=self.parts.task.content_digest(), candidate=scripted.source(behaviour, **settings), stage="check",
            device=self.evaluator.device, seed_pool=self.pool.digest,
        )  # fmt: skip


@pytest.fixture
def start():
    processes = []

    def run(spool, *options):
        command = [sys.executable, str(FAKES / "scripted_spool_worker.py"), str(spool), *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(condition, seconds=15.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.02)


def test_a_worker_process_answers_everything(tmp_path, start):
    client = Client(tmp_path)
    start(client.spool)
    report = establish_baseline(
        client.evaluator, client.parts.task, client.original, seed_pool=client.pool.digest
    )
    assert report.evaluation.passed
    assert report.noise
    assert client.evaluator.gpu.name == "Scripted"
    assert client.evaluator.evidence == "measured"
    assert client.evaluator.conditions().device == "spool (scripted:0)"
    wrong = client.evaluator.evaluate(client.request("tail"))
    assert (wrong.status, "the tail" in wrong.detail) == (Status.INCORRECT, True)
    assert wrong.seconds[-1].stage == "wait"
    profile = client.evaluator.profile(client.original)
    assert profile.candidate == client.original.digest
    assert client.evaluator.evaluate(client.request("tail")) == wrong
    assert sorted(p.name for p in (client.spool / "jobs").iterdir()) == []
    text = "".join(p.read_text() for p in client.spool.rglob("*.json") if p.parent.name != "seeds")
    assert not any(str(seed) in text for seed in client.pool.seeds)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_loses_nothing(tmp_path, start):
    client = Client(tmp_path)
    slow = client.request("slow", sleep=0.5)
    client.evaluator.submit([slow])
    first = start(client.spool, "1.5")
    lease = client.spool / "claimed" / slow.key / "lease"
    until(lease.exists)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert not (client.spool / "results" / f"{slow.key}.json").exists()
    start(client.spool, "1.5")
    assert client.evaluator.evaluate(slow).passed
    until(lambda: not list((client.spool / "claimed").iterdir()))


@pytest.mark.slow
def test_a_client_killed_and_started_again_finds_its_answers(tmp_path, start):
    client = Client(tmp_path, wait=False)
    requests = [client.request("right", ms=ms) for ms in (1, 2, 3)]
    assert client.evaluator.submit(requests) == 3
    with pytest.raises(JobsWaiting, match="3 jobs wait in ") as caught:
        client.evaluator.evaluate(requests[0])
    assert caught.value.exit_code == 4
    assert "kernelskill worker" in caught.value.remedy
    with pytest.raises(JobsWaiting):
        _ = client.evaluator.gpu
    worker = start(client.spool, "60", "--until-empty")
    assert worker.wait(timeout=60) == 0
    again = Client(tmp_path, wait=False)
    assert [again.evaluator.evaluate(request).status for request in requests] == [Status.PASSED] * 3
    assert again.evaluator.gpu.name == "Scripted"


def test_prefetch_asks_for_several_checks_at_once(tmp_path):
    client = Client(tmp_path)
    client.evaluator.prefetch([client.request("right", ms=ms) for ms in (1, 2)])
    client.evaluator.prefetch([client.request("right", ms=1)])
    assert len(list((client.spool / "jobs").iterdir())) == 2


@pytest.mark.slow
def test_two_workers_share_the_jobs(tmp_path, start):
    client = Client(tmp_path)
    requests = [client.request("slow", sleep=0.05, ms=ms) for ms in range(1, 7)]
    client.evaluator.submit(requests)
    start(client.spool)
    start(client.spool)
    found = [client.evaluator.evaluate(request) for request in requests]
    assert all(e.passed for e in found)
    assert len({e.key for e in found}) == 6


def test_a_copied_folder_works_like_a_shared_one(tmp_path, start):
    """Copies both ways, jobs before their task: nothing is done early, nothing twice, nothing lost."""
    client = Client(tmp_path, wait=False)
    request = client.request("right")
    client.evaluator.submit([request])
    there = tmp_path / "there"
    shutil.copytree(client.spool / "jobs", there / "jobs")
    worker = start(there, "60")
    until(lambda: list((there / "workers").glob("*.json")))
    time.sleep(0.3)
    assert not (there / "results").exists()
    shutil.copytree(client.spool / "seeds", there / "seeds")
    shutil.copytree(client.spool / "tasks", there / "tasks")
    until(lambda: list((there / "results").glob("*.json")))
    shutil.copytree(there / "results", client.spool / "results")
    assert client.evaluator.evaluate(request).passed
    # The job is copied there once more, as a careless synchronisation does.
    shutil.copytree(client.spool / "jobs", there / "jobs", dirs_exist_ok=True)
    until(lambda: not [p for p in (there / "jobs").iterdir() if not p.name.startswith(".")])
    assert worker.poll() is None


def test_no_worker_is_said_with_the_folder(tmp_path):
    client = Client(tmp_path, patience_s=0.3)
    with pytest.raises(
        DeviceUnavailable, match=r"no worker gave a sign of life in .*spool for 0.3 s"
    ) as caught:
        client.evaluator.evaluate(client.request("right"))
    assert "the jobs stay there" in caught.value.remedy
    assert client.said == [f"1 job waits in {client.spool}"]
    with pytest.raises(DeviceUnavailable):
        _ = client.evaluator.gpu


def test_what_the_worker_cannot_do_is_an_error_here_and_can_be_asked_again(tmp_path, start):
    client = Client(tmp_path)
    start(client.spool)
    request = client.request("compile_error")
    assert client.evaluator.evaluate(request).status is Status.COMPILE_ERROR
    with pytest.raises(HarnessError, match="does not build and has no profile"):
        client.evaluator.profile(scripted.source("compile_error"))
    assert client.evaluator.evaluate(client.request("right")).passed


def test_the_worker_needs_no_parser_database_or_model():
    heavy = ("tree_sitter", "sqlalchemy", "langgraph", "typer", "rich", "cupy", "openai")
    script = "import sys, kernelskill.evaluation.spool_worker\nprint([m for m in sys.argv[1:] if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_command_line_answers_bad_devices_in_one_line(tmp_path):
    command = [sys.executable, "-m", "kernelskill.evaluation.spool_worker", str(tmp_path), "--device", "gpu7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "error: no device is named 'gpu7'"
