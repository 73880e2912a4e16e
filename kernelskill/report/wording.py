"""What each event is called in front of a person: one line, numbers first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelskill.report import figures
from kernelskill.schema.evaluation import VerdictKind
from kernelskill.schema.event import (
    Answered,
    Asked,
    BaselineMeasured,
    Confirmed,
    Diagnosed,
    Evaluated,
    Event,
    Failed,
    Interrupted,
    Judged,
    ModelFailed,
    Note,
    Ranked,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunResumed,
    RunStarted,
    Searched,
)

Tone = Literal["good", "bad", "dim", "head", "plain"]


@dataclass(frozen=True)
class Line:
    """A line for people."""

    text: str
    tone: Tone = "plain"


_VERDICTS: dict[VerdictKind, tuple[str, Tone]] = {
    VerdictKind.ACCEPTED: ("+", "good"),
    VerdictKind.TIE: ("=", "dim"),
    VerdictKind.SLOWER: ("-", "dim"),
    VerdictKind.REGRESSED_CASE: ("-", "dim"),
    VerdictKind.PASSED_OVER: (".", "dim"),
    VerdictKind.REFUSED: ("x", "bad"),
}
_WIDTH = 96
_LABEL_WIDTHS = (12, 52)
"""Of a candidate's label: at least and at most, as the terminal has room."""
_GAIN_WIDTH = 44


def line_of(event: Event, width: int = _WIDTH) -> Line | None:
    """Return the line for an event, or None where it says nothing to a person.

    Args:
        event: What happened.
        width: Columns of the terminal.
    """
    match event:
        case RunStarted() | RunResumed():
            return _start(event)
        case BaselineMeasured():
            return _baseline(event)
        case RoundStarted() | RoundFinished() | Ranked():
            return _round(event)
        case Diagnosed():
            return _diagnosis(event)
        case Searched():
            return _searched(event, width)
        case Answered() | ModelFailed():
            return _model(event, width)
        case Judged():
            return _judged(event, width)
        case _:
            return _end(event)


def _end(event: Event) -> Line | None:
    match event:
        case Confirmed():
            return Line(f"confirmed with fresh seeds: {event.verdict.reason}", "head")
        case RunFinished():
            return _finished(event)
        case Interrupted():
            return Line(f"interrupted: {event.where}; everything finished is kept", "bad")
        case Failed():
            return Line(f"failed: {event.error}", "bad")
        case Note():
            return Line(f"note: {event.text}", "dim")
        case _:
            return None


def waiting_for(event: Event) -> str:
    """Return what goes on after an event, for the spinner."""
    match event:
        case RunStarted() | RunResumed():
            return "building, checking and timing the original"
        case BaselineMeasured() | RoundStarted():
            return "profiling"
        case Diagnosed() | Asked() | Answered():
            return "asking the specialists"
        case Ranked():
            return f"evaluating {len(event.chosen)} candidates"
        case Evaluated() if event.depth == "cheap":
            return f"round {event.round}: searching parameters"
        case Confirmed():
            return "writing the results"
        case RoundFinished():
            return "choosing what to do next"
        case RunFinished():
            return "writing the results"
        case _ if event.round == 0:
            return "building, checking and timing the original"
        case _:
            return f"round {event.round}: building, checking and timing"


def _start(event: RunStarted | RunResumed) -> Line:
    conditions = event.conditions
    where = (
        conditions.gpu
        if conditions.evidence == "measured"
        else f"{conditions.gpu}, emulated: times are estimates"
    )
    if isinstance(event, RunResumed):
        return Line(f"resumed on {where}", "head")
    cases = len(event.task.cases)
    timed = len(event.task.timed_cases)
    return Line(
        f"{event.task.name} on {where}: {cases} case{_s(cases)}, {timed} timed; {event.skills} skills", "head"
    )


def _baseline(event: BaselineMeasured) -> Line:
    roofs = {roof.case: roof for roof in event.rooflines}
    parts = []
    for timing in event.timings:
        roof = roofs.get(timing.case)
        share = (
            f" ({figures.percent(roof.fraction)} of the roof)" if roof and roof.fraction is not None else ""
        )
        parts.append(figures.timing(timing) + share)
    return Line("original is right: " + ", ".join(parts))


def _round(event: RoundStarted | RoundFinished | Ranked) -> Line | None:
    if isinstance(event, RoundStarted):
        bases = f", from {1 + len(event.others)} candidates" if event.others else ""
        return Line(f"round {event.round}{bases}", "head")
    if isinstance(event, Ranked):
        first = f", {event.forecast} estimated first" if event.forecast else ""
        chosen = f"{len(event.chosen)} chosen by {event.policy}"
        return Line(f"  {event.offered} proposals{first}, {chosen}", "dim")
    return Line(f"  best so far {figures.speedup(event.result.best_speedup, event.result.evidence)}")


def _diagnosis(event: Diagnosed) -> Line:
    if not event.bottlenecks:
        return Line(f"  no limit named (from {event.source})", "dim")
    first = event.bottlenecks[0]
    return Line(f"  limit: {first.kind.value.replace('_', ' ')} in {first.kernel}: {first.summary}")


def _searched(event: Searched, width: int) -> Line:
    room = max(_LABEL_WIDTHS[0], min(_LABEL_WIDTHS[1], width - _GAIN_WIDTH))
    label = event.labels[0] if event.labels else event.label
    label = label if len(label) <= room else label[: room - 3] + "..."
    counts = [f"{event.timed} of {event.points} points timed"]
    counts += [f"{event.pruned} ruled out"] if event.pruned else []
    counts += [f"{event.failed} failed"] if event.failed else []
    return Line(f"  . {label:<{room}} {', '.join(counts)}", "dim")


_ANSWERS = {
    "proposal": "a change",
    "duplicate": "nothing new",
    "nothing": "nothing",
    "malformed": "not in the form asked for",
    "unusable": "a change that cannot be applied",
    "not_permitted": "a change that is not permitted",
    "plan": "directions",
    "answer": "a question",
}


def _model(event: Answered | ModelFailed, width: int) -> Line:
    if isinstance(event, ModelFailed):
        remedy = f"; {event.remedy}" if event.remedy else ""
        return Line(f"  ! {event.role}: {event.message}{remedy}", "bad")
    detail = f": {event.detail}" if event.detail else ""
    text = f"  ? {event.role} answers {_ANSWERS[event.outcome]}{detail}"
    return Line(text if len(text) <= width else text[: width - 3] + "...", "dim")


def _judged(event: Judged, width: int) -> Line:
    mark, tone = _VERDICTS[event.verdict.kind]
    room = max(_LABEL_WIDTHS[0], min(_LABEL_WIDTHS[1], width - _GAIN_WIDTH))
    label = f"both: {event.label}" if event.combined else event.label
    label = label if len(label) <= room else label[: room - 3] + "..."
    if event.verdict.speedup is None:
        return Line(f"  {mark} {label:<{room}} {event.verdict.reason[:100]}", tone)
    gain = f"{event.verdict.speedup:6.2f}x over its base"
    total = f", {event.speedup_to_original:.2f}x in all" if event.speedup_to_original else ""
    estimated = "~" if event.verdict.evidence == "estimated" else " "
    return Line(f"  {mark} {label:<{room}} {estimated}{gain}{total}", tone)


def _finished(event: RunFinished) -> Line:
    gain = figures.speedup(event.speedup, event.evidence)
    count = event.spend.evaluations
    reason = figures.stop_reason(event.reason)
    return Line(f"finished, since {reason}: {gain} after {count} evaluation{_s(count)}", "head")


def _s(count: int) -> str:
    return "" if count == 1 else "s"
