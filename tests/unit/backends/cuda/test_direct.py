import pytest

from kernelskill.backends.cuda.client import Failed
from kernelskill.backends.cuda.direct import arbitrate
from kernelskill.schema.evaluation import Status


def test_events_count_where_the_wall_clock_agrees() -> None:
    timing = arbitrate({"events_ms": [1.0, 1.1], "walls_ms": [1.05, 1.15]}, 2, call_ms=100)
    assert timing.samples_ms == (1.0, 1.1)
    assert timing.notes == ()


def test_work_that_escapes_the_events_is_timed_by_the_wall_clock() -> None:
    timing = arbitrate({"events_ms": [0.01, 0.01], "walls_ms": [5.0, 5.0]}, 2, call_ms=100)
    assert timing.samples_ms == (5.0, 5.0)
    assert "host's clock" in timing.notes[0]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"events_ms": [1.0], "walls_ms": [1.0]},
        {"events_ms": [1.0, -1.0], "walls_ms": [1.0, 1.0]},
        {"events_ms": ["x", 1.0], "walls_ms": [1.0, 1.0]},
        {"events_ms": [1.0, 1.0], "walls_ms": [90.0, 90.0]},
    ],
)
def test_samples_that_cannot_be_are_suspicious(answer: dict[str, object]) -> None:
    with pytest.raises(Failed) as raised:
        arbitrate(answer, 2, call_ms=100)
    assert raised.value.outcome.status is Status.SUSPICIOUS
