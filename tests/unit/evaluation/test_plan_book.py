"""What is recorded of a launcher once, and what is not recorded again."""

from __future__ import annotations

import pytest

from kernelskill.backends.base import Call, Unrecordable
from kernelskill.evaluation.bench import PlanBook
from kernelskill.schema.evaluation import Status
from tests.fakes.scripted_backend import SIGNATURE


class Recorder:
    """Answers every recording with one failure, and counts them."""

    def __init__(self, status: Status) -> None:
        self.answer = Unrecordable(status=status, reason="host code did not return within 15 s")
        self.asked = 0

    def record(self, *_: object) -> Unrecordable:
        self.asked += 1
        return self.answer


def call(n: int) -> Call:
    return Call(buffers={"x": 4 * n, "y": 4 * n}, pointers={}, scalars={"n": n})


@pytest.mark.parametrize(("status", "asked"), [(Status.TIMEOUT, 1), (Status.RUNTIME_ERROR, 2)])
def test_a_launcher_that_hung_is_not_asked_about_other_calls(status: Status, asked: int) -> None:
    recorder = Recorder(status)
    book = PlanBook(recorder, None, SIGNATURE)
    assert [book.plan(call(n)) for n in (1, 1, 5)] == [recorder.answer] * 3
    assert recorder.asked == asked
