"""A diagnosis for people: where the time goes, what limits each kernel, and how that is known."""

from __future__ import annotations

from collections.abc import Iterator

from kernelskill.agents.profiler import Diagnosis
from kernelskill.profiling.potential import HotKernel
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
_MOST_CLASSES = 6
_MOST_LIMITS = 6
_LONGEST_NAME = 72


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the whole diagnosis, a line each."""
    profile = diagnosis.profile
    lines = [f"{profile.conditions.gpu}: figures from {_SOURCES[profile.source]}"]
    if profile.unavailable:
        lines.append(f"better ones were not to be had: {profile.unavailable}")
    for kernel in profile.kernels[:_MOST_KERNELS]:
        lines += [_kernel(kernel, profile), *_mix(kernel)]
    more = len(profile.kernels) - _MOST_KERNELS
    lines += [f"  and {more} colder kernels"] if more > 0 else []
    lines += _to_win(diagnosis)
    if diagnosis.roofline is not None:
        lines.append(_standing(diagnosis.roofline, estimated=profile.conditions.evidence == "estimated"))
    lines += [""] if lines[-1] else []
    lines.append("limits, the most worth removing first" if diagnosis.bottlenecks else "no limit was named")
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


def _to_win(diagnosis: Diagnosis) -> list[str]:
    """Return what fixing each kernel could win in all, where there are several to choose from."""
    if len(diagnosis.hot) < 2:
        return []
    lines = ["", "what could be won in all"]
    for number, hot in enumerate(diagnosis.hot[:_MOST_KERNELS], 1):
        line = f"  {_short(hot.kernel)}: {_won(hot)}"
        if number > 1:
            line += f"; with the hotter ones {hot.speedup_together:.2f}x"
        lines.append(line)
    return [*lines, ""]


def _won(hot: HotKernel) -> str:
    if not hot.known:
        return f"at most its {figures.percent(hot.time_share)} ({hot.speedup:.2f}x); its distance from the roof is unknown"
    return f"up to {figures.percent(hot.winnable)} ({hot.speedup:.2f}x) were it at its roof"


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


def _mix(kernel: KernelProfile) -> list[str]:
    total = sum(kernel.instructions.values())
    if not total:
        return []
    classes = sorted(kernel.instructions.items(), key=lambda item: (-item[1], item[0]))[:_MOST_CLASSES]
    shares = ", ".join(f"{name} {figures.percent(count / total)}" for name, count in classes)
    return [f"    {total} instructions in the code: {shares}"]


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
