"""Outputs with the bytes of others that were found right are right; nothing else is taken from memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelskill.evaluation import right_answers
from kernelskill.evaluation.comparison import Finding
from kernelskill.evaluation.right_answers import RightAnswers
from kernelskill.schema.evaluation import Status

SIZE = right_answers.LEAST_BYTES


class Reference:
    """Takes outputs for right that hold the same byte everywhere, and counts how often it is asked."""

    def __init__(self, byte: int) -> None:
        self.byte = byte
        self.compared: list[Path] = []

    def __call__(self, outputs: Mapping[str, Path]) -> Finding:
        self.compared += outputs.values()
        right = all((np.fromfile(path, np.uint8) | 1 == self.byte | 1).all() for path in outputs.values())
        return Finding(Status.PASSED, errors={"y": 0.5}) if right else Finding(Status.INCORRECT, "wrong")


@pytest.fixture
def trial(tmp_path: Path) -> Any:
    folder = tmp_path / "trial"
    folder.mkdir()
    return SimpleNamespace(bundle=SimpleNamespace(key="one"), folder=folder)


def written(path: Path, byte: int, size: int = SIZE) -> dict[str, Path]:
    np.full(size, byte, np.uint8).tofile(path)
    return {"y": path}


def test_the_same_bytes_are_compared_once(trial: Any, tmp_path: Path) -> None:
    known, reference = RightAnswers(), Reference(4)
    first = known.finding(trial, written(tmp_path / "a", 4), reference)
    again = known.finding(trial, written(tmp_path / "b", 4), reference)
    assert first == again
    assert first.errors == {"y": 0.5}
    assert len(reference.compared) == 1


def test_other_bytes_are_compared_and_only_right_ones_are_kept(trial: Any, tmp_path: Path) -> None:
    known, reference = RightAnswers(), Reference(4)
    known.finding(trial, written(tmp_path / "a", 4), reference)
    for _ in range(2):
        assert known.finding(trial, written(tmp_path / "b", 9), reference).status is Status.INCORRECT
    assert known.finding(trial, written(tmp_path / "c", 5), reference).status is Status.PASSED
    assert len(reference.compared) == 4
    # The right ones that came last are held against the next.
    known.finding(trial, written(tmp_path / "d", 5), reference)
    assert len(reference.compared) == 4
    assert [path.name for path in trial.folder.iterdir()] == ["right-4-y"]


def test_what_a_candidate_does_to_its_file_afterwards_changes_nothing(trial: Any, tmp_path: Path) -> None:
    known, reference = RightAnswers(), Reference(4)
    outputs = written(tmp_path / "a", 4)
    known.finding(trial, outputs, reference)
    with outputs["y"].open("r+b") as stream:
        stream.write(b"\x09" * SIZE)
    assert known.finding(trial, outputs, reference).status is Status.INCORRECT
    assert known.finding(trial, written(tmp_path / "b", 9), reference).status is Status.INCORRECT
    assert not set(reference.compared) & {tmp_path / "a", tmp_path / "b"}


def test_another_length_and_another_trial_are_compared(trial: Any, tmp_path: Path) -> None:
    known, reference = RightAnswers(), Reference(4)
    known.finding(trial, written(tmp_path / "a", 4), reference)
    known.finding(trial, written(tmp_path / "b", 4, SIZE + 1), reference)
    other = SimpleNamespace(bundle=SimpleNamespace(key="two"), folder=trial.folder)
    known.finding(other, written(tmp_path / "c", 4), reference)
    assert len(reference.compared) == 3


def test_small_outputs_are_not_kept(trial: Any, tmp_path: Path) -> None:
    known, reference = RightAnswers(), Reference(4)
    for name in "ab":
        known.finding(trial, written(tmp_path / name, 4, SIZE - 1), reference)
    assert reference.compared == [tmp_path / "a", tmp_path / "b"]
    assert not list(trial.folder.iterdir())


def test_where_nothing_can_be_kept_every_output_is_compared(trial: Any, tmp_path: Path) -> None:
    trial.folder = tmp_path / "gone"
    known, reference = RightAnswers(), Reference(4)
    for name in "ab":
        assert known.finding(trial, written(tmp_path / name, 4), reference).status is Status.PASSED
    assert known.finding(trial, written(tmp_path / "c", 9), reference).status is Status.INCORRECT
    assert reference.compared == [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
