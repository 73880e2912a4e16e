"""A running sum of one thread, taken apart: sums of stretches, their running sum, and the loop again for each stretch."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelskill.schema.candidate import Edit
from kernelskill.skills.device_code import fresh_name, place_before, units_of
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.parsed_files import parsed
from kernelskill.skills.row_emission import Group, RowWriter
from kernelskill.skills.row_loops import SharedLoop
from kernelskill.skills.row_program import RowProgram, read_row_program
from kernelskill.skills.row_scans import Scan
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet, apply_to_text
from kernelskill.source.loops import Loop
from kernelskill.source.syntax import Node, Span, named, walk
from kernelskill.source.unit import SourceUnit

_LEAST = 1024
"""Turns below which one block is as good."""
_THREADS = 256
_BEFORE_THREADS = 1024
_READS = frozenset(
    {"subscript_expression", "pointer_expression", "call_expression", "field_expression", "update_expression"}
)
_READS |= {"assignment_expression"}


@dataclass(frozen=True, eq=False)
class ScanLoop:
    """A kernel whose only thread takes one running sum."""

    program: RowProgram
    entry: KernelLaunch
    shared: SharedLoop
    scan: Scan
    before: tuple[Node, ...]
    """Declarations in front of the loop."""
    after: tuple[Node, ...]
    """Statements behind it."""
    index: str
    """Type of the loop's variable."""

    @property
    def kernel(self) -> KernelDef:
        return self.program.kernel


def read_scan_loop(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> ScanLoop:
    """Return the running sum of a kernel of one thread.

    Raises:
        SkillRefused: It is another kind of kernel, or blocks could not take stretches of its loop.
    """
    program = read_row_program(unit, kernel, context)
    if program.guard is not None or len(program.loops) != 1 or program.loops[0].scan is None:
        raise SkillRefused("it is not one running sum of one thread")
    shared = program.loops[0]
    scan, loop = shared.scan, shared.loop
    assert scan is not None
    _check_loop(shared)
    statements = [node for node in named(kernel.body) if node.type != "comment"] if kernel.body else []
    if loop.node not in statements:
        raise SkillRefused("its loop stands inside another statement")
    position = statements.index(loop.node)
    before, after = tuple(statements[:position]), tuple(statements[position + 1 :])
    _check_values(unit, loop, before)
    entry = _only_launch(unit, program, context)
    index = getattr(loop.declared, "base_type", "int")
    return ScanLoop(program, entry, shared, scan, before, after, index)


def _check_loop(shared: SharedLoop) -> None:
    loop = shared.loop
    if shared.overlaps or shared.accumulators:
        raise SkillRefused("turns of its loop may touch what others do, or it carries more than the sum")
    if shared.step != 1 or loop.comparison != "<" or loop.start is None or loop.bound is None:
        raise SkillRefused("its loop does not count up by one to an end")
    if loop.declared is None or not loop.span.contains(loop.declared.name_span):
        raise SkillRefused("its loop's variable is declared outside of the loop")
    if loop.trip_count is not None and loop.trip_count < _LEAST:
        raise SkillRefused(f"its loop has only {loop.trip_count} turns")


def _check_values(unit: SourceUnit, loop: Loop, before: tuple[Node, ...]) -> None:
    """Refuse what would not be the same in every kernel: only plain values may stand before the loop."""
    for node in (*before, loop.start, loop.bound):
        if node is not None and any(part.type in _READS for part in walk(node)):
            line = unit.line_of(node)
            raise SkillRefused(f"line {line} reads memory, or more than plain values, before its loop")
    if any(node.type != "declaration" for node in before):
        raise SkillRefused("more than declarations stands before its loop")


def _only_launch(unit: SourceUnit, program: RowProgram, context: SkillContext) -> KernelLaunch:
    """Return the launch.

    Raises:
        SkillRefused: There are others, or the kernel cannot be written once more.
    """
    kernel = program.kernel
    if len(program.entries) != 1 or program.entries[0].unit.path != unit.path:
        raise SkillRefused("it is launched from several places, or from another file")
    entry = program.entries[0]
    if sum(f.name == kernel.name for other in units_of(unit, context) for f in other.all_functions) > 1:
        raise SkillRefused("the kernel is declared more than once")
    if not kernel.parameters or kernel.launch_bounds:
        raise SkillRefused("it has no parameters, or launch bounds")
    is_template = unit.text_of(kernel.span).lstrip().startswith("template")
    if is_template or "<" in unit.text_of(entry.launch.name_span):
        raise SkillRefused("it is a template")
    statement = entry.launch.node.parent
    if statement is None or statement.type != "expression_statement" or not is_statement_of_block(statement):
        raise SkillRefused(f"line {entry.launch.line}: the launch is part of another statement")
    return entry


def write_scan_loop(
    unit: SourceUnit, found: ScanLoop, parts: int, turns: int, context: SkillContext
) -> tuple[Edit, ...]:
    """Return the edits that take the loop apart and let blocks take its stretches.

    Args:
        unit: The file of the kernel.
        found: What to write.
        parts: Stretches, one a block.
        turns: Neighbouring turns that a thread takes together.
        context: For names that are still free.
    """
    plain = _Plain(unit, found, parts, context)
    text = plain.text()
    threads = Group(_THREADS, _THREADS, is_block=True)
    widest = Group(_BEFORE_THREADS, _BEFORE_THREADS, is_block=True)
    for kernel, group, together in (
        (plain.names["sums"], threads, 1),
        (plain.names["before"], widest, 1),
        (found.kernel.name, threads, turns),
    ):
        text = _shared(text, unit.path, kernel, group, together, context)
    return _edits(unit, text)


def _shared(text: str, path: str, kernel: str, group: Group, turns: int, context: SkillContext) -> str:
    """Return a file with the threads of a block sharing the loop of a kernel."""
    flags = context.task.flags if context.task is not None else ()
    unit = parsed(text, path, flags)
    own = replace(context, units=tuple(unit if u.path == path else u for u in context.units or (unit,)))
    found = unit.kernel(kernel)
    if found is None:
        raise SkillRefused(f"kernel {kernel!r} is gone")
    program = read_row_program(unit, found, own)
    if program.has_overlaps:
        raise SkillRefused("what blocks read may overlap what they write")
    rewrite = RowWriter(unit, program, group, own, turns).rewrite()
    return apply_to_text(text, rewrite.edits)


def _edits(unit: SourceUnit, text: str) -> tuple[Edit, ...]:
    """Return the edits from a file to its new text, line by line."""
    old, new = unit.text.splitlines(keepends=True), text.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line.encode()))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        Edit(path=unit.path, start=starts[a], end=starts[b], text="".join(new[c:d]))
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    )


class _Plain:
    """The kernels of the parts, each part by one thread; threads share them afterwards."""

    def __init__(self, unit: SourceUnit, found: ScanLoop, parts: int, context: SkillContext) -> None:
        self._unit, self._found, self._parts = unit, found, parts
        self.names: Mapping[str, str] = self._named(context)

    def _named(self, context: SkillContext) -> dict[str, str]:
        kernel = self._found.kernel.name
        wanted = {
            "sums": f"{kernel}_sums",
            "before": f"{kernel}_before",
            "end": f"{kernel}_end",
            **{
                each: each for each in ("partial", "parts", "part", "length", "steps", "first", "last", "add")
            },
        }
        taken: list[str] = []
        for each in wanted.values():
            taken.append(fresh_name(self._unit, context, each, taken))
        return dict(zip(wanted, taken, strict=True))

    def text(self) -> str:
        """Return the file."""
        unit, found = self._unit, self._found
        edits = EditSet(unit)
        edits.insert_before(place_before(unit, found.kernel), self._sums() + "\n\n" + self._before() + "\n\n")
        self._rewrite_kernel(edits)
        if found.after:
            edits.insert_after(found.kernel.span, "\n\n" + self._end())
        statement = found.entry.launch.node.parent
        assert statement is not None
        indent = unit.indent_of(statement)
        lines = "\n".join(f"{indent}{line}" if line else line for line in self._launches())
        edits.replace(statement, lines.lstrip())
        return apply_to_text(unit.text, edits.edits)

    # kernels

    def _head(self, name: str, more: str) -> str:
        """Return the head of a kernel with the parameters of the old one and more."""
        unit, kernel = self._unit, self._found.kernel
        span = Span(kernel.span.start, kernel.body.start_byte if kernel.body is not None else kernel.span.end)
        edits = EditSet(unit)
        edits.replace(kernel.name_span, name)
        edits.insert_after(kernel.parameters[-1].span, f", {more}")
        data = apply_to_text(unit.text, edits.edits).encode()
        return data[span.start : span.end + len(data) - len(unit.data)].decode().rstrip()

    def _stretch(self) -> list[str]:
        """Return the lines that say which turns a part takes; no sum passes the end."""
        unit, names, loop = self._unit, self.names, self._found.shared.loop
        assert loop.start is not None
        assert loop.bound is not None
        index, start, bound = self._found.index, clean_text(unit, loop.start), clean_text(unit, loop.bound)
        length, steps, part = names["length"], names["steps"], names["part"]
        zero = loop.start_value == 0
        reach = f"(long long)({bound})" + ("" if zero else f" - (long long)({start})")
        lead = "" if zero else f"({start}) + "
        return [
            f"const long long {length} = {bound if zero else f'({bound})'} > {start if zero else f'({start})'}"
            f" ? {reach} : 0;",
            f"const long long {steps} = ({length} + {names['parts']} - 1) / {names['parts']};",
            f"const {index} {names['first']} = {lead}({index})min({part} * {steps}, {length});",
            f"const {index} {names['last']} = {lead}({index})min(({part} + 1) * {steps}, {length});",
        ]

    def _opening(self) -> list[str]:
        part = self.names["part"]
        return [
            f"const int {part} = blockIdx.x * blockDim.x + threadIdx.x;",
            f"if ({part} >= {self.names['parts']}) return;",
        ]

    def _declared(self) -> list[str]:
        return [self._unit.text_of(node) for node in self._found.before]

    def _sums(self) -> str:
        """Return the kernel that adds up what the turns of each part add."""
        names, scan, found = self.names, self._found.scan, self._found
        variable, total = found.shared.loop.variable, names["add"]
        add = f"{total} += {scan.amount};"
        add = f"if ({scan.test}) {add}" if scan.test else add
        others = [
            self._unit.text_of(node) for node in found.before if not _declares(self._unit, node, scan.name)
        ]
        body = [
            *self._opening(),
            *others,
            *self._stretch(),
            f"{scan.kind} {total} = 0;",
            f"for ({found.index} {variable} = {names['first']}; {variable} < {names['last']}; ++{variable}) {add}",
            f"{names['partial']}[{names['part']}] = {total};",
        ]
        head = self._head(names["sums"], f"{scan.kind}* {names['partial']}, int {names['parts']}")
        return _function(head, body)

    def _before(self) -> str:
        """Return the kernel after which each part's place holds the sum of the parts before; one more holds all."""
        names, kind = self.names, self._found.scan.kind
        partial, parts, part, total = names["partial"], names["parts"], names["part"], names["add"]
        head = f"__global__ void {names['before']}({kind}* {partial}, int {parts})"
        return _function(
            head,
            [
                f"{kind} {total} = 0;",
                f"for (int {part} = 0; {part} < {parts}; ++{part}) {{",
                f"    const {kind} {names['length']} = {partial}[{part}];",
                f"    {partial}[{part}] = {total};",
                f"    {total} += {names['length']};",
                "}",
                f"{partial}[{parts}] = {total};",
            ],
        )

    def _end(self) -> str:
        """Return the kernel that does what stands behind the loop, when all parts are done."""
        names, scan, found = self.names, self._found.scan, self._found
        rest = [self._unit.text_of(node) for node in found.after]
        body = [*self._declared(), f"{scan.name} += {names['partial']}[{names['parts']}];", *rest]
        head = self._head(names["end"], f"const {scan.kind}* {names['partial']}, int {names['parts']}")
        return _function(head, body)

    def _rewrite_kernel(self, edits: EditSet) -> None:
        """Let the old kernel take a part."""
        unit, found, names = self._unit, self._found, self.names
        kernel, loop, scan = found.kernel, found.shared.loop, found.scan
        assert loop.start is not None
        assert loop.bound is not None
        indent = unit.indent_of(loop.node)
        more = f"const {scan.kind}* {names['partial']}, int {names['parts']}"
        edits.insert_after(kernel.parameters[-1].span, f", {more}")
        first = found.before[0] if found.before else loop.node
        edits.insert_before(first, "".join(f"{line}\n{indent}" for line in self._opening()))
        lines = [*self._stretch(), f"{scan.name} += {names['partial']}[{names['part']}];"]
        place = loop.node if loop.pragma_span is None else loop.pragma_span
        edits.insert_before(place, "".join(f"{line}\n{indent}" for line in lines))
        edits.replace(loop.start, names["first"])
        edits.replace(loop.bound, names["last"])
        if found.after:
            edits.replace(Span(loop.span.end, found.after[-1].end_byte), "")

    # the launcher

    def _launches(self) -> list[str]:
        unit, found, names = self._unit, self._found, self.names
        launch = found.entry.launch
        stream = launch.stream.text if launch.stream is not None else "0"
        more = [one.text for one in (launch.shared, launch.stream) if one is not None]
        given = ", ".join(argument.text for argument in launch.arguments)
        callee = unit.text_of(launch.name_span)
        partial, parts, kind = names["partial"], names["parts"], found.scan.kind

        def call(name: str, grid: str, block: str, arguments: str) -> str:
            called = callee.replace(launch.kernel, name, 1)
            return f"    {called}<<<{', '.join([grid, block, *more])}>>>({arguments});"

        return [
            "{",
            f"    constexpr int {parts} = {self._parts};",
            f"    {kind}* {partial} = nullptr;",
            f"    cudaMallocAsync(&{partial}, sizeof({kind}) * ({parts} + 1), {stream});",
            call(names["sums"], f"({parts} + 127) / 128", "128", f"{given}, {partial}, {parts}"),
            call(names["before"], "1", "1", f"{partial}, {parts}"),
            call(found.kernel.name, f"({parts} + 127) / 128", "128", f"{given}, {partial}, {parts}"),
            *([call(names["end"], "1", "1", f"{given}, {partial}, {parts}")] if found.after else []),
            f"    cudaFreeAsync({partial}, {stream});",
            "}",
        ]


def _declares(unit: SourceUnit, node: Node, name: str) -> bool:
    """Whether a declaration is that of one variable alone."""
    words = [part for part in walk(node) if part.type == "identifier" and unit.text_of(part) == name]
    return bool(words) and "," not in unit.text_of(node)


def _function(head: str, body: list[str]) -> str:
    lines = "".join(f"    {line}\n" for line in body)
    return f"{head}\n{{\n{lines}}}"
