"""How records of a session look: rows and lines, numbers before words. No record is changed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernelskill.chat.reply import Block, Rows, Say, Tone, rows
from kernelskill.report import figures

if TYPE_CHECKING:
    from kernelskill.session import records

MARKS: dict[str, str] = {
    "accepted": "+",
    "tie": "=",
    "slower": "-",
    "regressed_case": "-",
    "passed_over": ".",
    "refused": "x",
}
_LABEL = 60
"""Most characters of a candidate's label inside a sentence; the tree shows it whole."""
_TONES: dict[str, Tone] = {"+": "good", "x": "bad", "=": "dim", "-": "dim", ".": "dim"}


def speedup(value: float | None, *, estimated: bool) -> str:
    """Return a speedup; an estimate is marked with a tilde."""
    if value is None:
        return "-"
    return f"~{value:.3g}x" if estimated else figures.speedup(value, "measured")


def time(value: float | None, *, estimated: bool) -> str:
    """Return a time; an estimate is marked with a tilde."""
    if value is None:
        return "-"
    return f"{'~' if estimated else ''}{figures.milliseconds(value)}"


def verdict(kind: str, reason: str) -> str:
    """Return a verdict with its reason, which may begin with it."""
    if not reason or reason.startswith(kind):
        return reason or kind
    return f"{kind.replace('_', ' ')}: {reason}"


def case_rows(cases: Iterable[records.CaseTime]) -> Rows:
    """Return a table of timed cases."""
    return rows(
        ("case", "original", "now", "gain", "of roof"),
        [
            (
                case.label,
                time(case.original_ms, estimated=case.evidence == "estimated"),
                time(case.ms, estimated=case.evidence == "estimated"),
                speedup(case.speedup, estimated=case.evidence == "estimated"),
                figures.percent(case.roof_fraction),
            )
            for case in cases
        ],
    )


def node(found: records.TreeNode) -> str:
    """Return a candidate in a few words: number, speed-up, what it is."""
    gain = "" if found.speedup is None else f" {speedup(found.speedup, estimated=found.estimated)}"
    label = found.label if len(found.label) <= _LABEL else f"{found.label[: _LABEL - 3]}..."
    return f"#{found.number}{gain} {label}".rstrip()


def tree_rows(nodes: Sequence[records.TreeNode]) -> Rows:
    """Return the tree of candidates; the head is marked with a star."""
    lines, tones = [], list[Tone]()
    for found in nodes:
        mark = MARKS.get(found.verdict, " ") if found.number else " "
        place = "*" if found.is_head else ("|" if found.on_line else " ")
        lines.append(
            (
                f"{place} {'  ' * min(found.depth, 8)}#{found.number}",
                mark,
                speedup(found.speedup, estimated=found.estimated),
                f"r{found.round}" if found.round else "",
                _label(found),
            )
        )
        tones.append("head" if found.is_head else _TONES.get(mark, "plain"))
    return rows(("candidate", "", "in all", "in", "what it is"), lines, tones, plain=True)


def _label(found: records.TreeNode) -> str:
    who = {"user": " (yours)", "model": " (model)", "combined": " (both)"}.get(found.origin, "")
    best = " <- fastest" if found.is_best and not found.is_head else ""
    return f"{found.label}{who}{best}"


def step(found: records.StepResult) -> list[Block]:
    """Return what rounds brought."""
    count = len(found.accepted)
    kept = f"{count} change{'' if count == 1 else 's'} kept" if count else "nothing kept"
    return [
        Say(f"head {node(found.head)}", "head"),
        Say(f"{kept}; {found.detail}", "bad" if found.stopped == "refused" else "plain"),
    ]


def steered(found: records.Steered) -> list[Block]:
    """Return what was understood of a wish, and what was not."""
    lines: list[Block] = [Say(f"{rule.number}. {rule.shown}", "good") for rule in found.rules]
    lines += [Say(f"no longer: {shown}", "dim") for shown in found.lifted]
    lines += [Say(note, "dim") for note in found.notes]
    lines += [Say("kept as a note for the model")] if found.noted else []
    for unknown in found.unknown:
        near = f"; did you mean {' or '.join(unknown.near)}?" if unknown.near else ""
        lines.append(
            Say(f"not understood: {unknown.text!r}{near}", "dim" if found.rules or found.noted else "bad")
        )
    return lines


def explanation(found: records.Explanation) -> list[Block]:
    """Return an explanation, saying who speaks where it is a model."""
    source: list[Block] = [Say("the model says:", "dim")] if found.source == "model" else []
    return [*source, *(Say(line) for line in found.lines)]
