"""Write a kernel around a scan so that each thread takes several neighbouring elements of its block."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.skills.device_code import fresh_name, place_before
from kernelskill.skills.item_segments import ItemWriter, Segment, indented
from kernelskill.skills.kernel_launches import launches_of
from kernelskill.skills.launch_edits import components_of, edit_sets, write_shapes
from kernelskill.skills.neighbour_access import (
    Neighbours,
    find_neighbours,
    load_function,
    store_function,
    stored_value,
    vector_of,
)
from kernelskill.skills.plain_code import accesses_in
from kernelskill.skills.scan_functions import ScanFunction
from kernelskill.skills.shared_arrays import SIZES
from kernelskill.skills.shared_scan_edits import Names, new_names, remaining_uses
from kernelskill.skills.shared_scans import Scan
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
from kernelskill.source.accesses import AccessMode
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.scopes import Declared, Write, flow_of
from kernelskill.source.syntax import Node, Span, named, span_of, walk
from kernelskill.source.unit import SourceUnit

_WARP = 32


def item_counts(unit: SourceUnit, kernel: KernelDef, scan: Scan, context: SkillContext) -> tuple[str, ...]:
    """Return how many elements a thread may take, the most promising first."""
    fitting = [count for count in (4, 8, 2) if scan.threads % (_WARP * count) == 0]
    try:
        kernel_text = _Writer(unit, kernel, scan, context, 2)
        kernel_text.write()
    except SkillRefused:
        return ("1",)
    several = tuple(str(count) for count in fitting)
    return (*several, "1") if kernel_text.has_vectors else ("1", *several)


def write_items(
    unit: SourceUnit, kernel: KernelDef, scan: Scan, context: SkillContext, items: int
) -> Rewrite:
    """Return the edits for several elements a thread.

    Raises:
        SkillRefused: What stands around the scan can't be run for one element after the other.
    """
    writer = _Writer(unit, kernel, scan, context, items)
    text = writer.write()
    entries = launches_of(unit, kernel, context)
    sets = edit_sets(entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    functions = "".join(f"{text}\n" for text in writer.functions)
    own.insert_before(place_before(unit, kernel), functions)
    own.replace(writer.place, text)
    for entry in entries:
        block = components_of(entry.launch.block, entry.launch.line)
        size = block[0]
        block[0] = str(int(size) // items) if size.isdigit() else f"{_operand(size)} / {items}"
        write_shapes(sets[entry.unit.path], entry, None, block)
    return Rewrite(edits=tuple(edit for edits in sets.values() for edit in edits.edits))


def _operand(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


class _Writer:
    def __init__(
        self, unit: SourceUnit, kernel: KernelDef, scan: Scan, context: SkillContext, items: int
    ) -> None:
        body = kernel.body
        in_shared = scan.fill is None and scan.variable is None
        if (
            in_shared
            or scan.needs_array
            or scan.share > 1
            or scan.is_repeated
            or body is None
            or scan.block != body
        ):
            raise SkillRefused(
                "other threads read the results in shared memory, or the scan stands in a loop"
            )
        self.unit, self.kernel, self.scan, self.context, self.items = unit, kernel, scan, context, items
        self.taken: list[str] = []
        used = {which for _, which in (*scan.scalars, *scan.reads)}
        self.function = ScanFunction(
            kind=scan.kind,
            way=scan.way,
            threads=scan.threads // items,
            items=items,
            gives_before="exclusive" in used,
            gives_total="total" in used,
            is_repeated=False,
        )
        self.names: Names = new_names(unit, context, scan, self.function)
        self.taken += [self.names.function, self.names.value, self.names.before, self.names.total]
        self.item, self.count = self._fresh("item"), self._fresh(f"{scan.array.name}_items")
        self.writer = ItemWriter(unit, kernel, context, scan.threads, self._fresh)
        self.functions: list[str] = []
        self.movers: dict[tuple[str, str], str] = {}
        self.has_vectors = False
        statements = named(body)
        opening = body.start_byte + 1
        lead = unit.text_of(Span(opening, statements[0].start_byte))
        self.place = Span(opening + len(lead.encode()) - len(lead.lstrip().encode()), statements[-1].end_byte)

    def _fresh(self, wanted: str) -> str:
        name = fresh_name(self.unit, self.context, wanted, self.taken)
        self.taken.append(name)
        return name

    def write(self) -> str:
        """Return the new text of the kernel's body, from its first to its last statement."""
        scan, names = self.scan, self.names
        body = self.kernel.body
        statements = named(body) if body is not None else []
        first = next(i for i, s in enumerate(statements) if s == scan.statements[0])
        before, after = self._kept(statements[:first]), self._kept(statements[first + len(scan.statements) :])
        self.writer.check(before, scan.array, may_return=False)
        self.writer.check(after, scan.array, may_return=True)
        uniform = [statement for statement in before if self.writer.is_uniform(statement)]
        self._refuse_numbers()
        source = Segment([s for s in before if s not in uniform])
        self._fill(source)
        self._wide_loads(source)
        segments = [source, *self._results(after)]
        texts = self.writer.write(segments, self.count, self.item)
        extra = [names.before] * self.function.gives_before + [names.total] * self.function.gives_total
        call = f"{names.function}({', '.join((names.value, *extra))});"
        self.functions.insert(0, self.function.text(names.function))
        lines = [f"constexpr int {self.count} = {self.items};  // neighbouring elements that a thread takes"]
        for statement in uniform:
            lines += [*self.writer.gap(statement), self.writer.whole(statement, [])]
        lines.append(f"{scan.kind} {names.value}[{self.count}];")
        lines = indented(lines)
        lines.append(texts[0])
        lines += indented([f"{scan.kind} {', '.join(extra)};"] if extra else [])
        lines += indented([call])
        return "\n".join([*lines, *texts[1:]]).lstrip()

    def _kept(self, statements: Sequence[Node]) -> list[Node]:
        """Return the statements without those that put elements into the array, and without its declaration."""
        scan = self.scan
        gone = [*scan.copies, scan.array.declaration]
        if sum(v.declaration == scan.array.declaration for v in self.kernel.locals) > 1:
            raise SkillRefused(f"{scan.array.name!r} is declared together with others")
        if remaining_uses(self.unit, self.kernel, scan, scan.array):
            raise SkillRefused(f"{scan.array.name!r} is used besides the scan")
        gone += [
            declared.declaration
            for declared, _ in scan.scalars
            if isinstance(declared, VariableDef) and self._is_dead(declared)
        ]
        return [statement for statement in statements if statement not in gone]

    def _is_dead(self, declared: VariableDef) -> bool:
        """Whether nothing is left that uses a variable, which stands alone in its declaration."""
        alone = sum(v.declaration == declared.declaration for v in self.kernel.locals) == 1
        return alone and not remaining_uses(self.unit, self.kernel, self.scan, declared)

    def _refuse_numbers(self) -> None:
        for declared, which in self.scan.scalars:
            if which not in ("inclusive", "exclusive") and remaining_uses(
                self.unit, self.kernel, self.scan, declared
            ):
                raise SkillRefused(f"{declared.name!r} is used after the scan")

    def _fill(self, source: Segment) -> None:
        scan, value = self.scan, f"{self.names.value}[{self.item}]"
        if scan.fill is not None:
            target = Span(scan.fill.statement.start_byte, scan.fill.value.start_byte)
            source.replaced.append((target, f"{value} = "))
        elif scan.variable is not None:
            source.last.append(f"{value} = {scan.variable.name};")

    def _of(self, which: str) -> str:
        names, item = self.names, self.item
        if which == "exclusive":
            return f"({item} > 0 ? {names.value}[{item} - 1] : {names.before})"
        return f"{names.value}[{item}]" if which == "inclusive" else names.total

    def _results(self, after: list[Node]) -> list[Segment]:
        """Return the segments behind the scan; a store of neighbours is one by itself."""
        for declared, which in self.scan.scalars:
            if which in ("inclusive", "exclusive"):
                if any(span_of(s).contains(span_of(w.node)) for s in after for w in self._writes(declared)):
                    raise SkillRefused(f"{declared.name!r} changes after the scan")
                self.writer.given[id(declared)] = self._of(which)
        reads = [(span_of(node), self._of(which)) for node, which in self.scan.reads]
        segments: list[Segment] = []
        plain: list[Node] = []
        exits: list[Node] = []
        for number, statement in enumerate(after):
            if any(node.type == "return_statement" for node in walk(statement)):
                if not self._is_exit(statement):
                    plain += after[number:]
                    break
                plain.append(statement)
                exits.append(statement)
                continue
            found = find_neighbours(self.unit, self.kernel, statement, AccessMode.WRITE, exits)
            value = stored_value(self.unit, statement, found[0].access) if len(found) == 1 else None
            if value is None or not self._fits(found[0]):
                plain.append(statement)
                continue
            if plain and plain != exits:
                segments.append(Segment(plain, replaced=list(reads)))
            segments.append(self._wide_store(exits, statement, found[0], value, reads))
            plain = list(exits)
        if plain and plain != exits:
            segments.append(Segment(plain, replaced=list(reads)))
        return segments

    def _is_exit(self, statement: Node) -> bool:
        """Whether a statement is `if (test) return;`, with a test that can be made again."""
        test, body = statement.child_by_field_name("condition"), statement.child_by_field_name("consequence")
        if statement.type != "if_statement" or test is None or body is None:
            return False
        inner = named(body) if body.type == "compound_statement" else [body]
        is_plain = len(inner) == 1 and inner[0].type == "return_statement" and not named(inner[0])
        return (
            is_plain
            and statement.child_by_field_name("alternative") is None
            and self.writer.is_repeatable(test)
        )

    def _writes(self, declared: Declared) -> tuple[Write, ...]:
        return flow_of(self.unit, self.kernel).writes_to(declared)

    def _fits(self, found: Neighbours) -> bool:
        return vector_of(found.kind, self.items)[1] > 1

    def _may_write(self, source: Segment) -> bool:
        """Whether statements may write global memory."""
        try:
            accesses = [
                access
                for statement in source.statements
                for access in accesses_in(self.unit, self.kernel, statement, self.context)
            ]
        except SkillRefused:
            return True
        return any(access.mode.writes and not access.is_shared for access in accesses)

    def _mover(self, way: str, kind: str) -> str:
        if (way, kind) not in self.movers:
            name = self._fresh(f"{way}_neighbours")
            self.movers[way, kind] = name
            text = load_function if way == "load" else store_function
            self.functions.append(text(name, kind, self.items))
        return self.movers[way, kind]

    def _is_wide(self, found: Neighbours, flag: str) -> str:
        """Return the statement that tells whether a thread's elements can be moved as vectors."""
        _, width = vector_of(found.kind, self.items)
        address = self.writer.patched(found.access.node, [])
        aligned = f"reinterpret_cast<unsigned long long>(&{address}) % {width * SIZES[found.kind]} == 0"
        test = found.last_text(lambda node: self.writer.patched(node, []), self.count)
        return f"{flag} = {test} && {aligned};" if test else f"{flag} = {aligned};"

    def _wide_loads(self, source: Segment) -> None:
        if self._may_write(source):
            return  # what a load finds may be what the element wrote before
        for statement in source.statements:
            lines: list[str] = []
            for found in find_neighbours(self.unit, self.kernel, statement, AccessMode.READ):
                if not self._fits(found):
                    continue
                base = found.access.root_name
                flag, taken = self._fresh(f"{base}_is_wide"), self._fresh(f"{base}_taken")
                source.before += [f"bool {flag} = false;", f"{found.kind} {taken}[{self.count}];"]
                address = self.writer.patched(found.access.node, [])
                lines += [
                    f"if ({self.item} == 0) {{",
                    f"    {self._is_wide(found, flag)}",
                    f"    if ({flag})",
                    f"        {self._mover('load', found.kind)}(&{address}, {taken});",
                    "}",
                ]
                text = f"({flag} ? {taken}[{self.item}] : {address})"
                source.replaced.append((found.access.span, text))
            if lines:
                self.has_vectors = True
                source.texts[statement.id] = [*lines, self.writer.patched(statement, source.replaced)]

    def _wide_store(
        self,
        exits: list[Node],
        statement: Node,
        found: Neighbours,
        value: Node,
        reads: list[tuple[Span, str]],
    ) -> Segment:
        base = found.access.root_name
        flag, new = self._fresh(f"{base}_is_wide"), self._fresh(f"{base}_new")
        address = self.writer.patched(found.access.node, [])
        lines = [
            f"if ({self.item} == 0)",
            f"    {self._is_wide(found, flag)}",
            f"{new}[{self.item}] = {self.writer.patched(value, reads)};",
        ]
        original = self.writer.patched(statement, reads)
        lines = [
            *lines[:2],
            f"if ({flag}) {{",
            f"    {lines[2]}",
            f"    if ({self.item} == {self.count} - 1)",
            f"        {self._mover('store', found.kind)}(&{address} - ({self.count} - 1), {new});",
            "} else {",
            *indented([original]),
            "}",
        ]
        before = [f"bool {flag} = false;", f"{found.kind} {new}[{self.count}];"]
        return Segment([*exits, statement], before=before, replaced=list(reads), texts={statement.id: lines})
