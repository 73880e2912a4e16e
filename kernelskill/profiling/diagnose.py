"""Name the limits of a kernel from its figures, by the rules of `rules.toml`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path

from kernelskill.errors import HarnessError
from kernelskill.profiling.expression import Expression
from kernelskill.profiling.figures import definitions, figures_of, metric_of
from kernelskill.schema.base import Record
from kernelskill.schema.profile import Bottleneck, BottleneckKind, KernelProfile, Profile, Roofline

_FILE = Path(__file__).with_name("rules.toml")
_CLASSES = ("fp64", "special", "local_memory")
"""Classes of instructions that rules ask for; code that has none of them has 0 %."""
_OTHER_ROOF = 1.25
"""So far above a roof that it is not this kernel's: another pipe does what was counted."""
_LEAST_RANK = 0.02
"""Findings below this are not worth a line."""


class RuleDefinition(Record):
    """One rule as `rules.toml` writes it."""

    kind: BottleneckKind
    when: tuple[str, ...]
    confidence: str
    gain: str
    rank: str = ""
    evidence: tuple[str, ...]
    summary: str
    falsified_by: str
    source: str


class Rule:
    """A rule ready to be asked.

    Raises:
        HarnessError: It speaks of an unknown figure or is no arithmetic.
    """

    def __init__(self, definition: RuleDefinition) -> None:
        self.definition = definition
        self.when = tuple(Expression(text) for text in definition.when)
        self.confidence = Expression(definition.confidence)
        self.gain = Expression(definition.gain)
        self.rank = Expression(definition.rank or f"({definition.confidence}) * ({definition.gain})")
        names = set(definition.evidence)
        for expression in (*self.when, self.confidence, self.gain, self.rank):
            names |= expression.names
        if unknown := names - definitions().keys():
            raise HarnessError(f"rule {definition.kind}: no figure is named {', '.join(sorted(unknown))}")

    def ask(
        self, kernel: str, figures: dict[str, float], metrics: dict[str, float]
    ) -> tuple[float, Bottleneck] | None:
        """Return the finding with its rank, or None where the rule does not fire."""
        if not all(condition.holds(figures) for condition in self.when):
            return None
        confidence, gain, rank = (
            expression.value(figures) for expression in (self.confidence, self.gain, self.rank)
        )
        if confidence is None or gain is None or rank is None:
            return None
        named = (name for name in self.definition.evidence if name in figures)
        evidence = tuple(metric_of(name, figures, metrics) for name in named)
        found = Bottleneck(
            kind=self.definition.kind,
            kernel=kernel,
            confidence=_unit(confidence),
            gain=_unit(gain),
            evidence=evidence,
            summary=_fill(self.definition.summary, figures),
            falsified_by=self.definition.falsified_by,
        )
        return _unit(rank), found


def diagnose(profile: Profile, roofline: Roofline | None) -> tuple[Bottleneck, ...]:
    """Return the limits of a profile, the one most worth removing first.

    Each kernel's findings are weighed by its share of the time, and no gain is larger than what the
    roof leaves. One kind is named once a kernel, by its strongest rule.
    """
    findings: list[tuple[float, Bottleneck]] = []
    headroom = _headroom(roofline)
    for kernel in profile.kernels:
        best: dict[BottleneckKind, tuple[float, Bottleneck]] = {}
        metrics = _metrics(profile, kernel, roofline)
        figures = figures_of(metrics, traced=profile.source == "trace")
        for rule in rules():
            answer = rule.ask(kernel.kernel, figures, metrics)
            if answer is None or answer[0] * kernel.time_share < _LEAST_RANK:
                continue
            rank, found = _weigh(answer, kernel.time_share, headroom)
            if found.kind not in best or rank > best[found.kind][0]:
                best[found.kind] = (rank, found)
        findings += best.values()
    findings.sort(key=lambda finding: (-finding[0], finding[1].kind, finding[1].kernel))
    return tuple(found for _, found in findings)


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """Return the shipped rules.

    Raises:
        HarnessError: The file is damaged.
    """
    try:
        tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))["rule"]
        return tuple(Rule(RuleDefinition(**table)) for table in tables)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarnessError(f"{_FILE.name} cannot be read: {error}", remedy="reinstall kernelskill") from error


def _weigh(answer: tuple[float, Bottleneck], time_share: float, headroom: float) -> tuple[float, Bottleneck]:
    rank, found = answer
    gain = min(found.gain, headroom) * time_share
    shrink = gain / found.gain if found.gain else time_share
    return rank * shrink, found.model_copy(update={"gain": gain})


def _headroom(roofline: Roofline | None) -> float:
    if roofline is None or roofline.fraction is None or roofline.fraction > _OTHER_ROOF:
        return 1.0
    return _unit(1.0 - roofline.fraction)


def _metrics(profile: Profile, kernel: KernelProfile, roofline: Roofline | None) -> dict[str, float]:
    metrics = dict(kernel.metrics)
    metrics["plan__counted"] = float(profile.source != "static")
    metrics["plan__traced"] = float(profile.source == "trace")
    metrics["plan__launches"] = float(sum(each.launches for each in profile.kernels))
    duration_ms = profile.duration_ms if roofline is None else roofline.time_ms
    if duration_ms is not None:
        metrics["plan__duration_us"] = duration_ms * 1e3
    if kernel.resources is not None:
        resources = kernel.resources
        metrics["static__registers"] = float(resources.registers)
        metrics["static__stack_bytes"] = float(resources.stack_bytes)
        metrics["static__spill_bytes"] = float(resources.spill_store_bytes + resources.spill_load_bytes)
    total = sum(kernel.instructions.values())
    for name, count in kernel.instructions.items():
        metrics[f"static__{name.replace(' ', '_')}_instructions_pct"] = 100.0 * count / total
    if total:
        for name in _CLASSES:
            metrics.setdefault(f"static__{name}_instructions_pct", 0.0)
    if kernel.occupancy is not None:
        metrics["static__occupancy_pct"] = 100.0 * kernel.occupancy
    if roofline is not None and roofline.fraction is not None:
        metrics["roofline__fraction"] = roofline.fraction
        metrics["roofline__memory_bound"] = float(roofline.bound == "memory")
    return metrics


def _fill(template: str, figures: dict[str, float]) -> str:
    shown = dict.fromkeys(definitions(), float("nan")) | figures
    return template.format(**shown).replace("nan %", "an unknown share").replace("nan", "unknown")


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
