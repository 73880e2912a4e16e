"""From block and thread numbers to the coordinates of points."""

from __future__ import annotations

from collections.abc import Callable

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.integers import subtract, value_of
from kernelskill.algorithm.lowering.context import AxisText, Context


def is_single(text: AxisText) -> bool:
    """Whether one block always covers the axis."""
    length = value_of(subtract(text.axis.upper, text.axis.lower))
    return length is not None and length <= text.plan.tile


def block_count(text: AxisText, printed: Callable[[Expression, int], str]) -> str:
    """Return the number of blocks along an axis; `printed` gives the text of its range."""
    length = subtract(text.axis.upper, text.axis.lower)
    if text.plan.tile == 1:
        return printed(length, 10)
    return f"({printed(length, 9)} + {text.tile} - 1) / {text.tile}"


class Mapping:
    """Writes the head of a kernel: the thread's and the block's place, and the first point of each."""

    def __init__(self, context: Context) -> None:
        self._context, self._schedule = context, context.schedule
        self._block_names: dict[str, str] = {}

    def write(self) -> None:
        """Write everything up to the coordinates of the thread's point."""
        self._threads()
        self._blocks()
        self._coordinates()

    def _threads(self) -> None:
        """Take the thread's number apart; neighbours run along the lanes, then along the last axis."""
        context, out = self._context, self._context.out
        parts = [(text.thread, text.plan.threads, text.threads) for text in context.axes.values()]
        parts = [part for part in parts if part[1] > 1]
        if self._schedule.tensor:
            self._warps(parts)
            return
        if self._schedule.lanes > 1:
            context.lane = context.names.fresh("lane")
            lanes = (context.lane, self._schedule.lanes, context.constant("kLanes", self._schedule.lanes))
            parts = [lanes, *parts] if self._schedule.lanes_outer else [*parts, lanes]
        if len(parts) == 1 and not context.tiles:
            context.step_names["tid"] = parts[0][0]
            out.line(f"const int {parts[0][0]} = threadIdx.x;")
            return
        if not parts:
            context.step_names["tid"] = "threadIdx.x"
            return
        thread = context.names.fresh("tid")
        context.step_names["tid"] = thread
        out.line(f"const int {thread} = threadIdx.x;")
        rest = thread
        for number, (name, _, constant) in enumerate(reversed(parts)):
            is_last = number == len(parts) - 1
            out.line(f"const int {name} = {rest}{'' if is_last else f' % {constant}'};")
            rest = f"{rest} / {constant}"

    def _warps(self, parts: list[tuple[str, int, str]]) -> None:
        """Take the thread's number apart into lane and warp, the warp into its place in the tile."""
        context, out, names = self._context, self._context.out, self._context.names
        thread, warp, context.lane = names.fresh("tid"), names.fresh("warp"), names.fresh("lane")
        context.step_names.update(tid=thread, warp=warp)
        out.line(f"const int {thread} = threadIdx.x;")
        out.line(f"const int {warp} = {thread} / 32, {context.lane} = {thread} % 32;")
        rest = warp
        for number, (name, _, constant) in enumerate(reversed(parts)):
            is_last = number == len(parts) - 1
            out.line(f"const int {name} = {rest}{'' if is_last else f' % {constant}'};")
            rest = f"{rest} / {constant}"

    def _blocks(self) -> None:
        """Take the block's number apart, the last axis running fastest."""
        context, out = self._context, self._context.out
        texts = list(context.axes.values())
        for text in texts:
            self._block_names[text.axis.name] = context.names.fresh(f"{text.axis.name}_block")
        rest = "blockIdx.x"
        kind = context.index_type
        if self._schedule.splits:
            rest = self._split([text for text in texts if not is_single(text)])
        counted = [text for text in texts if not is_single(text)]
        if self._schedule.swizzle and len(counted) >= 2:
            self._swizzled(counted)
            return
        for number, text in enumerate(reversed(counted)):
            name = self._block_names[text.axis.name]
            if number == len(counted) - 1:
                out.line(f"const {kind} {name} = {rest};")
                break
            blocks = context.names.fresh(f"{text.axis.name}_blocks")
            out.line(f"const int {blocks} = {block_count(text, context.show)};")
            out.line(f"const {kind} {name} = {rest} % {blocks};")
            rest = f"{rest} / {blocks}"

    def _split(self, counted: list[AxisText]) -> str:
        """Take off the number of the block among those that share loops; return what is left."""
        context = self._context
        context.split = context.names.fresh("split")
        if not counted:
            context.split_count = "gridDim.x"
            context.out.line(f"const int {context.split} = blockIdx.x;")
            return "blockIdx.x"
        context.split_count = context.constant("kSplits", self._schedule.splits)
        context.out.line(f"const int {context.split} = blockIdx.x % {context.split_count};")
        return f"(blockIdx.x / {context.split_count})"

    def _swizzled(self, counted: list[AxisText]) -> None:
        """Walk the last two axes in bands of rows, so that blocks running together share operands in L2."""
        context, out, kind = self._context, self._context.out, self._context.index_type
        fast, slow = counted[-1], counted[-2]
        names, fresh = self._block_names, context.names.fresh
        band_rows = context.constant("kBand", self._schedule.swizzle)
        columns, rows = fresh(f"{fast.axis.name}_blocks"), fresh(f"{slow.axis.name}_blocks")
        out.line(
            "// Blocks walk the output in bands, so that those running together share their operands in L2."
        )
        out.line(f"const int {columns} = {block_count(fast, context.show)};")
        out.line(f"const int {rows} = {block_count(slow, context.show)};")
        plane, band, within, height = fresh("plane_block"), fresh("band"), fresh("within"), fresh("height")
        outer = counted[:-2]
        out.line(f"const int {plane} = blockIdx.x{f' % ({columns} * {rows})' if outer else ''};")
        out.line(f"const int {band} = {plane} / ({band_rows} * {columns});")
        out.line(f"const int {within} = {plane} % ({band_rows} * {columns});")
        out.line(f"const int {height} = min({rows} - {band} * {band_rows}, {band_rows});")
        out.line(f"const {kind} {names[slow.axis.name]} = {band} * {band_rows} + {within} % {height};")
        out.line(f"const {kind} {names[fast.axis.name]} = {within} / {height};")
        rest = f"blockIdx.x / ({columns} * {rows})"
        for number, text in enumerate(reversed(outer)):
            if number == len(outer) - 1:
                out.line(f"const {kind} {names[text.axis.name]} = {rest};")
                break
            blocks = fresh(f"{text.axis.name}_blocks")
            out.line(f"const int {blocks} = {block_count(text, context.show)};")
            out.line(f"const {kind} {names[text.axis.name]} = {rest} % {blocks};")
            rest = f"{rest} / {blocks}"

    def _coordinates(self) -> None:
        context, out = self._context, self._context.out
        partial: list[AxisText] = []
        for text in context.axes.values():
            low = context.show(text.axis.lower)
            block = self._block_names[text.axis.name]
            scaled = f"{block} * {text.tile}" if text.plan.tile > 1 else block
            first = low if is_single(text) else scaled if low == "0" else f"{low} + {scaled}"
            out.line(f"const {context.index_type} {text.start} = {first};")
            if text.plan.points == 1 and text.plan.tile > 1:
                out.line(f"const {context.index_type} {text.axis.name} = {text.start} + {text.offset};")
                length = value_of(subtract(text.axis.upper, text.axis.lower))
                if length is None or length % text.plan.tile:
                    partial.append(text)
        if not partial:
            return
        tests = context.in_range(partial)
        if not context.tiles and self._schedule.lanes == 1 and not self._schedule.shares_border:
            outside = [f"{t.axis.name} >= {context.show(t.axis.upper, 8)}" for t in partial]
            out.line(f"if ({' || '.join(outside)}) return;")
            return
        context.active = context.names.fresh("active")
        out.line(f"const bool {context.active} = {' && '.join(tests)};")
