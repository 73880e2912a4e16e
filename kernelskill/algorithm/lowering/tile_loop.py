"""The loop over tiles of staged operands, with one of the ways to fill them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelskill.algorithm.expression import Loop
from kernelskill.algorithm.lowering.async_copy import ASYNC_BUFFERS, use_copies
from kernelskill.algorithm.lowering.context import Context, StagedTile
from kernelskill.algorithm.lowering.fill import Filler, tile_starts
from kernelskill.algorithm.lowering.staging import plan_fill

Steps = Callable[[], None]


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
        buffers = context.constant("kBuffers", ASYNC_BUFFERS)
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
        with out.block(self._head):
            out.line(f"{context.helper_names['await_copies']}();")
            out.line("__syncthreads();")
            ahead = f"({buffers} - 1)"
            out.line(f"{fetch}(({current} + {ahead}) % {buffers}, {start} + {ahead} * {self._depth});")
            context.tile_buffer = current
            steps()
            context.tile_buffer = ""
            out.line(f"{current} = ({current} + 1) % {buffers};")
