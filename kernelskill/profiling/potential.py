"""Potential: what can be won in each kernel of a launcher, its share of the time by its distance from the roof."""

from __future__ import annotations

from kernelskill.profiling.figures import figures_of
from kernelskill.schema.base import Record
from kernelskill.schema.profile import KernelProfile, Profile, Roofline

LEAST_DISTANCE = 0.2
"""A roof is a rough thing, and a change may do away with a kernel's work altogether."""

_CEILINGS = ("fma", "fp32_time", "fp64", "fp64_time", "tensor", "tensor_time", "special_time")
"""Shares of a peak that only useful arithmetic reaches, in percent."""


class Potential(Record):
    """What can be won in one kernel."""

    time_share: float
    """Of the launcher's device time, 0 to 1."""
    distance: float
    """Share of the kernel's own time above its roof, `LEAST_DISTANCE` to 1."""

    @property
    def winnable(self) -> float:
        """Share of the launcher's time that can be won here, 0 to 1."""
        return self.time_share * self.distance


def potentials(profile: Profile) -> dict[str, Potential]:
    """Return the potential of every profiled kernel by its plain name; instances of one template together."""
    found: dict[str, Potential] = {}
    for kernel in profile.kernels:
        name = plain_name(kernel.kernel)
        own = Potential(
            time_share=min(1.0, max(0.0, kernel.time_share)),
            distance=_distance(kernel, traced=profile.source == "trace"),
        )
        before = found.get(name)
        found[name] = own if before is None else _together(before, own)
    return found


class HotKernel(Record):
    """What fixing one kernel could win of the whole launcher, by Amdahl's law."""

    kernel: str
    """Display name."""
    launches: int
    time_share: float
    winnable: float
    """Share of the launcher's time that could be won in it at most, 0 to 1."""
    speedup: float
    """Of the launcher, were this kernel alone at its roof."""
    speedup_together: float
    """Of the launcher, were this kernel and all hotter ones at their roofs."""
    known: bool
    """Whether figures tell how far it is from its roof; if not, all of its time is taken to be winnable."""


def hot_kernels(profile: Profile, roofline: Roofline | None = None) -> tuple[HotKernel, ...]:
    """Return what could be won in each kernel, the hottest first.

    No more can be won in all than the roof of the whole launcher leaves.

    Args:
        profile: Of the launcher.
        roofline: Where the whole launcher stands, where that is known.
    """
    fraction = roofline.fraction if roofline is not None and roofline.case == profile.case else None
    headroom = 1.0 if fraction is None else min(1.0, max(LEAST_DISTANCE, 1.0 - fraction))
    found = []
    together = 0.0
    for kernel in profile.kernels:
        share = min(1.0, max(0.0, kernel.time_share))
        known = profile.source != "static" or (fraction is not None and len(profile.kernels) == 1)
        distance = _distance(kernel, traced=profile.source == "trace") if profile.source != "static" else 1.0
        won = min(share * distance, headroom)
        together = min(together + won, headroom)
        found.append(
            HotKernel(
                kernel=kernel.kernel,
                launches=kernel.launches,
                time_share=share,
                winnable=won,
                speedup=_speedup(won),
                speedup_together=_speedup(together),
                known=known,
            )
        )
    return tuple(found)


def plain_name(display_name: str) -> str:
    """Return a kernel's name without namespaces, template arguments and parameters."""
    return display_name.split("(")[0].split("<")[0].rsplit("::", 1)[-1].split(" ")[-1]


def _speedup(won: float) -> float:
    return 1.0 / max(1.0 - won, 0.01)


def _together(one: Potential, other: Potential) -> Potential:
    share = one.time_share + other.time_share
    won = one.winnable + other.winnable
    return Potential(time_share=min(1.0, share), distance=won / share if share else 1.0)


def _distance(kernel: KernelProfile, *, traced: bool) -> float:
    figures = figures_of(kernel.metrics, traced=traced)
    # Bytes moved for nothing are no work: a kernel that keeps the memory busy with waste is far from the roof.
    again = max(1.0, figures.get("moved_again", 1.0), figures.get("reread", 1.0))
    useful = 1.0 - min(1.0, max(0.0, figures.get("excess_share", 0.0)))
    memory = figures.get("dram", 0.0) / 100 / again * useful
    arithmetic = max(figures.get(name, 0.0) for name in _CEILINGS) / 100
    return min(1.0, max(LEAST_DISTANCE, 1.0 - max(memory, arithmetic)))
