"""A whole kernel and its launch from an algorithm and a schedule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import Call, Expression, Num, walk
from kernelskill.algorithm.lowering.context import Context, StagedTile, axis_texts
from kernelskill.algorithm.lowering.fill import Filler, tile_starts
from kernelskill.algorithm.lowering.inner import lower_points
from kernelskill.algorithm.lowering.kept import declare_kept
from kernelskill.algorithm.lowering.launching import Launch, argument_text, parameter_text
from kernelskill.algorithm.lowering.launching import LaunchFacts as LaunchFacts
from kernelskill.algorithm.lowering.mapping import Mapping
from kernelskill.algorithm.lowering.normal_roots import with_roots_of_normals
from kernelskill.algorithm.lowering.order import check_order
from kernelskill.algorithm.lowering.original import original_points
from kernelskill.algorithm.lowering.shared_memory import declare_memory, place_tiles
from kernelskill.algorithm.lowering.staging import plan_fill, plan_tile
from kernelskill.algorithm.lowering.stores import lower_stores
from kernelskill.algorithm.lowering.tensor import TensorBody
from kernelskill.algorithm.lowering.text import PACK, RESERVED, Names, Writer
from kernelskill.algorithm.lowering.tidying import tidied
from kernelskill.algorithm.lowering.widths import index_type_of
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.schedule import Schedule


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
    check_order(algorithm)
    taken = {*facts.identifiers, *(parameter.name for parameter in algorithm.parameters)}
    taken |= {axis.name for axis in algorithm.axes} | set(algorithm.ranges)
    taken |= {name for expression in algorithm.expressions for name in _called(expression)}
    names = Names(taken)
    algorithm, root = with_roots_of_normals(algorithm, names)
    context = Context(algorithm, schedule, names, Writer(), index_type_of(algorithm))
    if root:
        context.helpers["root of normal"] = root
    return _Emission(context, facts).run()


def _called(expression: Expression) -> Iterable[str]:
    """Return the names of functions and constants that an expression mentions."""
    for node in walk(expression):
        if isinstance(node, Call):
            yield node.function
        elif isinstance(node, Num):
            yield from re.findall(r"[A-Za-z_]\w*", node.text)


def _qualified(launch: str, names: Iterable[str], qualifier: str) -> str:
    """Return a launch with the constants of the kernel's namespace named in full."""
    if not qualifier:
        return launch
    for name in names:
        launch = re.sub(rf"(?<![\w:]){name}\b", f"{qualifier}{name}", launch)
    return launch


class _Emission:
    def __init__(self, context: Context, facts: LaunchFacts) -> None:
        self._context, self._facts = context, facts
        self._algorithm, self._schedule = context.algorithm, context.schedule
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
        shared = place_tiles(context)
        body = self._body()
        if context.aligned_flag and context.aligned_flag not in body:
            context.aligned_flag = context.pack = ""
        head = self._head()
        kernel = f"{head} {{\n{body}}}\n"
        launch = _qualified(Launch(context, self._facts).text(), context.constants, self._facts.qualifier)
        definitions = self._definitions(kernel + launch)
        kernel = tidied(kernel, self._reserved(definitions + launch))
        return Emitted(definitions, kernel, launch, shared, self._schedule.threads)

    def _reserved(self, outside: str) -> set[str]:
        """Return the names that tidying leaves alone: the user's, the language's, and what stands outside."""
        algorithm = self._algorithm
        own = {parameter.name for parameter in algorithm.parameters} | {name for _, name in algorithm.names}
        return own | set(re.findall(r"[A-Za-z_]\w*", outside)) | RESERVED | self._facts.identifiers

    def _original(self) -> Emitted:
        """Return the kernel with the user's mapping of points to threads."""
        context, algorithm = self._context, self._algorithm
        with context.out.block("@"), original_points(context):
            lower_stores(context)
        body = "".join(context.out.text.splitlines(keepends=True)[1:-1])
        parameters = ", ".join(parameter_text(parameter) for parameter in algorithm.parameters)
        kernel = f"__global__ void {algorithm.kernel}({parameters}) {{\n{body}}}\n"
        given = ", ".join(argument_text(p, self._facts) for p in algorithm.parameters)
        launch = f"{self._facts.qualifier}{algorithm.kernel}<<<{self._facts.configuration}>>>({given});"
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
        parameters = ", ".join(parameter_text(parameter) for parameter in self._algorithm.parameters)
        template = ""
        if self._context.aligned_flag:
            template = f"template <bool {self._context.aligned_flag}>\n"
        return f"{template}__global__ void __launch_bounds__({bounds}) {self._algorithm.kernel}({parameters})"

    def _body(self) -> str:
        context = self._context
        with context.out.block("@"):
            Mapping(context).write()
            declare_memory(context)
            for tile in context.tiles:
                filler = Filler(
                    context,
                    plan_fill(context, tile),
                    context.step_names["tid"],
                    tile_starts(context, tile, ""),
                )
                filler.declare()
            self._fill_once()
            if self._schedule.keep:
                declare_kept(context)
            if self._schedule.tensor:
                TensorBody(context).write()
            else:
                lower_points(context)
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
