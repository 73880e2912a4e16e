"""Write a scan over a shared array as a call of a function that works by shuffles."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name, place_before
from kernelskill.skills.scan_functions import ScanFunction
from kernelskill.skills.shared_scans import Scan
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, Span, span_of, walk
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class Names:
    """Names of what is new."""

    function: str
    value: str
    before: str
    total: str

    def of(self, which: str) -> str:
        """Return the variable that holds a result."""
        return {"inclusive": self.value, "exclusive": self.before, "total": self.total}[which]


def new_names(unit: SourceUnit, context: SkillContext, scan: Scan, function: ScanFunction) -> Names:
    """Return names that no file uses."""
    names: list[str] = []
    base = scan.array.name
    for wanted in (function.wanted_name, f"{base}_scanned", f"{base}_before", f"{base}_total"):
        names.append(fresh_name(unit, context, wanted, names))
    return Names(*names)


def write_scan(unit: SourceUnit, kernel: KernelDef, scan: Scan, context: SkillContext) -> EditSet:
    """Replace the statements of a scan; the threads stay what they are."""
    used = {which for _, which in (*scan.scalars, *scan.reads)}
    function = ScanFunction(
        kind=scan.kind,
        way=scan.way,
        threads=scan.threads,
        items=scan.share,
        gives_before=scan.share == 1 and ("exclusive" in used or _writes_before(scan)),
        gives_total="total" in used,
        is_repeated=scan.is_repeated,
    )
    names = new_names(unit, context, scan, function)
    writer = _Writer(unit, kernel, scan, function, names)
    edits = EditSet(unit)
    edits.insert_before(place_before(unit, kernel), function.text(names.function) + "\n")
    writer.write(edits)
    return edits


def _writes_before(scan: Scan) -> bool:
    return scan.needs_array and scan.memory is not None and scan.memory[1]


class _Writer:
    def __init__(
        self, unit: SourceUnit, kernel: KernelDef, scan: Scan, function: ScanFunction, names: Names
    ) -> None:
        self.unit, self.kernel, self.scan, self.function, self.names = unit, kernel, scan, function, names

    def write(self, edits: EditSet) -> None:
        scan = self.scan
        lines = self._shared_lines() if scan.share > 1 else self._lines()
        place = Span(scan.statements[0].start_byte, scan.statements[-1].end_byte)
        indent = self.unit.indent_of(place)
        if scan.fill is not None:
            value = self.unit.text_of(scan.fill.value)
            edits.replace(scan.fill.statement, f"{scan.kind} {self.names.value} = {value};")
        if not self._is_needed(scan.array):
            for statement in scan.copies:
                edits.delete_line(statement)
        edits.replace(self._with_pragma(place), f"\n{indent}".join(lines))
        for node, which in scan.reads:
            edits.replace(node, self.names.of(which))
        if not self._keeps_array():
            self._drop_unused(edits, scan.array)
        for declared, which in scan.scalars:
            if not self._is_needed(declared) and which not in ("inclusive", "exclusive"):
                self._drop_unused(edits, declared)

    def _with_pragma(self, place: Span) -> Span:
        for mask in self.unit.syntax.masks:
            between = self.unit.data[mask.end : place.start] if mask.end <= place.start else b"x"
            if mask.kind == "pragma" and not between.strip():
                return Span(mask.start, place.end)
        return place

    def _lines(self) -> list[str]:
        """Return the statements that stand for the scan, one element a thread."""
        scan, names, kind = self.scan, self.names, self.scan.kind
        extra = [names.before] * self.function.gives_before + [names.total] * self.function.gives_total
        lines = ["__syncthreads();"] if scan.waits else []
        lines += [f"{kind} {', '.join(extra)};"] if extra else []
        source = names.value if scan.fill is not None else self._source()
        call = f"{names.function}({', '.join((source, *extra))});"
        lines.append(
            f"{names.value} = {call}" if scan.fill is not None else f"const {kind} {names.value} = {call}"
        )
        if scan.needs_array and scan.memory is not None:
            at, is_before = scan.memory
            what = names.before if is_before else names.value
            lines.append(f"{self._element(at, 0)} = {what};")
            lines.append("__syncthreads();")
        for declared, which in scan.scalars:
            if which in ("inclusive", "exclusive"):
                lines.append(f"{declared.name} = {names.of(which)};")
            elif self._is_needed(declared):
                lines.append(f"{declared.name} = {which};")
        return lines

    def _source(self) -> str:
        return (
            self.scan.variable.name if self.scan.variable is not None else self._element(self.scan.first, 0)
        )

    def _shared_lines(self) -> list[str]:
        """Return the statements that stand for the scan of several elements a thread."""
        scan, names, share = self.scan, self.names, self.scan.share
        if scan.memory is None:
            raise SkillRefused(f"{scan.array.name!r} does not hold the results")
        at, is_before = scan.memory
        elements = ", ".join(self._element(scan.first, item) for item in range(share))
        lines = ["__syncthreads();"] if scan.waits else []
        lines += [
            f"{scan.kind} {names.value}[{share}] = {{{elements}}};",
            f"{names.function}({names.value});",
        ]
        for item in range(share):
            place = self._element(at, item + is_before)
            text = f"{place} = {names.value}[{item}];"
            if is_before and item == share - 1:
                text = f"if (threadIdx.x < {scan.threads - 1})\n        {text}"
            lines.append(text)
        if is_before:
            lines += ["if (threadIdx.x == 0)", f"    {self._element(at, 0)} = {self.function.neutral};"]
        lines.append("__syncthreads();")
        lines += [f"{d.name} = {which};" for d, which in scan.scalars if self._is_needed(d)]
        return lines

    def _element(self, at: int, item: int) -> str:
        """Return the text of a thread's element of the array, counted from `at`."""
        scan = self.scan
        thread = "threadIdx.x" if scan.share == 1 else f"{scan.share} * threadIdx.x"
        extents = scan.extents
        row, column = divmod(at, extents[-1]) if len(extents) > 1 else (0, at)
        if len(extents) > 2 or (len(extents) == 2 and column + scan.share * scan.threads > extents[-1]):
            raise SkillRefused(f"the elements in {scan.array.name!r} lie in several rows")
        offset = column + item
        index = f"{thread} + {offset}" if offset else thread
        return f"{scan.array.name}[{row}][{index}]" if len(extents) == 2 else f"{scan.array.name}[{index}]"

    def _keeps_array(self) -> bool:
        scan = self.scan
        return scan.needs_array or scan.share > 1 or (scan.fill is None and scan.variable is None)

    def _is_needed(self, declared: Declared) -> bool:
        return bool(remaining_uses(self.unit, self.kernel, self.scan, declared))

    def _drop_unused(self, edits: EditSet, declared: Declared) -> None:
        """Delete the declaration of a variable that nothing uses any more, where it stands alone."""
        if not isinstance(declared, VariableDef) or self._is_needed(declared):
            return
        alone = sum(v.declaration == declared.declaration for v in self.kernel.locals) == 1
        if alone and declared.declaration.type == "declaration":
            edits.delete_line(declared.span)


def remaining_uses(unit: SourceUnit, kernel: KernelDef, scan: Scan, declared: Declared) -> list[Node]:
    """Return the uses of a variable that remain when a scan is written anew."""
    gone = [span_of(statement) for statement in scan.statements]
    gone += [span_of(node) for node, _ in scan.reads]
    gone += [span_of(statement) for statement in scan.copies]
    if scan.fill is not None:
        gone.append(Span(scan.fill.statement.start_byte, scan.fill.value.start_byte))
    flow = flow_of(unit, kernel)
    return [
        node
        for node in walk(kernel.node)
        if node.type == "identifier"
        and unit.text_of(node) == declared.name
        and node.start_byte != declared.name_span.start
        and not any(span.contains(span_of(node)) for span in gone)
        and flow.resolve(node) is declared
    ]
