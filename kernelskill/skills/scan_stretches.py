"""Text of a running sum that several threads take a stretch at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelskill.skills.row_scans import Scan
from kernelskill.source.loops import Loop
from kernelskill.source.unit import SourceUnit

Combined = Callable[[Scan, str, str, str], list[str]]
"""Gives the lines that combine an amount with those of other lanes, into a total and a sum before."""


@dataclass(frozen=True)
class LaneNames:
    """What the lanes that share a row are called in the text."""

    lane: str
    lanes: str
    """The number of lanes that take part."""
    group: str
    mask: str
    """C text for the lanes that combine by shuffles."""
    step: str
    other: str

    @property
    def may_be_alone(self) -> bool:
        """Whether one lane does the row where memory overlaps."""
        return self.lanes != self.group


@dataclass(frozen=True)
class Stretches:
    """The lines before and behind the body of the loop."""

    opening: tuple[str, ...]
    closing: tuple[str, ...]


def stretches(
    unit: SourceUnit,
    loop: Loop,
    scan: Scan,
    turns: int,
    names: LaneNames,
    fresh: Callable[[str], str],
    combined: Combined,
) -> Stretches:
    """Return the loop over stretches; its body runs as written, from what the sum holds when its turn begins.

    A lane that does the row alone goes on from what its body leaves: there stores may change what is added later.
    """
    parts = _Parts(unit, loop, scan, turns, names, fresh)
    return parts.single(combined) if turns == 1 else parts.several(combined)


class _Parts:
    def __init__(
        self,
        unit: SourceUnit,
        loop: Loop,
        scan: Scan,
        turns: int,
        names: LaneNames,
        fresh: Callable[[str], str],
    ) -> None:
        assert loop.start is not None
        assert loop.bound is not None
        self._scan, self._names, self._turns, self._fresh = scan, names, turns, fresh
        self._kind = getattr(loop.declared, "base_type", "int")
        is_declared = loop.declared is not None and loop.span.contains(loop.declared.name_span)
        self._variable = f"const {self._kind} {loop.variable}" if is_declared else loop.variable
        bound = f"{loop.comparison} {unit.text_of(loop.bound)}"
        self._test = f"{loop.variable} {bound}"
        self._takes = f"{self._test} && {scan.test}" if scan.test else self._test
        self._base, self._amount, self._total = fresh("stretch"), fresh("amount"), fresh("total")
        self._before = fresh("before")
        self._after = fresh("after") if names.may_be_alone else ""
        each = names.lanes if turns == 1 else f"{names.lanes} * {turns}"
        start = f"{self._kind} {self._base} = {unit.text_of(loop.start)}"
        self._head = f"for ({start}; {self._base} {bound}; {self._base} += {each}) {{"

    def single(self, combined: Combined) -> Stretches:
        """Return the text in which a lane takes one turn of a stretch."""
        scan = self._scan
        opening = [
            self._head,
            f"    {self._variable} = {self._base} + {self._names.lane};",
            f"    const {scan.kind} {self._amount} = {self._takes} ? {scan.amount} : 0;",
            *self._combined(combined),
            f"    if ({self._test}) {{",
            f"        {scan.kind} {scan.name} = {self._before};",
        ]
        return Stretches(tuple(opening), (*self._left(), "    }", *self._closing()))

    def several(self, combined: Combined) -> Stretches:
        """Return the text in which a lane takes some neighbouring turns."""
        scan, mine, turn = self._scan, self._fresh("mine"), self._fresh("turn")
        head = f"for (int {turn} = 0; {turn} < {self._turns}; ++{turn}) {{"
        opening = [
            self._head,
            f"    const {self._kind} {mine} = {self._base} + {self._names.lane} * {self._turns};",
            f"    {scan.kind} {self._amount} = 0;",
            "    #pragma unroll",
            f"    {head}",
            f"        {self._variable} = {mine} + {turn};",
            f"        if ({self._takes}) {self._amount} += {scan.amount};",
            "    }",
            *self._combined(combined),
            "    {",
            f"        {scan.kind} {scan.name} = {self._before};",
            f"        {head}",
            f"            {self._variable} = {mine} + {turn};",
            f"            if ({self._test}) {{",
        ]
        closing = ("            }", "        }", *self._left(), "    }", *self._closing())
        return Stretches(tuple(opening), closing)

    def _combined(self, combined: Combined) -> list[str]:
        scan = self._scan
        lines = [f"    {scan.kind} {self._total} = {self._amount}, {self._before} = {scan.name};"]
        lines += [f"    {line}" for line in combined(scan, self._amount, self._total, self._before)]
        return [*lines, f"    {scan.kind} {self._after} = {self._before};"] if self._after else lines

    def _left(self) -> list[str]:
        return [f"        {self._after} = {self._scan.name};"] if self._after else []

    def _closing(self) -> tuple[str, ...]:
        name, lanes = self._scan.name, self._names.lanes
        if not self._after:
            return f"    {name} += {self._total};", "}"
        return f"    {name} = {lanes} > 1 ? {name} + {self._total} : {self._after};", "}"


def scan_function(name: str, kind: str) -> str:
    """Return the text of a device function for the sum of the threads before in a block."""
    return (
        "// Returns the sum of the values of the block's threads before this one; `total` is that of all.\n"
        f"__device__ __forceinline__ {kind} {name}({kind} value, {kind}& total)\n"
        "{\n"
        f"    __shared__ {kind} of_warp[32];\n"
        "    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;\n"
        f"    {kind} upto = value;\n"
        "    for (int step = 1; step < 32; step *= 2) {\n"
        f"        const {kind} other = __shfl_up_sync(0xffffffffu, upto, step);\n"
        "        if (lane >= step)\n"
        "            upto += other;\n"
        "    }\n"
        "    __syncthreads();  // the last sums may still be read\n"
        "    if (lane == 31)\n"
        "        of_warp[warp] = upto;\n"
        "    __syncthreads();\n"
        "    // Every warp adds up the sums of all warps.\n"
        f"    {kind} sums = lane < warps ? of_warp[lane] : 0;\n"
        "    for (int step = 1; step < 32; step *= 2) {\n"
        f"        const {kind} other = __shfl_up_sync(0xffffffffu, sums, step);\n"
        "        if (lane >= step)\n"
        "            sums += other;\n"
        "    }\n"
        "    total = __shfl_sync(0xffffffffu, sums, 31);\n"
        f"    const {kind} earlier = __shfl_sync(0xffffffffu, sums, warp > 0 ? warp - 1 : 0);\n"
        f"    const {kind} last = __shfl_up_sync(0xffffffffu, upto, 1);\n"
        f"    const {kind} before = warp > 0 ? earlier : 0;\n"
        "    return lane > 0 ? before + last : before;\n"
        "}\n"
    )
