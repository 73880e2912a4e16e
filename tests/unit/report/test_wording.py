"""The lines of the terminal: one an event, as wide as there is room."""

import pytest

from kernelskill.report.wording import line_of, waiting_for
from kernelskill.schema.evaluation import Verdict, VerdictKind
from kernelskill.schema.event import Judged, Note, RoundStarted


def judged(kind: VerdictKind, *, combined: bool = False, speedup: float | None = 1.5) -> Judged:
    return Judged(
        round=1,
        proposal="p",
        label="block_shape(shape=1024x1) at a_kernel_with_a_rather_long_name_of_its_own",
        candidate="c",
        verdict=Verdict(kind=kind, speedup=speedup, reason="why", evidence="estimated"),
        speedup_to_original=speedup,
        combined=combined,
    )


@pytest.mark.parametrize("kind", list(VerdictKind))
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_verdict_fits_into_one_line(kind: VerdictKind, width: int) -> None:
    line = line_of(judged(kind), width)
    assert line is not None
    assert len(line.text) <= width
    assert "~" in line.text


def test_a_combination_is_told_apart_and_a_refusal_says_why() -> None:
    both = line_of(judged(VerdictKind.ACCEPTED, combined=True), 100)
    assert both is not None
    assert "both: block_shape" in both.text
    refused = line_of(judged(VerdictKind.REFUSED, speedup=None), 100)
    assert refused is not None
    assert refused.text.endswith("why")


def test_the_spinner_never_speaks_of_round_zero() -> None:
    assert "round 0" not in waiting_for(Note(text="x"))
    started = RoundStarted(round=2, base="b", others=("c",), frontier=("b", "c"))
    line = line_of(started)
    assert line is not None
    assert line.text == "round 2, from 2 candidates"
