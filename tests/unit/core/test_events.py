from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.errors import ArtifactCorrupt
from kernelskill.events import EventLog, read_events
from kernelskill.runs import fold
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Verdict, VerdictKind
from kernelskill.schema.event import EVENT_ADAPTER, Judged, Note, RoundFinished, RoundStarted, RunResumed
from kernelskill.schema.run import Round, Spend


class ScriptedClock:
    def __init__(self) -> None:
        self.ticks = 0

    def timestamp(self) -> str:
        self.ticks += 1
        return f"2026-01-01T00:00:{self.ticks:02d}.000+00:00"

    def seconds(self) -> float:
        return float(self.ticks)


def log_at(path: Path) -> EventLog:
    return EventLog(path, run="r1", clock=ScriptedClock())


def finished(number: int, best: float, digest: str = "d") -> RoundFinished:
    result = Round(number=number, base="b", tried=(), accepted=(), best_speedup=best)
    return RoundFinished(round=number, result=result, frontier=(digest,), best=digest, spend=Spend())


def test_events_come_back_in_order_with_position_and_run(tmp_path: Path) -> None:
    log = log_at(tmp_path / "events.jsonl")
    log.emit(Note(text="one"))
    log.emit(Note(text="two"))
    log.close()
    events = list(read_events(tmp_path / "events.jsonl"))
    assert [(e.seq, e.run, e.text) for e in events if isinstance(e, Note)] == [
        (0, "r1", "one"),
        (1, "r1", "two"),
    ]


def test_saying_the_same_again_leaves_no_second_trace(tmp_path: Path) -> None:
    log = log_at(tmp_path / "events.jsonl")
    for _ in range(2):
        log.emit(RoundStarted(round=1, base="b", frontier=("b",)))
    log.close()
    with log_at(tmp_path / "events.jsonl") as again:
        again.emit(RoundStarted(round=1, base="b", frontier=("b",)))
        again.emit(RoundStarted(round=2, base="b", frontier=("b",)))
    assert [event.round for event in again.events] == [1, 2]


def test_a_line_cut_short_by_a_kill_is_dropped_and_the_log_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = log_at(path)
    log.emit(Note(text="whole"))
    log.close()
    with path.open("a") as stream:
        stream.write('{"kind":"note","te')
    assert len(list(read_events(path))) == 1
    log = log_at(path)
    log.emit(Note(text="after"))
    log.close()
    assert [e.text for e in read_events(path) if isinstance(e, Note)] == ["whole", "after"]


def test_damage_in_the_middle_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('garbage\n{"kind":"note","text":"x"}\n')
    with pytest.raises(ArtifactCorrupt, match=":1 is no event"):
        list(read_events(path))


@given(text=st.text(), number=st.integers(0, 99))
def test_every_event_survives_writing_and_reading(text: str, number: int) -> None:
    verdict = Verdict(kind=VerdictKind.TIE, reason=text)
    for event in (
        Note(text=text, round=number),
        Judged(proposal=text, label=text, candidate="c", verdict=verdict, round=number),
    ):
        assert EVENT_ADAPTER.validate_json(event.model_dump_json()) == event


def test_sinks_see_what_is_logged_and_nothing_else(tmp_path: Path) -> None:
    seen: list[str] = []
    sink = lambda event: seen.append(event.kind)  # noqa: E731
    with EventLog(tmp_path / "e", run="r", clock=ScriptedClock(), sinks=(sink,)) as log:
        log.emit(Note(text="a"))
        log.emit(Note(text="a"))
    assert seen == ["note"]


def test_the_fold_counts_rounds_without_gain_and_forgets_a_finished_round() -> None:
    events = [
        RoundStarted(round=1, base="b", frontier=("b",)),
        finished(1, 2.0),
        RoundStarted(round=2, base="d", frontier=("d",)),
        finished(2, 2.0),
        RoundStarted(round=3, base="d", frontier=("d",)),
    ]
    state = fold(events)
    assert (state.rounds, state.rounds_without_gain, state.best_speedup) == (2, 1, 2.0)
    assert state.open_round is not None
    assert state.open_round.round == 3


def test_resuming_reopens_a_run() -> None:
    conditions = Conditions(device="emulated", gpu="g", evidence="estimated")
    state = fold([RunResumed(conditions=conditions, attempt=2)])
    assert (state.attempts, state.finished) == (2, None)
