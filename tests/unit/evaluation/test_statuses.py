"""Every status, driven by a kernel that earns it."""

from __future__ import annotations

import pytest

from kernelskill.schema.evaluation import Status

CHECKED = [
    ("right", Status.PASSED, ""),
    ("noisy", Status.PASSED, ""),
    ("compile_error", Status.COMPILE_ERROR, "kernel.cu:3: expected a ';'"),
    ("unsupported", Status.UNSUPPORTED, "cannot: unsupported"),
    ("launch_error", Status.LAUNCH_ERROR, "cannot: launch_error"),
    ("exits", Status.RUNTIME_ERROR, "the launcher ended its process"),
    ("faults", Status.RUNTIME_ERROR, "an illegal address at line 7"),
    ("hangs", Status.TIMEOUT, "case n=1: did not finish in 10 s"),
    ("hangs_large", Status.TIMEOUT, "case n=4096"),
    ("exhausts", Status.OUT_OF_MEMORY, "1 TiB"),
    ("stale", Status.INCORRECT, "case n=1: y[0] was never written"),
    ("tail", Status.INCORRECT, "case n=1000: y[999] was never written"),
    ("strided", Status.INCORRECT, "case n=1: y[0] is 0.0, expected"),
    ("spots_poison", Status.INCORRECT, "with an earlier answer left in the outputs"),
    ("nan", Status.INCORRECT_NAN, "y[0] is nan"),
    ("modifies_input", Status.INPUT_MODIFIED, "the input x was changed at element 0"),
    ("out_of_bounds", Status.OUT_OF_BOUNDS, "wrote outside y"),
    ("before_start", Status.OUT_OF_BOUNDS, "wrote before the first element of y"),
    ("flaky", Status.NONDETERMINISTIC, "nothing reset"),
    ("cached", Status.INCORRECT, "second call, other inputs, nothing reset"),
    ("by_address", Status.INCORRECT, "at other addresses"),
    ("needs_alignment", Status.RUNTIME_ERROR, "one element past an aligned address"),
    ("clears_first", Status.INCORRECT, "with x and y in one buffer"),
    ("racy", Status.SANITIZER_ERROR, "race: k.cu:7"),
]


@pytest.mark.parametrize(("behaviour", "status", "detail"), CHECKED, ids=[row[0] for row in CHECKED])
def test_each_behaviour_ends_with_its_status(laboratory, behaviour, status, detail):
    evaluation = laboratory().check(behaviour)
    assert (evaluation.status, detail in evaluation.detail) == (status, True), evaluation.detail
    assert "\n" not in evaluation.detail


def test_tail_is_named_with_its_element(laboratory):
    evaluation = laboratory().check("tail")
    assert evaluation.detail.endswith("(1 of 1000 elements wrong: the tail)")
    mismatch = evaluation.checks[-1].mismatch
    assert (mismatch.output, mismatch.index, mismatch.wrong, mismatch.pattern) == ("y", (999,), 1, "tail")
