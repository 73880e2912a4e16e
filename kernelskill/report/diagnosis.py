"""A diagnosis for people: what limits each kernel, how that is known, and two of them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelskill.agents.profiler import Diagnosis
from kernelskill.profiling.figures import definitions, figures_of, metric_of
from kernelskill.profiling.potential import plain_name
from kernelskill.report import figures
from kernelskill.schema.profile import Bottleneck, KernelProfile, Metric, Profile, Roofline

_SOURCES = {
    "ncu": "hardware counters",
    "trace": "the memory trace of the emulated device; times are estimates",
    "static": "compiler and launch facts alone",
}
_CEILINGS = {
    "measured": "measured on this GPU",
    "data sheet": "from the data sheet",
}
_MOST_KERNELS = 12
_MOST_LINES = 6
_MOST_LIMITS = 6
_LONGEST_NAME = 72


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the whole diagnosis, a line each."""
    profile = diagnosis.profile
    lines = [f"{profile.conditions.gpu}: figures from {_SOURCES[profile.source]}"]
    if profile.unavailable:
        lines.append(f"better ones were not to be had: {profile.unavailable}")
    lines += [_kernel(kernel, profile) for kernel in profile.kernels[:_MOST_KERNELS]]
    more = len(profile.kernels) - _MOST_KERNELS
    lines += [f"  and {more} colder kernels"] if more > 0 else []
    if diagnosis.roofline is not None:
        lines.append(_standing(diagnosis.roofline, estimated=profile.conditions.evidence == "estimated"))
    lines += ["", "limits, the most worth removing first" if diagnosis.bottlenecks else "no limit was named"]
    for number, found in enumerate(diagnosis.bottlenecks[:_MOST_LIMITS], 1):
        lines += _limit(number, found)
    hot = list(_hot_lines(profile))
    lines += ["", "source lines that ask most of memory", *hot] if hot else []
    lines += (
        ["", "to collect the same again", *(f"  {c}" for c in profile.commands)] if profile.commands else []
    )
    return lines


def _kernel(kernel: KernelProfile, profile: Profile) -> str:
    times = "" if kernel.launches == 1 else f", {kernel.launches} launches"
    total = "" if profile.duration_ms is None else f" of {figures.milliseconds(profile.duration_ms)}"
    share = figures.percent(kernel.time_share)
    return f"  {_short(kernel.kernel)}: {share}{total}{times}; {', '.join(_shape(kernel))}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."


def _shape(kernel: KernelProfile) -> Iterator[str]:
    yield f"grid {' x '.join(map(str, kernel.grid))}"
    yield f"block {' x '.join(map(str, kernel.block))}"
    if kernel.resources is not None:
        yield f"{kernel.resources.registers} registers"
        yield f"{kernel.resources.static_shared_bytes} B of static shared memory"
        spills = kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes
        if spills:
            yield f"{spills} B spilled"
    if kernel.occupancy is not None:
        yield f"occupancy {kernel.occupancy:.0%}, limited by {kernel.occupancy_limit or 'nothing'}"


def _standing(roof: Roofline, *, estimated: bool) -> str:
    time = f"{'~' if estimated else ''}{figures.milliseconds(roof.time_ms)}"
    if roof.fraction is None:
        return f"  {time}; the least work is unknown: give cost() in the test for a roofline"
    rates = []
    if roof.bytes_per_s is not None:
        ceiling = figures.per_second(roof.ceiling_bytes_per_s, "B")
        rates.append(f"{figures.per_second(roof.bytes_per_s, 'B')} of {ceiling}")
    if roof.flops_per_s is not None:
        ceiling = figures.per_second(roof.ceiling_flops_per_s, "FLOP")
        rates.append(f"{figures.per_second(roof.flops_per_s, 'FLOP')} of {ceiling}")
    source = "cost() of the test" if roof.source == "cost" else "the sizes of its buffers"
    return (
        f"  {time}, {figures.percent(roof.fraction)} of the roof ({roof.bound} bound): {', '.join(rates)};"
        f" least work from {source}, ceilings {_CEILINGS[roof.ceilings]}"
    )


def _limit(number: int, found: Bottleneck) -> list[str]:
    where = f" (line {', '.join(map(str, found.lines))})" if found.lines else ""
    lines = [
        f"  {number}. {found.kind.value.replace('_', ' ')} in {_short(found.kernel)}{where}: {found.summary}",
        f"     {found.confidence:.0%} sure; removing it could win up to {found.gain:.0%} of the time",
    ]
    if found.evidence:
        lines.append("     " + ", ".join(map(_figure, found.evidence)))
    if found.falsified_by:
        lines.append(f"     wrong if {found.falsified_by}")
    return lines


def _figure(metric: Metric) -> str:
    return f"{metric.name} {metric.value:.4g}{' ' + metric.unit if metric.unit else ''}"


def _hot_lines(profile: Profile) -> Iterator[str]:
    for kernel in profile.kernels[:1]:
        for line in kernel.lines[:_MOST_LINES]:
            shown = ", ".join(
                f"{value:.4g} {name.replace('_', ' ')}" for name, value in line.metrics.items() if value
            )
            yield f"  {line.file}:{line.line}: {shown}"


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


def compare(before: Diagnosis, after: Diagnosis) -> tuple[ComparedKernel, ...]:
    """Return the kernels of two diagnoses side by side: by name, and what is left over in order of heat."""
    pairs = _pairs(before.profile, after.profile)
    return tuple(
        ComparedKernel(one, other, tuple(_compared(one, other, before.profile, after.profile)))
        for one, other in pairs
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
