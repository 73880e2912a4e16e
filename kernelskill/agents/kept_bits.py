"""What can be told of a change that nobody proves to be exact: whether its outputs had the original's bits.

Where no bit may change, the evaluator keeps a digest of the outputs of every call. A change of a model counts as
exact where each of them equals the original's on the same values. That is a test over all cases and seeds, no proof.
"""

from __future__ import annotations

from kernelskill.schema.evaluation import Evaluation
from kernelskill.schema.proposal import Proposal
from kernelskill.schema.task import Task

SAME_BITS = "every output has the original's bits: compared in every case and with every seed that was run, not proven"
"""The assumption under which a change that was written freely may be taken for exact."""

_PLAIN = "plain"
_AS_PLAIN = (_PLAIN, "moved", "repeat")
"""Layouts of one call at aligned addresses: equal values give equal bits, whatever lay in memory before."""

_Call = tuple[int, int, str]
"""Case, trial and layout."""


def is_tested(proposal: Proposal) -> bool:
    """Return whether a change is exact by a test alone, or holds one that is."""
    return SAME_BITS in proposal.assumptions


def unrepeatable(original: Evaluation, task: Task) -> str:
    """Return why nothing can be compared with the original's bits, or an empty text."""
    calls = _bits_of(original)
    if not calls or any("" in bits for bits in calls.values()):
        return "the record of the original holds no bits to compare with"
    for (case, _, layout), bits in calls.items():
        if layout == _PLAIN and len(bits) > 1:
            return (
                f"in case {_label(task, case)} the original itself gives other bits when it is called again"
            )
    return ""


def changed_bits(evaluation: Evaluation, original: Evaluation, task: Task) -> str:
    """Return where a candidate's outputs had other bits than the original's, or an empty text."""
    reason = unrepeatable(original, task)
    if reason:
        return f"{reason}, so that no change can be told to keep them"
    theirs, mine = _bits_of(original), _bits_of(evaluation)
    if not mine:
        return "no case was run of which the bits could be compared with the original's"
    for call, bits in mine.items():
        case, trial, layout = call
        where = f"case {_label(task, case)}, seed {trial + 1}"
        where += "" if layout == _PLAIN else f", {layout} arrays"
        if call not in theirs:
            return f"{where}: the original was not run there, so that its bits cannot be compared"
        if layout == _PLAIN and len(bits) > 1:
            return f"{where}: it gives other bits when it is called again"
        if bits != theirs[call]:
            return f"{where}: an output differs from the original's in some bits"
    return ""


def _bits_of(evaluation: Evaluation) -> dict[_Call, tuple[str, ...]]:
    """Return the digests of each call: of plain ones all different ones, of others one an arrangement."""
    found: dict[_Call, tuple[str, ...]] = {}
    for check in evaluation.checks:
        layout = _PLAIN if check.layout in _AS_PLAIN else check.layout
        call = (check.case, check.trial, layout)
        known = found.get(call, ())
        if layout != _PLAIN or check.bits not in known:
            found[call] = (*known, check.bits)
    return found


def _label(task: Task, case: int) -> str:
    return next((each.label for each in task.cases if each.index == case), str(case))
