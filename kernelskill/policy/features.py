"""What the policy sees of a proposal in its context: a fixed row of numbers.

The row has a few dense entries and hashed indicators of skill, parameters, and skill crossed with
what is known of the kernel, so that a new skill needs no new schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from kernelskill.schema.profile import Bottleneck, BottleneckKind, Roofline
from kernelskill.schema.proposal import Exactness, Proposal

SCHEMA_VERSION = 1
"""Raise when a row of the same proposal would come out differently."""

BUCKETS = 256
_DENSE = ("prior", "relevance", "exact", "steps")
FEATURE_NAMES: tuple[str, ...] = (*_DENSE, *(f"hash.{bucket:03d}" for bucket in range(BUCKETS)))
PRIOR_INDEX = 0

_SKILL_WEIGHT = 0.7
_PARAMETER_WEIGHT = 0.4

_UNTRIGGERED = 0.4
"""Relevance of a skill with no trigger, or one whose trigger was not seen: tried, but late."""


def context_features(
    bottlenecks: Sequence[Bottleneck], source: Mapping[str, float], roofline: Roofline | None
) -> dict[str, float]:
    """Return the named features of a decision's context.

    Args:
        bottlenecks: Of the base, the most likely first.
        source: Features of the hottest kernel's source.
        roofline: Of the base's heaviest timed case, where known.
    """
    features = {f"bottleneck.{b.kind.value}": round(b.confidence, 4) for b in bottlenecks}
    features.update({f"source.{name}": float(value) for name, value in source.items()})
    if roofline is not None and roofline.fraction is not None:
        features["roof.fraction"] = round(roofline.fraction, 4)
    return features


def relevance(proposal: Proposal, bottlenecks: Sequence[Bottleneck]) -> float:
    """Return how well a proposal's triggers fit the bottlenecks, 0 to 1."""
    return _fit(proposal.triggers, bottlenecks)


def feature_row(
    proposal: Proposal, bottlenecks: Sequence[Bottleneck], context: Mapping[str, float]
) -> tuple[float, ...]:
    """Return the proposal's row; its entries are named by `FEATURE_NAMES`."""
    fit = relevance(proposal, bottlenecks)
    dense = (
        _expected(proposal, fit, bottlenecks),
        fit,
        float(proposal.exactness is Exactness.EXACT),
        float(len(proposal.steps)),
    )
    hashed = [0.0] * BUCKETS
    active = {name: min(1.0, value) for name, value in sorted(context.items()) if value > 0}
    # However much is known of a kernel, all crosses together weigh as much as the skill itself:
    # otherwise the doubt about many small weights would drown the priors.
    norm = sum(value**2 for value in active.values()) ** 0.5 or 1.0
    for step in proposal.steps:
        _add(hashed, f"skill={step.skill}", _SKILL_WEIGHT)
        for name, value in step.parameters:
            _add(hashed, f"skill={step.skill}|{name}={value}", _PARAMETER_WEIGHT)
        for name, strength in active.items():
            _add(hashed, f"skill={step.skill}&{name}", _SKILL_WEIGHT * strength / norm)
    return (*dense, *hashed)


def _expected(proposal: Proposal, fit: float, bottlenecks: Sequence[Bottleneck]) -> float:
    """Return the prior of ln(speedup), weighted by fit; a chain's is the sum over its skills, each by its own."""
    if not proposal.parts:
        return proposal.predicted.log_speedup * fit
    whole = sum(part.log_speedup for part in proposal.parts)
    shift = proposal.predicted.log_speedup - whole
    return shift * fit + sum(part.log_speedup * _fit(part.triggers, bottlenecks) for part in proposal.parts)


def _fit(triggers: Sequence[BottleneckKind], bottlenecks: Sequence[Bottleneck]) -> float:
    if not triggers:
        return _UNTRIGGERED
    return max([_UNTRIGGERED / 2, *(b.confidence for b in bottlenecks if b.kind in triggers)])


def _add(buckets: list[float], name: str, value: float) -> None:
    digest = sha256(name.encode()).digest()
    sign = 1.0 if digest[4] & 1 else -1.0
    buckets[int.from_bytes(digest[:4], "little") % BUCKETS] += sign * value
