"""The loop over tiles of staged operands, with one of the ways to fill them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kernelskill.algorithm.expression import Loop
from kernelskill.algorithm.lowering.async_copy import buffer_count, use_copies
from kernelskill.algorithm.lowering.context import Context, StagedTile
from kernelskill.algorithm.lowering.fill import Filler, tile_starts
from kernelskill.algorithm.lowering.staging import plan_fill

Steps = Callable[[], None]


class StepPipeline(Protocol):
    """Steps of a tile whose operands are read while the step before is computed."""

    @property
    def count(self) -> int:
        """Steps of a tile; an even number, so that operands are held in two places in turn."""

    def declare(self) -> None:
        """Write what holds the operands of two steps."""

    def read(self, into: str, tile: str, step: str) -> None:
        """Write the reading of the operands of a step of a tile into one of two places."""

    def compute(self, held: str) -> None:
        """Write a step whose operands are held in one of two places."""


class TileLoop:
    """Writes the loop over tiles with one of the ways to fill them."""

    def __init__(
        self, context: Context, loop: Loop, tiles: Sequence[StagedTile], start: str, depth: str
    ) -> None:
        self._context, self._loop, self._start, self._depth = context, loop, start, depth
        self._fillers = [
            Filler(
                context,
                plan_fill(context, tile),
                context.step_names["tid"],
                tile_starts(context, tile, start),
            )
            for tile in tiles
        ]
        self._plans = [plan_fill(context, tile) for tile in tiles]
        self._tiles = tiles

    @property
    def _head(self) -> str:
        low, high = self._context.show(self._loop.lower), self._context.show(self._loop.upper, 8)
        kind, start = self._context.index_type, self._start
        return f"for ({kind} {start} = {low}; {start} < {high}; {start} += {self._depth})"

    def write(self, steps: Steps) -> None:
        """Write the loop; `steps` writes what is done with the operands of one tile."""
        copy = self._context.schedule.copy
        if copy == "direct":
            self._direct(steps)
        elif copy == "async":
            self._streamed(steps)
        else:
            self._fetched(steps, twice=copy == "double")

    def _direct(self, steps: Steps) -> None:
        out = self._context.out
        with out.block(self._head):
            for filler in self._fillers:
                filler.direct()
            out.line("__syncthreads();")
            steps()
            out.line("__syncthreads();")

    def _fetched(self, steps: Steps, *, twice: bool) -> None:
        """Fetch the next tile into registers while this one is used."""
        out, context = self._context.out, self._context
        for filler, plan, tile in zip(self._fillers, self._plans, self._tiles, strict=True):
            out.line(f"{filler.register_type} {tile.next}[{plan.rounds}];")
        kind = context.index_type
        fetch, keep = context.names.fresh("fetch"), context.names.fresh("keep")
        with out.block(f"auto {fetch} = [&]({kind} {self._start})", "};"):
            for filler in self._fillers:
                filler.fetch()
        target = context.names.fresh("to") if twice else ""
        with out.block(f"auto {keep} = [&]({f'int {target}' if twice else ''})", "};"):
            for filler in self._fillers:
                filler.keep(target)
        low, high = context.show(self._loop.lower), context.show(self._loop.upper, 8)
        following = f"{self._start} + {self._depth}"
        out.line(f"{fetch}({low});")
        if twice:
            current = context.names.fresh("current")
            out.lines([f"{keep}(0);", "__syncthreads();", f"int {current} = 0;"])
            with out.block(
                self._head.replace(
                    f"{self._start} += {self._depth}", f"{self._start} += {self._depth}, {current} ^= 1"
                )
            ):
                more = context.local("more")
                out.line(f"const bool {more} = {following} < {high};")
                out.line(f"if ({more}) {fetch}({following});")
                context.tile_buffer = current
                steps()
                context.tile_buffer = ""
                out.line(f"if ({more}) {keep}({current} ^ 1);")
                out.line("__syncthreads();")
            return
        with out.block(self._head):
            out.lines([f"{keep}();", "__syncthreads();"])
            out.line(f"if ({following} < {high}) {fetch}({following});")
            steps()
            out.line("__syncthreads();")

    def _streamed(self, steps: Steps) -> None:
        """Copy tiles asynchronously, some steps ahead of their use."""
        out, context = self._context.out, self._context
        fetch_ahead, current, following = self._start_stream()
        with out.block(self._head):
            out.line(f"{context.helper_names['await_copies']}();")
            out.line("__syncthreads();")
            out.line(fetch_ahead)
            context.tile_buffer = current
            steps()
            context.tile_buffer = ""
            out.line(following)

    def write_pipelined(self, steps: StepPipeline) -> None:
        """Write the loop with asynchronous copies, and operands of the next step read while one is computed.

        The last step of a tile reads the first operands of the next tile. So the threads meet before that step:
        the next tile has arrived then, and all are done with reading this one.
        """
        out, context = self._context.out, self._context
        step, last = context.names.fresh("step"), steps.count - 1
        fetch_ahead, current, following = self._start_stream()
        steps.declare()
        arrived = [f"{context.helper_names['await_copies']}();", "__syncthreads();"]
        out.lines(arrived)
        steps.read("0", current, "0")
        with out.block(self._head):
            out.line(fetch_ahead)
            with out.unrolled(f"for (int {step} = 0; {step} < {steps.count}; ++{step})"):
                with out.block(f"if ({step} == {last})"):
                    out.line("// The next tile is there, and this one has been read by all.")
                    out.lines([*arrived, following])
                steps.read(f"({step} + 1) % 2", current, f"({step} + 1) % {steps.count}")
                steps.compute(f"{step} % 2")

    def _start_stream(self) -> tuple[str, str, str]:
        """Start the first copies; returns the start of one more, the number of the tile in use, and the step on."""
        out, context = self._context.out, self._context
        buffers = context.constant("kBuffers", buffer_count(context.schedule))
        use_copies(context)
        kind, start = context.index_type, self._start
        fetch, target, current = (context.names.fresh(name) for name in ("fetch", "to", "current"))
        high = context.show(self._loop.upper, 8)
        with out.block(f"auto {fetch} = [&](int {target}, {kind} {start})", "};"):
            with out.block(f"if ({start} < {high})"):
                for filler in self._fillers:
                    filler.stream(target)
            out.line(f"{context.helper_names['end_copies']}();")
        low = context.show(self._loop.lower, 9)
        number = context.local("n")
        with out.block(f"for (int {number} = 0; {number} < {buffers} - 1; ++{number})"):
            ahead = f"{number} * {self._depth}"
            out.line(f"{fetch}({number}, {ahead if low == '0' else f'{low} + {ahead}'});")
        out.line(f"int {current} = 0;")
        ahead = f"({buffers} - 1)"
        place = f"({current} + {ahead}) % {buffers}"
        return (
            f"{fetch}({place}, {start} + {ahead} * {self._depth});",
            current,
            f"{current} = ({current} + 1) % {buffers};",
        )
