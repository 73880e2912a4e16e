"""Same input, same run: with clock and seeds injected, the log is equal byte for byte."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kernelskill.config import RunConfig
from kernelskill.session import Session
from tests.flow.small_task import write_task

pytestmark = pytest.mark.slow


class SteppingClock:
    """Every reading is a millisecond after the one before."""

    def __init__(self) -> None:
        self.readings = 0

    def seconds(self) -> float:
        self.readings += 1
        return self.readings / 1000

    def timestamp(self) -> str:
        return f"2026-01-02T03:04:{self.seconds():06.3f}+00:00"


def log_of(task: tuple[Path, Path], out: Path, device: str) -> bytes:
    config = RunConfig(device=device, rounds=2, slate=2, points=2, learn=False, seed=5)
    with Session.start(*task, config, out, clock=SteppingClock(), seed_source=random.Random(7)) as session:
        session.run()
    return (out / "events.jsonl").read_bytes()


def test_two_runs_on_the_emulated_device_write_the_same_log_and_a_replay_finds_the_same(
    tmp_path: Path,
) -> None:
    task = write_task(tmp_path, settings="")
    first = log_of(task, tmp_path / "first", "emulated")
    second = log_of(task, tmp_path / "second", "emulated")
    assert first.count(b"\n") > 20
    assert differing(first, second) == []
    for name in ("report.md", "result/kernel.cu", "result/reproducer.cu"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    # Over a replay the device has another name and no stage takes time, but the decisions are the same.
    replayed = log_of(task, tmp_path / "third", f"replay:{tmp_path / 'first'}")
    assert replayed == log_of(task, tmp_path / "fourth", f"replay:{tmp_path / 'first'}")
    assert judgements(replayed) == judgements(first)


def differing(first: bytes, second: bytes) -> list[tuple[bytes, bytes]]:
    return [pair for pair in zip(first.split(b"\n"), second.split(b"\n"), strict=True) if pair[0] != pair[1]]


def judgements(log: bytes) -> list[bytes]:
    return [line[line.index(b'"proposal"') :] for line in log.split(b"\n") if b'"kind":"judged"' in line]
