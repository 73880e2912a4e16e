"""What the sampled blocks of one launch did, scaled to the whole grid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from kernelskill.backends.emulated.places import SourcePlaces

WARP = 32
_SHARED, _LOCAL = 1, 2
_ACCESS = ("read", "write", "atomic")


@dataclass(frozen=True, slots=True)
class SiteTrace:
    """One access site over the whole grid; counts are warp-level and scaled."""

    file: str
    line: int
    opcode: str
    space: str
    """`global`, `shared` or `local`."""
    access: str
    """`read`, `write` or `atomic`."""
    figures: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.figures[name]


@dataclass(frozen=True, slots=True)
class HotLine:
    """Atomics on the most used 128 bytes: warp requests, lanes, and addresses that differ in a request."""

    requests: float = 0.0
    lanes: float = 0.0
    addresses: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Slow loads that a warp waits for."""

    count: float
    lead: float
    """Cycles that the warp spends on other things between load and use."""


@dataclass(slots=True)
class LaunchTrace:
    """One launch. Everything is for the whole grid unless its name says otherwise."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    sites: list[SiteTrace]
    mix: dict[str, float]
    """Warp instructions by pipe; `issue` counts all."""
    counts: dict[str, float]
    """Warp-level counts: instructions, integer_divisions, barriers."""
    threads_per_instruction: float
    waits: tuple[Wait, ...]
    """Slow loads that follow one another, of the mean warp."""
    cycles_per_warp: float
    """Cycles of the mean warp without slow loads, alone on its scheduler."""
    barriers_per_block: float
    regions: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Allocation to bytes that a block reads and writes at least once, in the mean."""
    hot_atomics: float = 0.0
    """Atomic operations on the most used address."""
    hot_line: HotLine = field(default_factory=HotLine)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def waits_per_warp(self) -> float:
        """Slow loads that follow one another, of the mean warp."""
        return sum(wait.count for wait in self.waits)

    @property
    def threads_per_block(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        """Warps of a block."""
        return -(-self.threads_per_block // WARP)

    def total(self, name: str, *, space: str = "", access: str = "") -> float:
        """Return the sum of a figure over the sites of a space and an access."""
        return sum(s[name] for s in self.sites if space in ("", s.space) and access in ("", s.access))


def read_trace(row: dict[str, Any], module: dict[str, Any], places: SourcePlaces) -> LaunchTrace:
    """Return a launch as the child reported it, scaled from the sampled blocks to the grid."""
    trace = row["trace"]
    grid, block = tuple(row["grid"]), tuple(row["block"])
    totals = trace["totals"]
    sampled = max(1, totals["blocks"])
    scale = grid[0] * grid[1] * grid[2] / sampled
    mix: dict[str, float] = defaultdict(float)
    counts: dict[str, float] = defaultdict(float)
    cycles = lanes = issues = 0.0
    for number, (issued, threads) in trace["blocks"].items():
        figures = module["blocks"][int(number)]
        for pipe, length in figures["mix"].items():
            mix[pipe] += issued * length * scale
        for name, count in figures["counts"].items():
            counts[name] += issued * count * scale
        cycles += issued * figures["cycles"]
        length = figures["counts"].get("instructions", 0)
        lanes += threads * length
        issues += issued * length
    warps = max(1, totals["warps"])
    return LaunchTrace(
        kernel=row["kernel"],
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        dynamic_shared=row["shared"],
        sites=_merge_broadcasts(
            {n: _site(int(n), figures, module, places, scale) for n, figures in trace["sites"].items()},
            module,
        ),
        mix=mix,
        counts=counts,
        threads_per_instruction=lanes / issues if issues else float(WARP),
        waits=tuple(_waits(trace["blocks"], module["blocks"], warps)),
        cycles_per_warp=cycles / warps,
        barriers_per_block=totals["barriers"] / sampled,
        regions={
            number: (read / sampled, written / sampled) for number, read, written, _ in trace["regions"]
        },
        hot_atomics=_hot_atomics(totals, sampled, scale),
        hot_line=_hot_line(totals, sampled, scale),
    )


def _waits(issued: dict[str, list[int]], blocks: list[dict[str, Any]], warps: int) -> Iterator[Wait]:
    """Yield where warps wait for slow loads: those of a block itself, then those of earlier ones."""

    def times(number: int) -> int:
        return issued.get(str(number), (0, 0))[0]

    for number in map(int, issued):
        for lead in blocks[number]["waits"]:
            yield Wait(times(number) / warps, lead)
        count, ahead = 0, inf
        for loads, lead, between in blocks[number]["awaits"]:
            if not times(loads):
                continue
            passed = sum(times(n) * blocks[n]["cycles"] for part in between for n in range(*part))
            count = max(count, min(times(loads), times(number)))
            ahead = min(ahead, lead + passed / times(loads))
        if count:
            yield Wait(count / warps, ahead)


def _merge_broadcasts(sites: dict[str, SiteTrace], module: dict[str, Any]) -> list[SiteTrace]:
    """Count shared loads of one word for a whole warp once where the assembler merges neighbours."""
    for figures in module["blocks"]:
        for number, together in figures["merged"].items():
            site = sites.get(number)
            if site is not None and site.space == "shared":
                site.figures["wavefronts"] -= site["lines"] * (1 - 1 / together)
    return list(sites.values())


def _hot_atomics(totals: dict[str, int], sampled: int, scale: float) -> float:
    """An address that several sampled blocks hit is one for the whole grid."""
    shared_by_blocks = totals["hot_blocks"] > 1 or sampled == 1
    return totals["hot_atomics"] * scale if shared_by_blocks else float(totals["hot_atomics"])


def _hot_line(totals: dict[str, int], sampled: int, scale: float) -> HotLine:
    if totals["line_blocks"] <= 1 < sampled:
        scale = 1.0
    counts = (totals[f"line_{name}"] * scale for name in ("requests", "lanes", "addresses"))
    return HotLine(*counts)


def _site(
    number: int, figures: dict[str, int], module: dict[str, Any], places: SourcePlaces, scale: float
) -> SiteTrace:
    file, line = places.place(number)
    scaled = {
        name: value * scale for name, value in figures.items() if name not in ("space", "access", "size")
    }
    scaled["same_address_most"] = float(figures["same_address_most"])
    scaled["size"] = float(figures["size"])
    space = {_SHARED: "shared", _LOCAL: "local"}.get(figures["space"], "global")
    return SiteTrace(file, line, module["sites"][number][1], space, _ACCESS[figures["access"]], scaled)
