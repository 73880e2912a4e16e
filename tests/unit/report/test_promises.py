"""What a promise would open is said, with what declined for want of it."""

from __future__ import annotations

from kernelskill.report.promises import section, wanted_promises
from kernelskill.schema.proposal import Refusal, needs
from kernelskill.schema.task import Promise


def _refusal(skill: str, reason: str) -> Refusal:
    return Refusal(skill=skill, kernel="lookup", reason=reason)


def test_refusals_for_want_of_a_promise_are_counted_by_promise() -> None:
    refusals = [
        _refusal(
            "parallelism/row_lanes", f"out may overlap table; {needs(Promise.NO_ALIAS)} or __restrict__"
        ),
        _refusal("memory/vector_points", f"out may overlap table; {needs(Promise.NO_ALIAS)} or __restrict__"),
        _refusal("memory/narrow_index", f"{needs(Promise.INT32_SIZES)} in the tests"),
        _refusal("compute/unroll", "it has no loop"),
    ]
    first, second = wanted_promises(refusals)
    assert first.promise is Promise.NO_ALIAS
    assert first.skills == ("parallelism/row_lanes", "memory/vector_points")
    assert str(first) == '2 skills declined for want of PROMISE = {"no_alias"} (no two pointers overlap)'
    assert second.promise is Promise.INT32_SIZES
    text = section(refusals)
    assert "in `lookup`: parallelism/row_lanes, memory/vector_points" in text
    assert "unroll" not in text


def test_nothing_is_said_where_no_promise_is_wanted() -> None:
    assert section([_refusal("compute/unroll", "it has no loop")]) == ""
