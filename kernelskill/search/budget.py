"""Budget: when a run stops. Nothing here measures; the session counts and asks."""

from __future__ import annotations

from kernelskill.config import RunConfig
from kernelskill.runs import RunState
from kernelskill.schema.run import Budget, Spend, StopReason


def budget_of(config: RunConfig) -> Budget:
    """Return the limits that the settings ask for."""
    return Budget(
        rounds=config.rounds,
        patience=config.patience,
        seconds=config.wall_s,
        device_seconds=config.budget_s,
        evaluations=config.evaluations,
        near_roof=config.near_roof,
    )


def exhausted(budget: Budget, spend: Spend) -> StopReason | None:
    """Return the limit of time or evaluations that is used up, if any."""
    if budget.seconds is not None and spend.seconds >= budget.seconds:
        return "seconds"
    if budget.device_seconds is not None and spend.device_seconds >= budget.device_seconds:
        return "device_seconds"
    if budget.evaluations is not None and spend.evaluations >= budget.evaluations:
        return "evaluations"
    return None


def stop_reason(
    budget: Budget, spend: Spend, state: RunState, *, roof_fraction: float | None, offered: int | None
) -> StopReason | None:
    """Return why no further round should start, or None.

    Args:
        budget: The limits.
        spend: What was used.
        state: The run so far.
        roof_fraction: Of the best candidate, where the roof is known and measured.
        offered: Proposals of the last round; None before the first.
    """
    limit = exhausted(budget, spend)
    if limit is not None:
        return limit
    if budget.near_roof is not None and roof_fraction is not None and roof_fraction >= budget.near_roof:
        return "near_roof"
    if offered == 0:
        return "nothing_to_do"
    if state.rounds >= budget.rounds:
        return "rounds"
    if state.rounds_without_gain >= budget.patience:
        return "patience"
    return None
