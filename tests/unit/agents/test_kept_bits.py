"""Whether a change kept the original's bits, by the evaluator's records alone."""

from collections.abc import Iterable
from typing import Any

import pytest

from kernelskill.agents.kept_bits import SAME_BITS, changed_bits, unrepeatable
from kernelskill.agents.verifier import objection
from kernelskill.schema.evaluation import CheckOutcome, Evaluation, Status
from tests import records

TASK = records.task()


def seen(*calls: tuple[Any, ...]) -> Evaluation:
    """Return an evaluation with a check for every case, trial, layout and digest."""
    checks = [
        CheckOutcome(case=case, trial=trial, layout=layout, status=Status.PASSED, bits=bits)
        for case, trial, layout, bits in calls
    ]
    return records.evaluation().model_copy(update={"checks": tuple(checks)})


ORIGINAL = seen(
    (0, 0, "plain", "a"), (0, 1, "plain", "b"), (0, 1, "repeat", "b"), (0, 0, "moved", "a"),
    (0, 0, "offset", "c"), (0, 0, "aliased", "d"), (0, 0, "aliased", "e"), (1, 0, "plain", "f"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([(0, 0, "plain", "a"), (0, 1, "repeat", "b"), (0, 0, "aliased", "d"), (0, 0, "aliased", "e")], ""),
        ([(0, 0, "plain", "b")], "case n=4, seed 1: an output differs from the original's in some bits"),
        ([(0, 0, "plain", "a"), (0, 0, "moved", "x")], "it gives other bits when it is called again"),
        ([(0, 0, "aliased", "e"), (0, 0, "aliased", "d")], "aliased arrays: an output differs"),
        ([(0, 0, "offset", "a")], "offset arrays: an output differs"),
        ([(1, 3, "plain", "f")], "the original was not run there"),
        ([(0, 0, "plain", "")], "an output differs"),
        ([], "no case was run"),
    ],
)
def test_bits_are_compared_call_by_call(calls: Iterable[tuple[Any, ...]], says: str) -> None:
    found = changed_bits(seen(*calls), ORIGINAL, TASK)
    assert says in found
    assert bool(says) == bool(found)


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([(0, 0, "plain", "a"), (0, 0, "repeat", "b")], "in case n=4 the original itself gives other bits"),
        ([(0, 0, "plain", "")], "holds no bits"),
        ([], "holds no bits"),
    ],
)
def test_with_an_original_that_changes_its_own_bits_nothing_is_compared(
    calls: Iterable[tuple[Any, ...]], says: str
) -> None:
    original = seen(*calls)
    assert says in unrepeatable(original, TASK)
    assert "no change can be told to keep them" in changed_bits(original, original, TASK)
    assert unrepeatable(ORIGINAL, TASK) == ""


def test_only_what_is_not_proven_is_compared() -> None:
    other, proven = seen((0, 0, "plain", "z")), records.proposal()
    tested = proven.model_copy(update={"assumptions": (SAME_BITS,)})
    assert objection(proven, other, ORIGINAL, TASK, keep_exact=True) == ""
    assert "in some bits" in objection(tested, other, ORIGINAL, TASK, keep_exact=True)
    assert objection(tested, ORIGINAL, ORIGINAL, TASK, keep_exact=True) == ""
    assert objection(tested, other, ORIGINAL, TASK, keep_exact=False) == ""
