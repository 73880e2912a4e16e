"""Two diagnoses side by side: figures, resources and machine code of each kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from kernelskill.agents.profiler import Diagnosis
from kernelskill.backends.sass import KernelCode
from kernelskill.profiling.figures import definitions, figures_of, metric_of
from kernelskill.profiling.potential import plain_name
from kernelskill.schema.profile import KernelProfile, Metric, Profile

_CONTEXT_LINES = 2
Code = Mapping[str, KernelCode]
"""Display name to machine code."""


@dataclass(frozen=True)
class ComparedFigure:
    """One figure of two kernels."""

    name: str
    """As `metrics.toml` calls it."""
    metric: str
    """The profiler's name, where the figure is one metric."""
    unit: str
    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        """After over before, where both are known."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return self.after / self.before


@dataclass(frozen=True)
class ComparedKernel:
    """Two kernels side by side; one side alone where the other has no such kernel."""

    before: KernelProfile | None
    after: KernelProfile | None
    figures: tuple[ComparedFigure, ...]
    instructions: tuple[ComparedFigure, ...] = ()
    """Classes of SASS instructions as they stand in the code; empty where a side has none."""


def compare(before: Diagnosis, after: Diagnosis) -> tuple[ComparedKernel, ...]:
    """Return the kernels of two diagnoses side by side: by name, and what is left over in order of heat."""
    pairs = _pairs(before.profile, after.profile)
    return tuple(
        ComparedKernel(
            one,
            other,
            tuple(_compared(one, other, before.profile, after.profile)),
            tuple(_compared_instructions(one, other)),
        )
        for one, other in pairs
    )


def sass_diff(compared: ComparedKernel, before: Code, after: Code) -> list[str] | None:
    """Return how the machine code of two kernels differs, without the places that jumps lead to.

    Nothing where it is equal; None where one side has no machine code.
    """
    one = None if compared.before is None else before.get(compared.before.kernel)
    other = None if compared.after is None else after.get(compared.after.kernel)
    if one is None or other is None:
        return None
    lines = unified_diff(one.comparable, other.comparable, "before", "after", lineterm="", n=_CONTEXT_LINES)
    return list(lines)


def _compared_instructions(
    before: KernelProfile | None, after: KernelProfile | None
) -> Iterator[ComparedFigure]:
    """Yield all instructions, then each class, the largest of either side first."""
    one = before.instructions if before else {}
    other = after.instructions if after else {}
    if not one and not other:
        return
    yield _counted("all", sum(one.values()) if one else None, sum(other.values()) if other else None)
    names = sorted({*one, *other}, key=lambda name: (-max(one.get(name, 0), other.get(name, 0)), name))
    for name in names:
        yield _counted(name, one.get(name, 0) if one else None, other.get(name, 0) if other else None)


def _counted(name: str, before: int | None, after: int | None) -> ComparedFigure:
    return ComparedFigure(
        name, "", "inst", None if before is None else float(before), None if after is None else float(after)
    )


def _pairs(before: Profile, after: Profile) -> list[tuple[KernelProfile | None, KernelProfile | None]]:
    left = list(after.kernels)
    pairs: list[tuple[KernelProfile | None, KernelProfile | None]] = []
    alone: list[KernelProfile] = []
    for kernel in before.kernels:
        same = next((each for each in left if plain_name(each.kernel) == plain_name(kernel.kernel)), None)
        if same is None:
            alone.append(kernel)
            continue
        left.remove(same)
        pairs.append((kernel, same))
    for kernel in alone:
        pairs.append((kernel, left.pop(0) if left else None))
    return pairs + [(None, kernel) for kernel in left]


def _compared(
    before: KernelProfile | None, after: KernelProfile | None, first: Profile, second: Profile
) -> Iterator[ComparedFigure]:
    one, other = _known(before, first), _known(after, second)
    for name in definitions():
        if name in one or name in other:
            metric = one.get(name) or other[name]
            yield ComparedFigure(
                name,
                metric.name,
                metric.unit,
                one[name].value if name in one else None,
                other[name].value if name in other else None,
            )


def _known(kernel: KernelProfile | None, profile: Profile) -> Mapping[str, Metric]:
    if kernel is None:
        return {}
    metrics = dict(kernel.metrics)
    if kernel.resources is not None:
        spilled = kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes
        metrics |= {
            "static__registers": float(kernel.resources.registers),
            "static__spill_bytes": float(spilled),
            "static__stack_bytes": float(kernel.resources.stack_bytes),
        }
    if kernel.occupancy is not None:
        metrics["static__occupancy_pct"] = 100.0 * kernel.occupancy
    known = figures_of(metrics, traced=profile.source == "trace")
    return {name: metric_of(name, known, metrics) for name in known}
