"""Rank correlation, regret and ranking error of estimates against measured times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import exp, log, sqrt
from statistics import mean, median

from records import ORIGINAL, TimedVariant

from kernelskill.errors import UsageError
from kernelskill.schema.base import Record
from kernelskill.schema.device import Conditions

BAR_RANK = 0.7
BAR_REGRET = 0.15
LEAST_KERNELS = 10
LEAST_VARIANTS = 60
LEAST = 3
"""Variants of a kernel, its original among them, of which an order says something."""
SAME = 0.001
"""Estimates closer than this are one pick; the slowest of them counts."""
NOISE = 0.01
"""Measured times closer than this are a tie, as the judge has it."""
RIGHT = 0.95
"""Share of ordered pairs that has to be right above the margin."""


class PairOfTimes(Record):
    """One variant's measured and estimated time."""

    label: str
    measured_ms: float
    estimated_ms: float


class KernelComparison(Record):
    """How well the variants of one kernel are ordered."""

    task: str
    variants: int
    rank_correlation: float
    """Spearman's, ties sharing their mean rank."""
    regret: float
    """Measured time of the pick over that of the best, less one."""
    picked: str
    best: str
    error: float
    """Median factor between estimated and measured time, less one."""
    pairs: tuple[PairOfTimes, ...]


class Comparison(Record):
    """All kernels, and what follows for the margin of estimates."""

    summary: str
    met: bool
    median_rank_correlation: float
    median_regret: float
    kernels_compared: int
    variants_compared: int
    margin: float
    """Estimated gain above which the order of two variants is right in 95 of 100 pairs."""
    deviation: float
    """Root mean square of ln(estimated speedup) less ln(measured speedup), both over the kernel's own original."""
    left_out: tuple[str, ...]
    measured: Conditions
    estimated: Conditions
    kernels: tuple[KernelComparison, ...]


def compare(rows: Sequence[TimedVariant]) -> Comparison:
    """Return the comparison of rows measured and estimated.

    Raises:
        UsageError: No kernel has enough variants in both.
    """
    measured = {(r.task, r.candidate): r for r in rows if r.conditions.evidence == "measured"}
    estimated = {(r.task, r.candidate): r for r in rows if r.conditions.evidence == "estimated"}
    pairs: dict[str, list[PairOfTimes]] = {}
    left_out = []
    for key, row in measured.items():
        other = estimated.get(key)
        if row.median_ms is None or other is None or other.median_ms is None:
            reason = row.detail or (other.detail if other is not None else "no estimate")
            left_out.append(f"{row.task}: {row.label}: {reason}"[:200])
            continue
        pairs.setdefault(row.task, []).append(
            PairOfTimes(label=row.label, measured_ms=row.median_ms, estimated_ms=other.median_ms)
        )
    for task, own in pairs.items():
        own.extend(original_pair(task, own, measured.values(), estimated.values()))
    left_out += [
        f"{task}: {len(own)} variants order nothing" for task, own in pairs.items() if len(own) < LEAST
    ]
    kernels = tuple(kernel_comparison(task, own) for task, own in sorted(pairs.items()) if len(own) >= LEAST)
    if not kernels:
        raise UsageError(
            f"no kernel has {LEAST} variants with both times",
            remedy="give a measured and an estimated record",
        )
    return summed_up(kernels, left_out, list(measured.values()), list(estimated.values()))


def original_pair(
    task: str,
    known: Sequence[PairOfTimes],
    measured: Iterable[TimedVariant],
    estimated: Iterable[TimedVariant],
) -> Iterator[PairOfTimes]:
    """Yield the times of the task's own kernel: it stands beside each variant, the median counts."""
    sides = [
        [r.original_ms for r in rows if r.task == task and r.original_ms] for rows in (measured, estimated)
    ]
    if all(sides) and not any(pair.label == ORIGINAL for pair in known):
        yield PairOfTimes(label=ORIGINAL, measured_ms=median(sides[0]), estimated_ms=median(sides[1]))


def kernel_comparison(task: str, pairs: Sequence[PairOfTimes]) -> KernelComparison:
    """Return how one kernel's variants are ordered."""
    best = min(pairs, key=lambda pair: pair.measured_ms)
    least = min(pair.estimated_ms for pair in pairs)
    alike = [pair for pair in pairs if pair.estimated_ms <= least * (1 + SAME)]
    picked = max(alike, key=lambda pair: pair.measured_ms)
    factors = [abs(log(pair.estimated_ms / pair.measured_ms)) for pair in pairs]
    return KernelComparison(
        task=task,
        variants=len(pairs),
        rank_correlation=spearman([p.measured_ms for p in pairs], [p.estimated_ms for p in pairs]),
        regret=picked.measured_ms / best.measured_ms - 1,
        picked=picked.label,
        best=best.label,
        error=exp(median(factors)) - 1,
        pairs=tuple(pairs),
    )


def summed_up(
    kernels: tuple[KernelComparison, ...],
    left_out: Sequence[str],
    measured: Sequence[TimedVariant],
    estimated: Sequence[TimedVariant],
) -> Comparison:
    """Return the whole comparison."""
    rank = median(kernel.rank_correlation for kernel in kernels)
    regret = median(kernel.regret for kernel in kernels)
    variants = sum(kernel.variants for kernel in kernels)
    margin = margin_of(kernels)
    enough = len(kernels) >= LEAST_KERNELS and variants >= LEAST_VARIANTS
    return Comparison(
        summary=(
            f"{variants} variants of {len(kernels)} kernels: median rank correlation {rank:.2f} (bar {BAR_RANK}), "
            f"median regret {regret:.1%} (bar {BAR_REGRET:.0%}), margin {margin:.0%}, {len(left_out)} left out"
        ),
        met=enough and rank >= BAR_RANK and regret <= BAR_REGRET,
        median_rank_correlation=rank,
        median_regret=regret,
        kernels_compared=len(kernels),
        variants_compared=variants,
        margin=margin,
        deviation=deviation_of(kernels),
        left_out=tuple(left_out),
        measured=measured[0].conditions,
        estimated=estimated[0].conditions,
        kernels=kernels,
    )


def deviation_of(kernels: Sequence[KernelComparison]) -> float:
    """Return how far estimated speedups are from measured ones, in ln; 0 where no original was timed."""
    errors = []
    for kernel in kernels:
        off = {pair.label: log(pair.estimated_ms / pair.measured_ms) for pair in kernel.pairs}
        base = off.pop(ORIGINAL, None)
        errors += [error - base for error in off.values() if base is not None]
    return sqrt(mean(error**2 for error in errors)) if errors else 0.0


def margin_of(kernels: Sequence[KernelComparison]) -> float:
    """Return the least estimated gain above which the measured order agrees in 95 of 100 pairs.

    Pairs that measure as a tie count as wrong: nothing was gained.
    """
    gains = []
    for kernel in kernels:
        for one, other in combinations(kernel.pairs, 2):
            slow, fast = sorted((one, other), key=lambda pair: -pair.estimated_ms)
            right = slow.measured_ms > fast.measured_ms * (1 + NOISE)
            gains.append((slow.estimated_ms / fast.estimated_ms - 1, right))
    gains.sort(reverse=True)
    margin, rights = gains[0][0] if gains else 0.0, 0
    for count, (gain, right) in enumerate(gains, 1):
        rights += right
        if rights / count >= RIGHT:
            margin = gain
    return margin


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; 0 where one side orders nothing."""
    one, other = ranks(first), ranks(second)
    middle = mean(one)
    top = sum((a - middle) * (b - middle) for a, b in zip(one, other, strict=True))
    below = sqrt(sum((a - middle) ** 2 for a in one) * sum((b - middle) ** 2 for b in other))
    return top / below if below else 0.0


def ranks(values: Sequence[float]) -> list[float]:
    """Return ranks from 1; equal values share their mean rank."""
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]
