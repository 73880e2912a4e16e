"""A whole kernel and its launch from an algorithm and a schedule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import Call, Expression, Num, Sym, walk
from kernelskill.algorithm.integers import subtract, value_of
from kernelskill.algorithm.lowering.context import AxisText, Context, StagedTile, axis_texts, index_type_of
from kernelskill.algorithm.lowering.fill import Filler, tile_starts
from kernelskill.algorithm.lowering.original import original_points
from kernelskill.algorithm.lowering.reductions import hoistable
from kernelskill.algorithm.lowering.staging import plan_fill, plan_tile
from kernelskill.algorithm.lowering.stores import lower_stores
from kernelskill.algorithm.lowering.tensor import TensorBody
from kernelskill.algorithm.lowering.text import PACK, Names, Writer, bracketed
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.schedule import Schedule
from kernelskill.algorithm.types import size_of

SHARED_BYTES = 48 * 1024
"""Static shared memory that every block may have."""


@dataclass(frozen=True)
class LaunchFacts:
    """What the launch statement of the user's says."""

    arguments: Mapping[str, str]
    """Parameter -> text of its argument."""
    stream: str = ""
    configuration: str = ""
    """What stands between `<<<` and `>>>`; kept where the user's own mapping is."""
    identifiers: frozenset[str] = frozenset()
    """Every identifier of the file: none of them is used for anything new."""


@dataclass(frozen=True)
class Emitted:
    """The text of a scheduled kernel."""

    definitions: str
    """Constants, types and device functions that stand before the kernel."""
    kernel: str
    launch: str
    """A statement that replaces the user's launch statement."""
    shared_bytes: int
    threads: int


def emit(algorithm: Algorithm, schedule: Schedule, facts: LaunchFacts) -> Emitted:
    """Return the CUDA text of an algorithm under a schedule.

    Raises:
        IllegalMove: The schedule does not fit the algorithm.
    """
    taken = {*facts.identifiers, *(parameter.name for parameter in algorithm.parameters)}
    taken |= {axis.name for axis in algorithm.axes} | set(algorithm.ranges)
    taken |= {name for expression in algorithm.expressions for name in _called(expression)}
    context = Context(algorithm, schedule, Names(taken), Writer(), index_type_of(algorithm))
    return _Emission(context, facts).run()


def _called(expression: Expression) -> Iterable[str]:
    """Return the names of functions and constants that an expression mentions."""
    for node in walk(expression):
        if isinstance(node, Call):
            yield node.function
        elif isinstance(node, Num):
            yield from re.findall(r"[A-Za-z_]\w*", node.text)


class _Emission:
    def __init__(self, context: Context, facts: LaunchFacts) -> None:
        self._context, self._facts = context, facts
        self._algorithm, self._schedule = context.algorithm, context.schedule
        self._block_names: dict[str, str] = {}
        self._has_wide = (
            self._schedule.lane_vector > 1
            or self._schedule.tensor
            or any(p.vector > 1 for p in self._schedule.axes)
        )

    def run(self) -> Emitted:
        context = self._context
        context.axes = axis_texts(self._algorithm, self._schedule, context)
        if self._schedule.is_original:
            return self._original()
        context.block_threads = context.constant("kThreads", self._schedule.threads)
        if self._has_wide:
            context.pack = context.names.fresh("Pack")
            context.aligned_flag = context.names.fresh("kAligned")
        context.tiles = [
            self._named(plan_tile(self._algorithm, self._schedule, s)) for s in self._schedule.staged
        ]
        shared = _shared_bytes(context.tiles, twice=self._schedule.copy == "double")
        shared += self._schedule.threads // 32 * 1024 if self._schedule.tensor else 0
        if shared > SHARED_BYTES:
            raise IllegalMove(f"the tiles need {shared} bytes of shared memory, {SHARED_BYTES} are there")
        body = self._body()
        head = self._head()
        kernel = f"{head} {{\n{body}}}\n"
        launch = self._launch()
        return Emitted(self._definitions(kernel + launch), kernel, launch, shared, self._schedule.threads)

    def _original(self) -> Emitted:
        """Return the kernel with the user's mapping of points to threads."""
        context, algorithm = self._context, self._algorithm
        with context.out.block("@"), original_points(context):
            lower_stores(context)
        body = "".join(context.out.text.splitlines(keepends=True)[1:-1])
        parameters = ", ".join(parameter.text for parameter in algorithm.parameters)
        kernel = f"__global__ void {algorithm.kernel}({parameters}) {{\n{body}}}\n"
        given = ", ".join(self._facts.arguments[p.name] for p in algorithm.parameters)
        launch = f"{algorithm.kernel}<<<{self._facts.configuration}>>>({given});"
        return Emitted(self._definitions(kernel), kernel, launch, 0, 0)

    def _named(self, tile: StagedTile) -> StagedTile:
        names = self._context.names
        following = (
            "" if self._schedule.copy == "direct" or not tile.loop else names.fresh(f"{tile.buffer}_next")
        )
        return replace(tile, name=names.fresh(f"{tile.buffer}_tile"), next=following)

    # the kernel

    def _head(self) -> str:
        bounds = self._context.block_threads
        if self._schedule.min_blocks:
            bounds += f", {self._schedule.min_blocks}"
        parameters = ", ".join(parameter.text for parameter in self._algorithm.parameters)
        template = ""
        if self._context.aligned_flag:
            template = f"template <bool {self._context.aligned_flag}>\n"
        return f"{template}__global__ void __launch_bounds__({bounds}) {self._algorithm.kernel}({parameters})"

    def _body(self) -> str:
        context = self._context
        with context.out.block("@"):
            self._threads()
            self._blocks()
            self._coordinates()
            for tile in context.tiles:
                filler = Filler(
                    context,
                    plan_fill(context, tile),
                    context.step_names["tid"],
                    tile_starts(context, tile, ""),
                )
                filler.declare()
            self._fill_once()
            if self._schedule.tensor:
                TensorBody(context).write()
            else:
                lower_stores(context)
        return "".join(context.out.text.splitlines(keepends=True)[1:-1])

    def _fill_once(self) -> None:
        """Fill the tiles that are not followed along a loop."""
        context = self._context
        once = [tile for tile in context.tiles if not tile.loop]
        for tile in once:
            Filler(
                context, plan_fill(context, tile), context.step_names["tid"], tile_starts(context, tile, "")
            ).direct()
        if once:
            context.out.line("__syncthreads();")

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
            parts.append(
                (context.lane, self._schedule.lanes, context.constant("kLanes", self._schedule.lanes))
            )
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
            rest = self._split([text for text in texts if not self._is_single(text)])
        counted = [text for text in texts if not self._is_single(text)]
        if self._schedule.swizzle and len(counted) >= 2:
            self._swizzled(counted)
            return
        for number, text in enumerate(reversed(counted)):
            name = self._block_names[text.axis.name]
            if number == len(counted) - 1:
                out.line(f"const {kind} {name} = {rest};")
                break
            blocks = context.names.fresh(f"{text.axis.name}_blocks")
            out.line(f"const int {blocks} = {self._block_count(text, context.show)};")
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
        out.line(f"const int {columns} = {self._block_count(fast, context.show)};")
        out.line(f"const int {rows} = {self._block_count(slow, context.show)};")
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
            out.line(f"const int {blocks} = {self._block_count(text, context.show)};")
            out.line(f"const {kind} {names[text.axis.name]} = {rest} % {blocks};")
            rest = f"{rest} / {blocks}"

    def _is_single(self, text: AxisText) -> bool:
        """Whether one block always covers the axis."""
        length = value_of(subtract(text.axis.upper, text.axis.lower))
        return length is not None and length <= text.plan.tile

    def _coordinates(self) -> None:
        context, out = self._context, self._context.out
        partial: list[AxisText] = []
        for text in context.axes.values():
            low = context.show(text.axis.lower)
            block = self._block_names[text.axis.name]
            scaled = f"{block} * {text.tile}" if text.plan.tile > 1 else block
            first = low if self._is_single(text) else scaled if low == "0" else f"{low} + {scaled}"
            out.line(f"const {context.index_type} {text.start} = {first};")
            if text.plan.points == 1 and text.plan.tile > 1:
                out.line(f"const {context.index_type} {text.axis.name} = {text.start} + {text.offset};")
                length = value_of(subtract(text.axis.upper, text.axis.lower))
                if length is None or length % text.plan.tile:
                    partial.append(text)
        if not partial:
            return
        tests = context.in_range(partial)
        if not context.tiles and self._schedule.lanes == 1:
            outside = [f"{t.axis.name} >= {context.show(t.axis.upper, 8)}" for t in partial]
            out.line(f"if ({' || '.join(outside)}) return;")
            return
        context.active = context.names.fresh("active")
        out.line(f"const bool {context.active} = {' && '.join(tests)};")

    # around the kernel

    def _definitions(self, text: str) -> str:
        """Return what the kernel and its launch need, unused constants left out."""
        context = self._context
        parts: list[str] = ["#include <mma.h>\n"] if self._schedule.tensor else []
        used = set(re.findall(r"\w+", text))
        listed = [f"constexpr int {n} = {value};" for n, value in context.constants.items() if n in used]
        if listed:
            parts.append("\n".join(listed) + "\n")
        if context.pack:
            parts.append(PACK.replace("{name}", context.pack).replace("{{", "{").replace("}}", "}"))
        parts += context.helpers.values()
        return "\n".join(parts)

    def _block_count(self, text: AxisText, printed: Callable[[Expression, int], str]) -> str:
        """Return the number of blocks along an axis; `printed` gives the text of its range."""
        length = subtract(text.axis.upper, text.axis.lower)
        if text.plan.tile == 1:
            return printed(length, 10)
        return f"({printed(length, 9)} + {text.tile} - 1) / {text.tile}"

    def _host(self, expression: Expression, context: int = 0) -> str:
        """Return the text of a value at the launch, where parameters are called otherwise."""
        arguments = self._facts.arguments

        def leaf(node: Expression) -> str | None:
            if isinstance(node, Sym) and node.name in arguments:
                return bracketed(arguments[node.name])
            return None

        return show(expression, leaf, context)

    def _launch(self) -> str:
        context, out = self._context, Writer()
        names = Names({*self._facts.identifiers, *context.constants})
        wide = context.index_type == "long long"
        counts = []
        with out.block(""):
            for text in context.axes.values():
                if self._is_single(text):
                    continue
                name = names.fresh(f"{text.axis.name}_blocks")
                out.line(f"const {context.index_type} {name} = {self._block_count(text, self._host)};")
                counts.append(name)
            if self._schedule.splits:
                counts.append(self._split_blocks(out, names, counts))
            blocks = " * ".join(counts) or "1"
            blocks = f"static_cast<unsigned>({blocks})" if wide else blocks
            configuration = f"{blocks}, {context.block_threads}"
            if self._facts.stream:
                configuration += f", 0, {self._facts.stream}"
            given = ", ".join(self._facts.arguments[p.name] for p in self._algorithm.parameters)
            kernel = self._algorithm.kernel
            if not context.aligned_flag:
                out.line(f"{kernel}<<<{configuration}>>>({given});")
            else:
                test = names.fresh("aligned")
                out.line(f"const bool {test} = {self._aligned_test()};")
                with out.block(f"if ({test})"):
                    out.line(f"{kernel}<true><<<{configuration}>>>({given});")
                with out.block("else"):
                    out.line(f"{kernel}<false><<<{configuration}>>>({given});")
        return out.text.rstrip("\n")

    def _split_blocks(self, out: Writer, names: Names, counts: list[str]) -> str:
        """Return how many blocks share each point's loops: no more than have something to do."""
        context, schedule = self._context, self._schedule
        limit = context.constant("kSplits", schedule.splits)
        if counts:
            return limit
        name = names.fresh("splits")
        loop = next(r.loops[-1] for e in self._algorithm.expressions for r in hoistable(e))
        length = self._host(subtract(loop.upper, loop.lower), 9)
        steps = f"{context.constant('kLanes', schedule.lanes)}"
        steps = f"({steps} * {schedule.lane_vector})" if schedule.lane_vector > 1 else steps
        kind = context.index_type
        out.line(f"const {kind} {name}_needed = ({length} + {steps} - 1) / {steps};")
        out.line(
            f"const {kind} {name} = {name}_needed < 1 ? 1 : {name}_needed < {limit} ? {name}_needed : {limit};"
        )
        return name

    def _aligned_test(self) -> str:
        context = self._context
        tests = [
            f"{self._host(value, 10)} % {divisor} == 0"
            for value, divisor in sorted(context.divisible.items(), key=lambda item: item[0].key)
            if value_of(value) is None
        ]
        if any(value_of(v) is not None and (value_of(v) or 0) % d for v, d in context.divisible.items()):
            return "false"
        by_bytes: dict[int, list[str]] = {}
        for buffer, alignment in sorted(context.aligned.items()):
            by_bytes.setdefault(alignment, []).append(bracketed(self._facts.arguments[buffer]))
        for alignment, pointers in sorted(by_bytes.items()):
            joined = " | ".join(f"reinterpret_cast<size_t>({pointer})" for pointer in pointers)
            tests.append(f"({joined}) % {alignment} == 0")
        return " && ".join(tests) or "true"


def _shared_bytes(tiles: Iterable[StagedTile], *, twice: bool) -> int:
    total = 0
    for tile in tiles:
        elements = tile.sizes[tile.order[-1]] + tile.pad
        for dimension in tile.order[:-1]:
            elements *= tile.sizes[dimension]
        total += elements * size_of(tile.kind) * (2 if twice and tile.loop else 1)
    return total
