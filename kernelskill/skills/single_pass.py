"""Write a prefix sum over three launches as one that reads and writes each element once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelskill.algorithm.expression import Expression, Load, Sym, loads
from kernelskill.algorithm.integers import add, constant
from kernelskill.algorithm.lowering.kernel import LaunchFacts
from kernelskill.algorithm.lowering.launching import argument_text, parameter_text, text_at_launch
from kernelskill.algorithm.lowering.text import Writer, bracketed
from kernelskill.algorithm.model import Parameter
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.rewriting import rebuild, substitute
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.launch_pairs import deletion_span, only_launched_by, statement_of
from kernelskill.skills.neighbour_access import VECTORS, vector_of
from kernelskill.skills.scan_chains import ScanChain
from kernelskill.skills.scan_points import ELEMENT
from kernelskill.skills.shared_arrays import SIZES
from kernelskill.skills.tile_scans import TileScan
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Span, span_of
from kernelskill.source.unit import SourceUnit

_INDEX_KINDS = {"int": "int", "unsigned": "unsigned", "unsigned long long": "unsigned long long"}
"""Types that are kept for the numbers of elements; all others are widened to `long long`."""
_LONG = "unsigned long long"
_FIELDS = "xyzw"


def write_single_pass(
    unit: SourceUnit, chain: ScanChain, context: SkillContext, threads: int, items: int
) -> Rewrite:
    """Return the edits that put one kernel in the place of three.

    Args:
        unit: The file.
        chain: What it takes.
        context: For names that are still free.
        threads: Of a block.
        items: Elements a thread.

    Raises:
        SkillRefused: The launcher is of a kind that can't be changed so.
    """
    writer = _SinglePass(unit, chain, context, threads, items)
    code = f"{writer.functions()}\n{writer.kernel()}".rstrip()
    return Rewrite(edits=_edits(unit, chain, context, code, writer.launch()).edits)


def _edits(unit: SourceUnit, chain: ScanChain, context: SkillContext, code: str, launch: str) -> EditSet:
    edits = EditSet(unit)
    first = unit.kernel(chain.launches[0].kernel)
    kernels = {launch.kernel: unit.kernel(launch.kernel) for launch in chain.launches}
    for kernel in kernels.values():
        if kernel is None or first is None:
            raise SkillRefused("a kernel of the chain is not defined in this file")
        gone = only_launched_by(unit, kernel, chain.launches, context)
        if kernel.span == first.span:
            edits.replace(kernel.span, code) if gone else edits.insert_after(kernel.span, f"\n\n{code}")
        elif gone:
            edits.replace(_whole(unit, kernel.span), "")
    *others, last = (statement_of(launch) for launch in chain.launches)
    for statement in others:
        assert statement is not None
        edits.replace(deletion_span(unit, span_of(statement)), "")
    if last is None:
        raise SkillRefused("the last launch is part of another statement")
    indent = unit.indent_of(last)
    edits.replace(last, launch.replace("\n", f"\n{indent}"))
    return edits


@dataclass(frozen=True)
class _Wide:
    """An array whose neighbours are loaded together."""

    buffer: str
    kind: str
    name: str = field(compare=False)


class _SinglePass:
    def __init__(
        self, unit: SourceUnit, chain: ScanChain, context: SkillContext, threads: int, items: int
    ) -> None:
        self._unit, self._chain, self._context = unit, chain, context
        self._taken: list[str] = []
        kind = chain.scan.kind
        self._width = min(4, 16 // SIZES[kind])
        self._rows = items // self._width
        self._scan = TileScan(
            kind,
            threads,
            self._rows,
            self._width,
            chain.is_exclusive,
            *(self._fresh(name) for name in ("next_tile", "publish_sum", "sum_before_tile", "scan_tile")),
        )
        self._name = self._fresh(f"{chain.launches[0].kernel}_single_pass")
        self._index_kind = _INDEX_KINDS.get(chain.count.type, "long long")
        self._index = self._fresh("element")
        names = (
            "tile",
            "tile_start",
            "first",
            "is_wide",
            "value",
            "row",
            "item",
            "tiles",
            "tile_count",
            "bytes",
        )
        self._n = {name: self._fresh(name) for name in names}
        self._parameters = self._used_parameters()
        direct = [load for load in loads(chain.element) if load.index == ELEMENT]
        self._wide = [
            _Wide(load.buffer, load.kind, self._fresh(f"{load.buffer}_taken"))
            for load in dict.fromkeys(direct)
            if self._is_wide(load.kind)
        ]

    def _fresh(self, wanted: str) -> str:
        name = fresh_name(self._unit, self._context, wanted, self._taken)
        self._taken.append(name)
        return name

    def _is_wide(self, kind: str) -> bool:
        return kind in VECTORS and SIZES.get(kind, 16) * self._width <= 16

    def _used_parameters(self) -> list[Parameter]:
        chain, algorithm = self._chain, self._chain.before.algorithm
        used = {chain.out, *chain.element.symbols, *chain.count.symbols} - {ELEMENT.name}
        used |= {load.buffer for load in loads(chain.element)}
        found = [parameter for parameter in algorithm.parameters if parameter.name in used]
        if len(found) < len(used) or algorithm.parameter(chain.out).view:
            raise SkillRefused("a value that the kernel needs is not one of its parameters")
        return found

    def functions(self) -> str:
        """Return the device functions."""
        return self._scan.text()

    def kernel(self) -> str:
        """Return the kernel."""
        n, out, scan = self._n, Writer(), self._scan
        listed = ", ".join(
            [*(parameter_text(parameter) for parameter in self._parameters), f"{_LONG} *{n['tiles']}"]
        )
        out.line(
            "// Takes the whole prefix sum: a block scans a tile, and adds what the tiles before add up to."
        )
        per_warp, per_row = 32 * self._rows * self._width, 32 * self._width
        out.line(f"__global__ void __launch_bounds__({scan.threads}) {self._name}({listed})")
        with out.block(""):
            out.line(f"const unsigned {n['tile']} = {scan.next_tile}({n['tiles']});")
            wide = f"({self._index_kind}){n['tile']}" if "long" in self._index_kind else n["tile"]
            out.line(f"const {self._index_kind} {n['tile_start']} = {wide} * {scan.elements};")
            out.line(f"// A warp takes {per_warp} neighbours, in rows of {self._width} for each lane.")
            place = f"threadIdx.x / 32 * {per_warp} + threadIdx.x % 32 * {self._width}"
            out.line(f"const {self._index_kind} {n['first']} = {n['tile_start']} + {place};")
            out.line(f"const bool {n['is_wide']} = {self._wide_test()};")
            out.line(f"{scan.kind} {n['value']}[{self._rows}][{self._width}];")
            with out.block(f"if ({n['is_wide']})"), out.unrolled(self._row_head()):
                self._index_line(out, per_row, "")
                self._load_row(out)
            with out.block("else"), out.unrolled(self._row_head()):
                self._each(out, per_row, self._load_one())
            out.line(f"{scan.scan}({n['value']}, {n['tiles']} + 1, {n['tile']});")
            with out.block(f"if ({n['is_wide']})"), out.unrolled(self._row_head()):
                self._index_line(out, per_row, "")
                self._store_row(out)
            with out.block("else"), out.unrolled(self._row_head()):
                self._each(out, per_row, self._store_one())
        return _tidied(out.text)

    def _row_head(self) -> str:
        row = self._n["row"]
        return f"for (int {row} = 0; {row} < {self._rows}; ++{row})"

    def _index_line(self, out: Writer, per_row: int, more: str) -> None:
        n = self._n
        out.line(f"const {self._index_kind} {self._index} = {n['first']} + {n['row']} * {per_row}{more};")

    def _each(self, out: Writer, per_row: int, lines: Sequence[str]) -> None:
        item = self._n["item"]
        with out.unrolled(f"for (int {item} = 0; {item} < {self._width}; ++{item})"):
            self._index_line(out, per_row, f" + {item}")
            out.lines(lines)

    def _wide_test(self) -> str:
        """Return whether all elements of the tile are there, and where vectors may lie."""
        n, chain = self._n, self._chain
        test = f"{self._text(chain.count, 9)} - {n['tile_start']} >= {self._scan.elements}"
        aligned = {wide.buffer: SIZES[wide.kind] * self._width for wide in self._wide}
        aligned[chain.out] = SIZES[self._scan.kind] * self._width
        parts = [f"reinterpret_cast<size_t>({name}) % {by} == 0" for name, by in aligned.items()]
        return " && ".join([test, *parts])

    # elements

    def _text(self, expression: Expression, context: int = 0) -> str:
        return show(expression, None, context)

    def _at(self, place: Expression) -> Expression:
        """Return what an element adds, with its number given."""
        return substitute(self._chain.element, {ELEMENT.name: place})

    @property
    def _own(self) -> Sym:
        return Sym(self._index, self._index_kind)

    def _load_row(self, out: Writer) -> None:
        n = self._n
        for wide in self._wide:
            vector, _ = vector_of(wide.kind, self._width)
            address = f"&{wide.buffer}[{self._index}]"
            out.line(f"const {vector} {wide.name} = *reinterpret_cast<const {vector} *>({address});")
        taken = {wide.buffer: wide for wide in self._wide}
        for item in range(self._width):
            place = add(self._own, constant(item))

            def change(node: Expression, item: int = item) -> Expression | None:
                if isinstance(node, Load) and node.index == ELEMENT and node.buffer in taken:
                    return Sym(f"{taken[node.buffer].name}.{_FIELDS[item]}", node.kind)
                return None

            value = substitute(rebuild(self._chain.element, change), {ELEMENT.name: place})
            out.line(f"{n['value']}[{n['row']}][{item}] = {self._text(value)};")

    def _load_one(self) -> list[str]:
        n = self._n
        value, count = self._text(self._at(self._own), 1), self._text(self._chain.count, 8)
        return [f"{n['value']}[{n['row']}][{n['item']}] = {self._index} < {count} ? {value} : 0;"]

    def _store_row(self, out: Writer) -> None:
        n, (vector, _) = self._n, vector_of(self._scan.kind, self._width)
        values = ", ".join(f"{n['value']}[{n['row']}][{item}]" for item in range(self._width))
        target = f"*reinterpret_cast<{vector} *>(&{self._chain.out}[{self._index}])"
        out.line(f"{target} = make_{vector}({values});")

    def _store_one(self) -> list[str]:
        n, count = self._n, self._text(self._chain.count, 8)
        return [
            f"if ({self._index} < {count})",
            f"    {self._chain.out}[{self._index}] = {n['value']}[{n['row']}][{n['item']}];",
        ]

    # the launcher

    def launch(self) -> str:
        """Return the statement that launches the kernel."""
        n, chain, scan = self._n, self._chain, self._scan
        facts = LaunchFacts(arguments=chain.arguments)
        count, elements = text_at_launch(chain.count, facts, 9), scan.elements
        stream = chain.launches[0].stream.text if chain.launches[0].stream is not None else "0"
        given = ", ".join([*(argument_text(p, facts) for p in self._parameters), n["tiles"]])
        words = f"{scan.words}ull * " if scan.words > 1 else ""
        out = Writer()
        with out.block(""):
            test = bracketed(text_at_launch(chain.count, facts))
            tiles = f"{test} > 0 ? (unsigned)(({count} - 1) / {elements} + 1) : 1"
            out.line(f"const unsigned {n['tile_count']} = {tiles};")
            out.line("// How many tiles are taken, and how far each of them is.")
            out.line(f"{_LONG} *{n['tiles']} = nullptr;")
            size = f"({words}{n['tile_count']} + 1) * sizeof({_LONG})"
            out.line(f"const size_t {n['bytes']} = {size};")
            out.line(f"cudaMallocAsync(&{n['tiles']}, {n['bytes']}, {stream});")
            out.line(f"cudaMemsetAsync({n['tiles']}, 0, {n['bytes']}, {stream});")
            shape = f"{n['tile_count']}, {scan.threads}" + (f", 0, {stream}" if stream != "0" else "")
            out.line(f"{self._name}<<<{shape}>>>({given});")
            out.line(f"cudaFreeAsync({n['tiles']}, {stream});")
        return out.text.rstrip()


def _tidied(text: str) -> str:
    """Return a text with `else` behind the brace before it, and directives at the start of their lines."""
    text = re.sub(r"\}\n\s*else \{", "} else {", text)
    return re.sub(r"^ +#", "#", text, flags=re.MULTILINE)


def _whole(unit: SourceUnit, span: Span) -> Span:
    """Return the range of a kernel with the empty lines behind it."""
    found = deletion_span(unit, span)
    empty = re.match(rb"(?:[ \t]*\r?\n)*", unit.data[found.end :])
    return Span(found.start, found.end + (empty.end() if empty is not None else 0))
