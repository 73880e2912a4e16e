"""Workers and compilers that somebody kills: the candidate is not blamed, and nothing stays behind."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.isolation.locks import FileLock
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Evaluation, Request, Status
from kernelskill.tasks.load import load_task
from tests.flow.processes import adopt_orphans, descendants, no_descendants_left
from tests.flow.small_task import (
    COMMAND,
    environment,
    evaluation_files,
    kinds,
    of_kind,
    outcome,
    program,
    write_task,
)

pytestmark = pytest.mark.slow
MANY = "KERNELSKILL_MANY_KILLS"

KERNEL = """\
__device__ float offset_%(mark)s;
__global__ void scale_%(mark)s(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i] + offset_%(mark)s;
}
extern "C" void scale(const float *x, float *y, int n)
{
    for (volatile long i = 0; i < %(turns)s; ++i) {}
    scale_%(mark)s<<<(n + 255) / 256, 256>>>(x, y, n);
}
"""
TEST = """\
import numpy as np

CASES = [dict(n=5), dict(n=1000, time=True)]


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(x):
    return {"y": 2 * x}
"""
PARTS = {
    "device compiler": "cicc",
    "host compiler": "cc1plus",
    "emulated worker": "kernelskill.backends.emulated.child",
    "test process": "kernelskill.tasks.child",
    "recorder": "recorder",
}
"""What can be killed to a word of its command line."""


class Assassin(threading.Thread):
    """Kills the next process below this one whose command line holds a word."""

    def __init__(self, word: str, *, within_s: float = 30.0) -> None:
        super().__init__(daemon=True)
        self.word, self.victim = word, ""
        self._deadline = time.monotonic() + within_s

    def run(self) -> None:
        while not self.victim and time.monotonic() < self._deadline:
            for pid, line in descendants().items():
                if self.word in line and "supervisor" not in line.split(" -")[0] and strike(pid):
                    self.victim = line
                    return


def strike(pid: int) -> bool:
    """Kill a process as an out-of-memory killer does."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class Place:
    """A task whose every candidate has to be compiled anew, and its evaluator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kernel, tests = write_task(folder / "task", source(), TEST, settings="")
        self.loaded = load_task(kernel, tests)
        self.seeds = SeedFile(folder / "seeds.json", random.Random(3))
        self.pool = self.seeds.pool(size=2)
        self.evaluator = open_evaluator(
            "emulated", self.loaded, run_folder=folder / "run", seeds=self.seeds, clock=SystemClock()
        )

    def check(self, text: str) -> Evaluation:
        candidate = self.loaded.original.with_text(self.loaded.original.main, text)
        return self.evaluator.evaluate(
            Request(
                task=self.loaded.task.content_digest(),
                candidate=candidate,
                stage="check",
                device=self.evaluator.identity,
                depth="cheap",
                seed_pool=self.pool.digest,
            )
        )


def source(turns: int = 0) -> str:
    """Return a kernel that nobody has compiled before; its launcher idles for some turns of a loop."""
    return KERNEL % {"mark": f"m{time.time_ns()}", "turns": turns}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    adopt_orphans()
    place = Place(tmp_path_factory.mktemp("kills"))
    assert place.check(source()).passed
    yield place
    place.evaluator.close()


@pytest.mark.parametrize("part", [part for part in PARTS if part != "test process"])
def test_a_part_that_is_killed_does_not_cost_the_candidate(place: Place, part: str) -> None:
    assassin = Assassin(PARTS[part])
    assassin.start()
    # Recordings are over in a moment, unless the launcher takes its time.
    found = place.check(source(60_000_000 if part == "recorder" else 0))
    assassin.join(30)
    assert assassin.victim, f"no {part} was seen"
    assert found.status is Status.PASSED, found.detail


def test_a_test_process_that_is_killed_starts_again(place: Place) -> None:
    pids = [pid for pid, line in descendants().items() if PARTS["test process"] in line]
    for pid in pids:
        strike(pid)
    trial = place.pool.seeds[0] + 1
    values = place.evaluator._values  # type: ignore[attr-defined]
    bundle = values.bundle(0, trial, place.folder / "again", place.loaded.task.signature)
    assert bundle.expected["y"].shape == (5,)


@pytest.mark.skipif(MANY not in os.environ, reason=f"set {MANY}=N to kill N parts at random moments")
def test_many_parts_killed_at_random_moments(place: Place) -> None:
    chance = random.Random(6)
    killed: Counter[str] = Counter()
    while killed.total() < int(os.environ[MANY]):
        stop = threading.Event()
        hunter = threading.Thread(target=_kill_once, args=(chance, killed, stop))
        hunter.start()
        found = place.check(source(chance.choice([0, 60_000_000])))
        stop.set()
        hunter.join()
        print(killed.total(), found.status, found.detail, found.notes, file=sys.stderr, flush=True)
        assert found.status is Status.PASSED, f"{dict(killed)}: {found.detail}"
    print("killed:", dict(sorted(killed.items())), "in all", killed.total())


def _kill_once(chance: random.Random, killed: Counter[str], stop: threading.Event) -> None:
    """Kill one part of whatever runs after a moment; the test process, which idles, now and then."""
    stop.wait(chance.uniform(0.0, 3.0))
    while not stop.is_set():
        part = _kill_one(os.getpid(), chance)
        if part:
            killed[part] += 1
            return
        time.sleep(0.01)


@pytest.mark.skipif(MANY not in os.environ, reason=f"set {MANY}=N to kill parts of a whole run too")
def test_a_run_whose_parts_are_killed_many_times_ends_like_one_that_was_not(tmp_path: Path) -> None:
    adopt_orphans()
    write_task(tmp_path)
    env = environment(XDG_CACHE_HOME=str(tmp_path / "cache"), XDG_DATA_HOME=str(tmp_path / "pool-calm"))
    calm = program("run", "kernel.cu", "-t", "test.py", "-q", "--out", "calm", cwd=tmp_path, env=env)
    assert calm.returncode == 0, calm.stderr
    killed = _one_run(tmp_path, "hunted", random.Random(1))
    print("killed:", dict(sorted(killed.items())), "in all", killed.total())
    assert killed.total() >= 5


def _one_run(work: Path, name: str, chance: random.Random) -> Counter[str]:
    """Let a run go on while its workers, compilers and itself are killed; returns how often each was."""
    folder = work / name
    folder.mkdir()
    (folder / "seeds.json").write_bytes((work / "calm" / "seeds.json").read_bytes())
    # No builds are there: every candidate is compiled, so that there are compilers to kill.
    shutil.copytree(work / "cache", work / f"cache-{name}", ignore=shutil.ignore_patterns("builds"))
    env = environment(XDG_CACHE_HOME=str(work / f"cache-{name}"), XDG_DATA_HOME=str(work / f"pool-{name}"))
    killed: Counter[str] = Counter()
    known: dict[str, tuple[int, bytes]] = {}
    for _ in range(60):
        begun = (folder / "events.jsonl").exists() and b"\n" in (folder / "events.jsonl").read_bytes()
        arguments = ["resume", name] if begun else ["run", "kernel.cu", "-t", "test.py", "--out", name]
        process = start_hunted(arguments, work, env, work / f"{name}.errors")
        while process.poll() is None:
            time.sleep(chance.uniform(0.5, 8.0))
            if process.poll() is None and chance.random() < 0.15:
                strike(process.pid)
                killed["kernelskill"] += 1
            else:
                killed[_kill_one(process.pid, chance)] += 1
        del killed[""]
        no_descendants_left()
        files = evaluation_files(folder)
        assert {file: files[file] for file in known} == known, "a finished evaluation was done again"
        known = files
        said = (work / f"{name}.errors").read_text()
        assert "Traceback" not in said, said
        # One and the same work that is killed twice in a row ends the run, which then goes on.
        twice = process.returncode == 2 and "the process died while" in said
        assert twice or process.returncode in (0, 6, -signal.SIGKILL), f"{process.returncode}: {said}"
        if process.returncode == 0:
            break
    assert kinds(folder)[-1] == "run_finished"
    _assert_like_the_calm_one(work, folder)
    return killed


def start_hunted(
    arguments: list[str], work: Path, env: dict[str, str], errors: Path
) -> subprocess.Popen[bytes]:
    with errors.open("wb") as stream:
        return subprocess.Popen(
            [*COMMAND, *arguments, "-q"],
            cwd=work,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            start_new_session=True,
        )


def _kill_one(below: int, chance: random.Random) -> str:
    """Kill something that runs now below a process; returns what it was."""
    found: dict[str, list[int]] = {}
    for pid, line in descendants(below).items():
        part = next((part for part, word in PARTS.items() if word in line), "other compiler")
        found.setdefault("supervisor" if "supervisor.py" in line else part, []).append(pid)
    if not found:
        return ""
    part = chance.choice(sorted(found))
    return part if strike(chance.choice(found[part])) else ""


def _assert_like_the_calm_one(work: Path, folder: Path) -> None:
    calm = {e.key: e for e in _evaluations(work / "calm")}
    for evaluation in _evaluations(folder):
        if evaluation.key in calm:
            assert evaluation.status is calm[evaluation.key].status, evaluation.detail
    refused = {e.verdict.reason for e in of_kind(folder, "judged") if "died twice" in e.verdict.reason}
    if not refused:
        assert outcome(folder) == outcome(work / "calm")
    assert FileLock(folder / ".lock").acquire(blocking=False), "a lock was left"
    assert not list(folder.rglob(".*.*.*")), "half-written files stay behind"


def _evaluations(folder: Path) -> list[Evaluation]:
    return [
        Evaluation.model_validate_json(path.read_bytes())
        for path in sorted((folder / "evaluations").glob("*.json"))
    ]
