"""Kernels whose blocks take tiles of a long array one after the other, and look back at the tiles before their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelskill.algorithm.expression import LOGICAL, Binary, Expression, Load, Select, Sym, loads
from kernelskill.algorithm.integers import add, constant
from kernelskill.algorithm.lowering.kernel import LaunchFacts
from kernelskill.algorithm.lowering.launching import argument_text, parameter_text, text_at_launch
from kernelskill.algorithm.lowering.text import Writer, bracketed
from kernelskill.algorithm.model import Algorithm, Parameter
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.rewriting import rebuild, substitute
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.neighbour_access import VECTORS, vector_of
from kernelskill.skills.scan_points import ELEMENT
from kernelskill.skills.shared_arrays import SIZES
from kernelskill.skills.tile_scans import TileScan
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.launches import LaunchSite
from kernelskill.source.syntax import Span
from kernelskill.source.unit import SourceUnit

_INDEX_KINDS = {"int": "int", "unsigned": "unsigned", "unsigned long long": "unsigned long long"}
"""Types that are kept for the numbers of elements; all others are widened to `long long`."""
_LONG = "unsigned long long"
_FIELDS = "xyzw"
_NAMES = (
    *("tile", "tile_start", "first", "is_wide", "value", "row", "item", "tiles", "tile_count"),
    *("bytes", "element"),
)


@dataclass(frozen=True)
class TilePlan:
    """What a kernel of tiles is made of; expressions are in the parameters of the algorithm."""

    algorithm: Algorithm
    arguments: Mapping[str, str] = field(repr=False)
    """Parameter -> text of its argument."""
    launch: LaunchSite
    """Whose stream is used, and whose kernel gives the name."""
    kind: str
    """Of what is added up."""
    count: Expression
    """How many elements there are."""
    expressions: tuple[Expression, ...]
    """What is made of each element."""
    first: Expression
    """The one of them that is made first, of every element."""
    buffers: tuple[str, ...]
    """Parameters that are stored to."""
    is_exclusive: bool


class TileKernel:
    """Writes such a kernel; what is loaded and stored is left to classes that derive from this one."""

    comment = ""

    def __init__(
        self, unit: SourceUnit, context: SkillContext, plan: TilePlan, threads: int, items: int
    ) -> None:
        """Choose names and shapes.

        Args:
            unit: The file.
            context: For names that are still free.
            plan: What to write.
            threads: Of a block.
            items: Elements a thread.

        Raises:
            SkillRefused: It needs a value that the launch does not give.
        """
        self._unit, self._context, self.plan = unit, context, plan
        self._taken: list[str] = []
        self.width = min(4, 16 // SIZES[plan.kind])
        self.rows = items // self.width
        wanted = ("next_tile", "publish_sum", "sum_before_tile", "scan_tile")
        names = [self.fresh(name) for name in wanted]
        self.scan = TileScan(plan.kind, threads, self.rows, self.width, plan.is_exclusive, *names)
        self.name = self.fresh(f"{plan.launch.kernel}_single_pass")
        self.index_kind = _INDEX_KINDS.get(plan.count.type, "long long")
        self.n = {name: self.fresh(name) for name in _NAMES}
        self.own = Sym(self.n["element"], self.index_kind)
        """The element's number as an expression."""
        self._parameters = self._used_parameters()
        direct = [load for load in _certain_loads(plan.first) if load.index == ELEMENT]
        self.direct = {load.buffer: load for load in direct if load.kind in VECTORS}
        """Arrays of which each element loads its own place, whatever else holds."""
        self.wide = {
            buffer: self.fresh(f"{buffer}_taken")
            for buffer, load in self.direct.items()
            if SIZES[load.kind] * self.width <= 16
        }
        """Those whose neighbours are loaded together -> the vector's name."""

    def fresh(self, wanted: str) -> str:
        """Return a name that nothing uses."""
        name = fresh_name(self._unit, self._context, wanted, self._taken)
        self._taken.append(name)
        return name

    def _used_parameters(self) -> list[Parameter]:
        plan = self.plan
        used = {*plan.buffers, *plan.count.symbols}
        for each in plan.expressions:
            used |= each.symbols | {load.buffer for load in loads(each)}
        used.discard(ELEMENT.name)
        found = [parameter for parameter in plan.algorithm.parameters if parameter.name in used]
        if len(found) < len(used) or any(plan.algorithm.parameter(name).view for name in plan.buffers):
            raise SkillRefused("a value that the kernel needs is not one of its parameters")
        return found

    # the kernel

    def code(self) -> str:
        """Return the device functions and the kernel."""
        n, out, scan = self.n, Writer(), self.scan
        listed = [*(parameter_text(parameter) for parameter in self._parameters), *self.more_parameters()]
        listed.append(f"{_LONG} *{n['tiles']}")
        per_warp = 32 * self.rows * self.width
        out.line(f"// {self.comment}")
        out.line(f"__global__ void __launch_bounds__({scan.threads}) {self.name}({', '.join(listed)})")
        with out.block(""):
            out.line(f"const unsigned {n['tile']} = {scan.next_tile}({n['tiles']});")
            wide = f"({self.index_kind}){n['tile']}" if "long" in self.index_kind else n["tile"]
            out.line(f"const {self.index_kind} {n['tile_start']} = {wide} * {scan.elements};")
            out.line(f"// A warp takes {per_warp} neighbours, in rows of {self.width} for each lane.")
            place = f"threadIdx.x / 32 * {per_warp} + threadIdx.x % 32 * {self.width}"
            out.line(f"const {self.index_kind} {n['first']} = {n['tile_start']} + {place};")
            out.line(f"const bool {n['is_wide']} = {self._wide_test()};")
            self.declare(out)
            out.line(f"{scan.kind} {n['value']}[{self.rows}][{self.width}];")
            with out.block(f"if ({n['is_wide']})"), self.each_row(out):
                self._load_vectors(out)
                self.load_row(out)
            with out.block("else"):
                self.each(out, self.load_one())
            out.line(f"{scan.scan}({n['value']}, {n['tiles']} + 1, {n['tile']});")
            self.store(out)
        return f"{scan.text()}\n{_tidied(out.text)}".rstrip()

    def more_parameters(self) -> list[str]:
        """Return the declarations of further parameters."""
        return []

    def declare(self, out: Writer) -> None:
        """Write declarations above the loads."""

    def load_row(self, out: Writer) -> None:
        """Write what makes a row's values of vectors."""
        raise NotImplementedError

    def load_one(self) -> list[str]:
        """Return what makes the value of an element, which may lie beyond the last one."""
        raise NotImplementedError

    def store(self, out: Writer) -> None:
        """Write what is done with the values."""
        raise NotImplementedError

    @contextmanager
    def each_row(self, out: Writer) -> Iterator[None]:
        """Put what is written inside into a loop over rows; it begins with the number of a row's first element."""
        row = self.n["row"]
        with out.unrolled(f"for (int {row} = 0; {row} < {self.rows}; ++{row})"):
            self._index_line(out, "")
            yield

    def each(self, out: Writer, lines: Sequence[str]) -> None:
        """Write lines for every element that a thread takes."""
        row, item = self.n["row"], self.n["item"]
        with (
            out.unrolled(f"for (int {row} = 0; {row} < {self.rows}; ++{row})"),
            out.unrolled(f"for (int {item} = 0; {item} < {self.width}; ++{item})"),
        ):
            self._index_line(out, f" + {item}")
            out.lines(lines)

    def _index_line(self, out: Writer, more: str) -> None:
        n, per_row = self.n, 32 * self.width
        start = f"{n['first']} + {n['row']} * {per_row}{more}"
        out.line(f"const {self.index_kind} {n['element']} = {start};")

    def _load_vectors(self, out: Writer) -> None:
        for buffer, name in self.wide.items():
            vector, _ = vector_of(self.direct[buffer].kind, self.width)
            address = f"&{buffer}[{self.n['element']}]"
            out.line(f"const {vector} {name} = *reinterpret_cast<const {vector} *>({address});")

    def aligned(self) -> dict[str, int]:
        """Return the arrays that are moved as vectors, with the alignment in bytes that these need."""
        return {buffer: SIZES[self.direct[buffer].kind] * self.width for buffer in self.wide}

    def _wide_test(self) -> str:
        """Return whether all elements of the tile are there, and where vectors may lie."""
        test = f"{self.text(self.plan.count, 9)} - {self.n['tile_start']} >= {self.scan.elements}"
        parts = [f"reinterpret_cast<size_t>({name}) % {by} == 0" for name, by in self.aligned().items()]
        return " && ".join([test, *parts])

    # expressions

    def text(self, expression: Expression, context: int = 0) -> str:
        """Return an expression of the current element as C text; in brackets where the context needs them."""
        return show(substitute(expression, {ELEMENT.name: self.own}), None, context)

    def in_row(self, expression: Expression, item: int) -> str:
        """Return an expression of one of the elements whose vectors are loaded."""

        def change(node: Expression) -> Expression | None:
            if isinstance(node, Load) and node.index == ELEMENT and node.buffer in self.wide:
                return Sym(f"{self.wide[node.buffer]}.{_FIELDS[item]}", node.kind)
            return None

        place = add(self.own, constant(item))
        return show(substitute(rebuild(expression, change), {ELEMENT.name: place}))

    def held(self, expression: Expression, names: Mapping[str, str], place: str = "") -> str:
        """Return an expression of the current element, of arrays that are held in registers under other names.

        Args:
            expression: Of elements.
            names: Array -> its registers.
            place: Where the element's are among them; empty for those of the current row and item.
        """
        place = place or f"[{self.n['row']}][{self.n['item']}]"

        def change(node: Expression) -> Expression | None:
            if isinstance(node, Load) and node.index == ELEMENT and node.buffer in names:
                return Sym(f"{names[node.buffer]}{place}", node.kind)
            return None

        return self.text(rebuild(expression, change))

    def inside(self) -> str:
        """Return the test that an element is there."""
        return f"{self.n['element']} < {self.text(self.plan.count, 8)}"

    # the launcher

    def launch_lines(self, more: Sequence[str] = ()) -> list[str]:
        """Return the statements that launch the kernel.

        Args:
            more: Arguments of the further parameters.
        """
        n, plan, scan = self.n, self.plan, self.scan
        facts = LaunchFacts(arguments=plan.arguments)
        stream = plan.launch.stream.text if plan.launch.stream is not None else "0"
        given = ", ".join([*(argument_text(p, facts) for p in self._parameters), *more, n["tiles"]])
        words = f"{scan.words}ull * " if scan.words > 1 else ""
        count = text_at_launch(plan.count, facts, 9)
        tiles = f"(unsigned)(({count} - 1) / {scan.elements} + 1)"
        shape = f"{n['tile_count']}, {scan.threads}" + (f", 0, {stream}" if stream != "0" else "")
        some = bracketed(text_at_launch(plan.count, facts))
        return [
            f"const unsigned {n['tile_count']} = {some} > 0 ? {tiles} : 1;",
            "// How many tiles are taken, and how far each of them is.",
            f"{_LONG} *{n['tiles']} = nullptr;",
            f"const size_t {n['bytes']} = ({words}{n['tile_count']} + 1) * sizeof({_LONG});",
            f"cudaMallocAsync(&{n['tiles']}, {n['bytes']}, {stream});",
            f"cudaMemsetAsync({n['tiles']}, 0, {n['bytes']}, {stream});",
            f"{self._qualifier()}{self.name}<<<{shape}>>>({given});",
            f"cudaFreeAsync({n['tiles']}, {stream});",
        ]

    def _qualifier(self) -> str:
        """Return the namespaces that stand before the kernel's name at its launch."""
        launch = self.plan.launch
        callee = self._unit.text_of(Span(launch.span.start, launch.configuration_span.start))
        scope, colons, _ = callee.partition("<")[0].rpartition("::")
        return f"{scope.strip()}{colons}"


def _certain_loads(expression: Expression) -> list[Load]:
    """Return the loads that are made whatever conditions hold."""
    if isinstance(expression, Select):
        return _certain_loads(expression.condition)
    if isinstance(expression, Binary) and expression.op in LOGICAL:
        return _certain_loads(expression.left)
    own = [expression] if isinstance(expression, Load) else []
    return own + [load for child in expression.children for load in _certain_loads(child)]


def _tidied(text: str) -> str:
    """Return a text with `else` behind the brace before it, and directives at the start of their lines."""
    text = re.sub(r"\}\n\s*else \{", "} else {", text)
    return re.sub(r"^ +#", "#", text, flags=re.MULTILINE)
