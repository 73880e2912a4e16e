from typing import get_args

import pytest

from kernelskill.report import figures
from kernelskill.report.tables import table
from kernelskill.schema.evaluation import Timing
from kernelskill.schema.run import StopReason


@pytest.mark.parametrize(
    ("value", "text"), [(0.00321, "3.21 us"), (0.9994, "999 us"), (1.5, "1.5 ms"), (1234.0, "1.23 s")]
)
def test_a_time_is_written_in_the_unit_that_suits_it(value: float, text: str) -> None:
    assert figures.milliseconds(value) == text


def test_an_estimate_never_looks_measured() -> None:
    timing = Timing(
        case=0, samples_ms=(1.0, 1.1, 1.2), median_ms=1.1, low_ms=1.0, high_ms=1.2, evidence="measured"
    )
    assert figures.timing(timing) == "1.1 ms +-9.1%"
    assert figures.timing(timing.model_copy(update={"evidence": "estimated"})) == "~1.1 ms"
    assert figures.speedup(2.345, "estimated") == "estimated 2.35x"
    assert figures.speedup(118.31, "measured") == "118x"


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.0, "0%"), (0.004, "<1%"), (0.25, "25%")])
def test_a_share_that_is_small_is_not_nothing(value: float | None, text: str) -> None:
    assert figures.percent(value) == text


def test_rates_have_prefixes() -> None:
    assert figures.per_second(3.37e12, "B") == "3.37 TB/s"
    assert figures.per_second(12.0, "FLOP") == "12 FLOP/s"


def test_every_reason_to_stop_has_words() -> None:
    for reason in get_args(StopReason):
        assert " " in figures.stop_reason(reason)
        assert "_" not in figures.stop_reason(reason)


def test_a_cell_cannot_break_itstable() -> None:
    text = table(("a", "b"), [("x|y", "two\nlines")])
    assert text.splitlines()[-1] == "| x\\|y | two lines |"
