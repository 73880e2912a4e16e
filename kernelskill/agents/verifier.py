"""Verifier: the last word on a candidate before the judge. It trusts only the evaluator's record."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.agents.kept_bits import changed_bits, is_tested
from kernelskill.schema.evaluation import Evaluation, Status
from kernelskill.schema.proposal import Exactness, Proposal
from kernelskill.schema.task import Allowance, Task

_NEEDS = {
    Exactness.REORDERS: Allowance.REORDER,
    Exactness.FAST_MATH: Allowance.FAST_MATH,
    Exactness.LOWER_PRECISION: Allowance.LOWER_PRECISION,
}

ERROR_GROWTH_NOTED = 10.0
ERROR_GROWTH_REFUSED = 100.0
"""How many times the original's own error a candidate's may be; above it precision was given up."""

LEAST_ERROR = 1e-6
"""Absolute error that any single-precision result may show, whatever the original's was."""


def permitted(exactness: Exactness, task: Task, *, keep_exact: bool) -> str:
    """Return why a rewrite of this exactness may not be tried, or an empty text.

    Args:
        exactness: Of the whole rewrite.
        task: Holds what the user allows.
        keep_exact: Whether results must keep their bits.
    """
    if keep_exact and exactness is not Exactness.EXACT:
        return f"it may change bits of a result ({exactness.value}), and --keep-exact is set"
    needed = _NEEDS.get(exactness)
    if needed is not None and needed not in task.allow:
        return f"it needs ALLOW = {{{needed.value!r}}} in the test"
    return ""


def objection(
    proposal: Proposal, evaluation: Evaluation, original: Evaluation, task: Task, *, keep_exact: bool
) -> str:
    """Return why a candidate is refused whatever its time, or an empty text.

    Args:
        proposal: What was changed.
        evaluation: The evaluator's record of the result.
        original: The evaluator's record of the original, for its own error.
        task: Holds what the user allows.
        keep_exact: Whether results must keep their bits.
    """
    if evaluation.status is not Status.PASSED:
        return (
            f"{evaluation.status.value}: {evaluation.detail}"
            if evaluation.detail
            else evaluation.status.value
        )
    reason = permitted(proposal.exactness, task, keep_exact=keep_exact)
    if not reason and keep_exact and is_tested(proposal):
        reason = changed_bits(evaluation, original, task)
    if reason:
        return reason
    if Allowance.LOWER_PRECISION in task.allow:
        return ""
    growth = error_growth(evaluation, original)
    if growth > ERROR_GROWTH_REFUSED:
        return f"its error against the reference is {growth:.0f} times the original's own; ALLOW lower_precision permits it"
    return ""


def error_growth(evaluation: Evaluation, original: Evaluation) -> float:
    """Return how many times the original's largest error the candidate's is; 1 where neither errs."""
    got, own = _largest_error(evaluation), _largest_error(original)
    if got <= own or got == 0.0:
        return 1.0
    # An original without error would make any rounding infinite: compare with single precision then.
    return got / max(own, LEAST_ERROR)


def _largest_error(evaluation: Evaluation) -> float:
    # Absolute, not relative: near a zero of the reference any rounding is a large relative error.
    errors: Sequence[float] = [
        check.max_absolute_error for check in evaluation.checks if check.max_absolute_error is not None
    ]
    return max(errors, default=0.0)
