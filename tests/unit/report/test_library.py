"""What a report says of the test's own baseline."""

from kernelskill.report.markdown import compared
from kernelskill.report.view import CaseRow
from kernelskill.schema.evaluation import Timing
from kernelskill.schema.task import Case


def timing(ms: float, call: str = "") -> Timing:
    return Timing(
        case=0, samples_ms=(ms,), median_ms=ms, low_ms=ms, high_ms=ms, evidence="measured", call=call
    )


def row(library: Timing | None) -> CaseRow:
    case = Case(index=0, arguments={"n": 4096}, timed=True)
    return CaseRow(case, timing(8.0), timing(4.0), 2.0, None, None, library)


def test_a_library_that_was_timed_is_named_with_its_time() -> None:
    (said,) = compared([row(timing(3.0, "cuBLAS SGEMM.")), row(None)])
    assert said == (
        "The test's `baseline()` takes 3 ms on n=4096 (cuBLAS SGEMM); the result is 0.75 times as fast."
    )
