"""judge: the one rule by which a candidate replaces an incumbent."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, sqrt

from kernelskill.schema.base import Explained
from kernelskill.schema.evaluation import Evaluation, PairedTiming, Verdict, VerdictKind
from kernelskill.schema.task import Task

LEAST_GAIN = 0.01
"""Gains below one percent are noise by definition: in simulated runs of 30 pairs with 1 % spread and
drift the paired rule accepted no neutral kernel at this margin, and one in thirty at no margin."""
CASE_LOSS = 0.02
"""A timed case may lose so much; more is a regression whatever the others gain."""
ESTIMATE_MARGIN = 0.15
"""Gain that an estimate must show. On the kernels compared with a GPU so far the ranking error was far smaller
(`benchmarks/results/emulated/validation.json`); they are too few, and some of them the model was fitted to."""


class Margins(Explained):
    """What an interval must clear."""

    least_gain: float = LEAST_GAIN
    case_loss: float = CASE_LOSS
    estimate: float = ESTIMATE_MARGIN


def judge(
    task: Task,
    evaluation: Evaluation,
    *,
    incumbent_label: str = "the incumbent",
    noise: Mapping[int, float] | None = None,
    margins: Margins | None = None,
) -> Verdict:
    """Decide about a candidate that was timed against an incumbent.

    Args:
        task: Names the timed cases and their weights.
        evaluation: Of stage `time`.
        incumbent_label: How the reason names the other side.
        noise: Case index to the half-width that the original showed against itself.
        margins: What an interval must clear; the defaults hold their reasons.
    """
    margins = margins or Margins()
    if not evaluation.passed:
        detail = f": {evaluation.detail}" if evaluation.detail else ""
        return Verdict(kind=VerdictKind.REFUSED, reason=f"{evaluation.status}{detail}")
    missing = [case.label for case in task.timed_cases if _paired(evaluation, case.index) is None]
    if missing:
        return Verdict(kind=VerdictKind.REFUSED, reason=f"not timed against {incumbent_label}: {missing[0]}")
    evidence = evaluation.timings[0].evidence if evaluation.timings else "none"
    gain = margins.estimate if evidence == "estimated" else margins.least_gain
    pairs = {case.index: _known(evaluation, case.index) for case in task.timed_cases}
    eps = {index: max(gain, 2 * (noise or {}).get(index, 0.0)) for index in pairs}
    median, low, high = weighted_geomean([(pairs[case.index], case.weight) for case in task.timed_cases])

    def verdict(kind: VerdictKind, reason: str) -> Verdict:
        return Verdict(kind=kind, reason=reason, speedup=median, low=low, high=high, evidence=evidence)

    worst = min(task.timed_cases, key=lambda case: pairs[case.index].high)
    loss = max(margins.case_loss, eps[worst.index]) if evidence == "estimated" else margins.case_loss
    whole_eps = _whole_margin(task, eps)
    change = f"{median:.3f} times as fast as {incumbent_label}{_interval(low, high)}"
    if high < 1 - whole_eps:
        return verdict(VerdictKind.SLOWER, f"slower: {change}")
    if pairs[worst.index].high < 1 - loss:
        case_change = f"case {worst.label} runs at {pairs[worst.index].median:.3f} of the speed"
        return verdict(VerdictKind.REGRESSED_CASE, f"{case_change} of {incumbent_label}")
    if low > 1 + whole_eps:
        label = "estimated " if evidence == "estimated" else ""
        return verdict(VerdictKind.ACCEPTED, f"{label}{change}")
    return verdict(VerdictKind.TIE, f"within the margin of {whole_eps:.1%}: {change}")


def weighted_geomean(pairs: list[tuple[PairedTiming, float]]) -> tuple[float, float, float]:
    """Return median, low and high of the weighted geometric mean of independent cases.

    The half-widths of the logarithms add as squares, each side by itself, so that one case keeps
    exactly its own interval and the result does not depend on random resampling.
    """
    total = sum(weight for _, weight in pairs)
    shares = [(case, weight / total if total > 0 else 1 / len(pairs)) for case, weight in pairs]
    centre = sum(share * log(case.median) for case, share in shares)
    down = sqrt(sum((share * (log(case.median) - log(case.low))) ** 2 for case, share in shares))
    up = sqrt(sum((share * (log(case.high) - log(case.median))) ** 2 for case, share in shares))
    return exp(centre), exp(centre - down), exp(centre + up)


def _whole_margin(task: Task, eps: Mapping[int, float]) -> float:
    """Return the margin of the mean: the largest of the cases that count."""
    return max(eps[case.index] for case in task.timed_cases)


def _paired(evaluation: Evaluation, case: int) -> PairedTiming | None:
    return next((paired for paired in evaluation.paired if paired.case == case), None)


def _known(evaluation: Evaluation, case: int) -> PairedTiming:
    return next(paired for paired in evaluation.paired if paired.case == case)


def _interval(low: float, high: float) -> str:
    return "" if low == high else f" (95 % interval {low:.3f} to {high:.3f})"
