"""Schedule: how an algorithm is mapped to the GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from kernelskill.algorithm.model import Algorithm

Copy = Literal["direct", "registers", "double", "async"]
"""How staged tiles are filled: in turn with the arithmetic; the next tile fetched into registers
meanwhile; the same with two tiles in shared memory and one barrier a step; asynchronous copies."""


@dataclass(frozen=True)
class AxisPlan:
    """How points along one parallel axis are shared out."""

    axis: str
    threads: int = 1
    """Threads of a block along it."""
    points: int = 1
    """Points a thread computes, kept in registers together."""
    vector: int = 1
    """Neighbouring points accessed together; divides `points`."""

    @property
    def tile(self) -> int:
        """Points of a block along the axis."""
        return self.threads * self.points


@dataclass(frozen=True)
class LoopPlan:
    """How a loop inside the points is run."""

    loop: str
    depth: int = 0
    """Steps whose operands are staged together; 0: not tiled."""
    unroll: int = 0
    """Unrolling asked of the compiler; 0: its own choice."""


@dataclass(frozen=True)
class Staging:
    """Accesses of one buffer that go through a tile in shared memory."""

    buffer: str
    loop: str = ""
    """Loop whose tiles it follows; empty: filled once, before all loops."""


@dataclass(frozen=True)
class Schedule:
    """A mapping; the empty one repeats the user's own."""

    axes: tuple[AxisPlan, ...] = ()
    """In the order of the algorithm's axes; empty: the user's blocks and grid, one point a thread."""
    loops: tuple[LoopPlan, ...] = ()
    staged: tuple[Staging, ...] = ()
    copy: Copy = "direct"
    lanes: int = 1
    """Threads that share each point's loops and combine their partial results."""
    lane_vector: int = 1
    """Neighbouring loop steps that a lane takes together."""
    lanes_outer: bool = False
    """Whether neighbouring threads are neighbouring points rather than neighbouring lanes."""
    keep: int = 0
    """Groups of steps whose elements each lane keeps in registers from loop to loop; 0: they are read again."""
    splits: int = 0
    """Most blocks that share each point's loops and combine by atomics; 0: one block."""
    min_blocks: int = 0
    """Blocks an SM asked for by `__launch_bounds__`; 0: none."""
    swizzle: int = 0
    """Rows of blocks that are walked together, for reuse in L2; 0: plain order."""
    interior: bool = False
    """Whether threads whose windows lie inside of all bounds take a path without tests."""
    halves: bool = False
    """Whether such threads compute two points in each word."""
    tensor: bool = False
    """Whether the products run on tensor cores; then `threads` of an axis are warps."""

    @property
    def is_original(self) -> bool:
        """Whether the user's own binding is kept."""
        return self == Schedule()

    @property
    def threads(self) -> int:
        """Threads of a block."""
        total = self.lanes * (32 if self.tensor else 1)
        for plan in self.axes:
            total *= plan.threads
        return total

    @property
    def shares_border(self) -> bool:
        """Whether all lanes of a warp share the points of those whose windows do not lie inside; none may return."""
        return self.interior and any(plan.points > 1 for plan in self.axes)

    def axis(self, name: str) -> AxisPlan:
        """Return the plan of an axis; a plain one where there is none."""
        return next((plan for plan in self.axes if plan.axis == name), AxisPlan(name))

    def loop(self, name: str) -> LoopPlan:
        """Return the plan of a loop; a plain one where there is none."""
        return next((plan for plan in self.loops if plan.loop == name), LoopPlan(name))

    def with_axis(self, plan: AxisPlan) -> Schedule:
        """Return the schedule with one axis planned otherwise."""
        return replace(self, axes=tuple(plan if old.axis == plan.axis else old for old in self.axes))

    def with_loop(self, plan: LoopPlan) -> Schedule:
        """Return the schedule with one loop planned otherwise."""
        kept = tuple(old for old in self.loops if old.loop != plan.loop)
        return replace(self, loops=(*kept, plan))


def plain_schedule(algorithm: Algorithm, threads: int = 256) -> Schedule:
    """Return a schedule of one point a thread, the block's threads along the innermost axis."""
    last = len(algorithm.axes) - 1
    plans = tuple(
        AxisPlan(axis.name, threads if position == last else 1)
        for position, axis in enumerate(algorithm.axes)
    )
    return Schedule(axes=plans)
