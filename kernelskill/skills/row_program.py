"""Kernels of one row a thread, split into loops that threads share and what one of them does for all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from kernelskill.skills.coverage import Cover, read_cover
from kernelskill.skills.device_code import (
    BARRIERS,
    BUILTIN_INDICES,
    SHARED_WORDS,
    WARP_WORDS,
    reached_words,
    refuse_words,
    words_in,
)
from kernelskill.skills.disjoint import separate
from kernelskill.skills.global_index import GlobalIndex, Guard, find_global_indices, read_guarded
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.loop_effects import refuse_hidden_accesses
from kernelskill.skills.row_loops import SharedLoop, read_shared_loop
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.affine import index_reader
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.pointers import Space
from kernelskill.source.scopes import LOOPS, flow_of
from kernelskill.source.syntax import Node, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

_WHY = "its meaning depends on which threads form a block"
_OTHER = frozenset({"volatile", "atomicCAS", "atomicExch", "__threadfence", "clock", "clock64", "printf"})
_PASSIVE = frozenset({"declaration", "break_statement", "continue_statement", "return_statement", "comment"})
_FEW = 16


@dataclass(frozen=True, eq=False)
class RowProgram:
    """What a thread does with its row."""

    kernel: KernelDef = field(repr=False)
    guard: Guard | None
    """None where one thread is all that is launched: then there is one row."""
    index: GlobalIndex | None
    entries: tuple[KernelLaunch, ...]
    covers: tuple[Cover, ...]
    loops: tuple[SharedLoop, ...]
    stores: tuple[Node, ...]
    """Statements that change memory outside the shared loops."""
    syncs_before: frozenset[int]
    """Start bytes of statements that need what others did before them."""
    syncs_after: frozenset[int]
    first: Node
    """The statement of the work that holds the first shared loop."""
    assumptions: tuple[str, ...]

    @property
    def row(self) -> str:
        """What a thread walks along, for people."""
        return f"row {self.guard.variable.name}" if self.guard is not None else "all elements"

    @property
    def has_scans(self) -> bool:
        return any(loop.scan is not None for loop in self.loops)

    @property
    def has_overlaps(self) -> bool:
        return any(loop.overlaps for loop in self.loops)


def read_row_program(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> RowProgram:
    """Return the parts of a kernel in which a thread takes one row.

    Raises:
        SkillRefused: It is another kind of kernel, or no loop of it can be shared.
    """
    refuse_words(unit, kernel, context, BARRIERS | SHARED_WORDS | WARP_WORDS | _OTHER, _WHY)
    for node in walk(kernel.node):
        if node.type in ("goto_statement", "labeled_statement", "lambda_expression", "try_statement"):
            raise SkillRefused(f"line {unit.line_of(node)} holds a jump or lambda")
        if node.type.startswith("preproc_"):
            raise SkillRefused(f"line {unit.line_of(node)} holds a directive")
    if kernel.body is not None:
        refuse_hidden_accesses(unit, kernel, kernel.body, context)
    _refuse_lasting_variables(unit, kernel)
    entries = launches_of(unit, kernel, context)
    rows = _read_rows(unit, kernel, entries, context)
    reader = _Reader(unit, kernel, context)
    for statement in rows.work:
        reader.visit(statement)
    if not reader.loops:
        raise SkillRefused(reader.refusal or "it has no loop")
    loops = tuple(reader.loops)
    before, after = _syncs(unit, kernel, loops, reader.stores, context)
    first = next(s for s in rows.work if span_of(s).contains(loops[0].loop.span))
    return RowProgram(
        kernel=kernel,
        guard=rows.guard,
        index=rows.index,
        entries=tuple(entries),
        covers=rows.covers,
        loops=loops,
        stores=tuple(reader.stores),
        syncs_before=before,
        syncs_after=after,
        first=first,
        assumptions=tuple(dict.fromkeys(text for loop in loops for text in loop.assumptions)),
    )


@dataclass(frozen=True)
class _Rows:
    guard: Guard | None
    index: GlobalIndex | None
    covers: tuple[Cover, ...]
    work: tuple[Node, ...]


def _read_rows(
    unit: SourceUnit, kernel: KernelDef, entries: list[KernelLaunch], context: SkillContext
) -> _Rows:
    """Return the index that is the row, and the statements that are done for it.

    Raises:
        SkillRefused: A thread is something else than a row.
    """
    single = all(e.launch.block.values == (1, 1, 1) and e.launch.grid.values == (1, 1, 1) for e in entries)
    if single and kernel.body is not None:
        hidden = reached_words(unit, kernel, context) & BUILTIN_INDICES
        if hidden:
            raise SkillRefused(f"one thread is launched, and it uses {min(hidden)!r}")
        return _Rows(None, None, (), tuple(named(kernel.body)))
    indices = find_global_indices(unit, kernel, context, "x")
    guarded = read_guarded(unit, kernel)
    guard = guarded.guard("x")
    if guard is None or len(indices) != 1 or "threadIdx.y" in unit.text_of(kernel.span):
        raise SkillRefused("its row is not one tested global index along x")
    for entry in entries:
        if entry.launch.block.values[1:] != (1, 1):
            raise SkillRefused(f"line {entry.launch.line} launches blocks of more than one dimension")
    covers = tuple(read_cover(unit, kernel, guard, entry) for entry in entries)
    return _Rows(guard, indices[0], covers, guarded.work)


def _refuse_lasting_variables(unit: SourceUnit, kernel: KernelDef) -> None:
    """Decline where all lanes would change a variable that the whole grid has in common."""
    for write in flow_of(unit, kernel).writes:
        declared = write.declared
        if isinstance(declared, VariableDef) and declared.storage is not Storage.LOCAL:
            raise SkillRefused(
                f"line {unit.line_of(write.node)} changes {declared.name!r}, which all threads share"
            )
    if kernel.body is not None and "static" in words_in(unit, kernel.body):
        raise SkillRefused("it has a static variable")


class _Reader:
    """Walks the statements that all threads of a row will execute."""

    def __init__(self, unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> None:
        self._unit, self._kernel, self._context = unit, kernel, context
        self._by_node = {loop.node.id: loop for loop in find_loops(unit, kernel)}
        self.loops: list[SharedLoop] = []
        self.stores: list[Node] = []
        self.refusal = ""

    def visit(self, node: Node) -> None:
        """Take a statement apart.

        Raises:
            SkillRefused: Several threads can't execute it for one row.
        """
        if node.type in LOOPS:
            self._visit_loop(node)
        elif node.type == "compound_statement":
            for child in named(node):
                self.visit(child)
        elif node.type == "if_statement":
            self._refuse_changes(node.child_by_field_name("condition"))
            for part in ("consequence", "alternative"):
                inner = node.child_by_field_name(part)
                if inner is not None:
                    self.visit(named(inner)[0] if inner.type == "else_clause" else inner)
        elif node.type == "expression_statement":
            self._visit_expression(node)
        elif node.type in _PASSIVE:
            self._refuse_changes(node)
        else:
            raise SkillRefused(f"line {self._unit.line_of(node)} holds a {node.type.replace('_', ' ')}")

    def _visit_loop(self, node: Node) -> None:
        loop = self._by_node[node.id]
        shared = self._shared(loop)
        if shared is not None and not self._is_better_inside(loop):
            self.loops.append(shared)
            return
        body = node.child_by_field_name("body")
        for child in named(node):
            if child != body:
                self._refuse_changes(child)
        known = len(self.loops)
        if body is not None:
            self.visit(body)
        if len(self.loops) == known and (loop.trip_count is None or loop.trip_count > _FEW):
            raise SkillRefused(self.refusal)

    def _shared(self, loop: Loop) -> SharedLoop | None:
        try:
            return read_shared_loop(self._unit, self._kernel, loop, self._context)
        except SkillRefused as refused:
            self.refusal = self.refusal or refused.reason
            return None

    def _is_better_inside(self, loop: Loop) -> bool:
        """Whether a loop inside should be shared rather than this one."""
        inner = [one for one in self._by_node.values() if loop.body_span.contains(one.span)]
        long = [one for one in inner if one.trip_count is None or one.trip_count >= _FEW]
        usable = [one for one in long if self._shared(one) is not None]
        if loop.trip_count is not None and loop.trip_count < _FEW:
            return bool(usable)
        return not self._neighbours(loop) and any(self._neighbours(one) for one in usable)

    def _neighbours(self, loop: Loop) -> int:
        """Return how many accesses take neighbouring elements in neighbouring turns."""
        atom = index_reader(self._unit, self._kernel).loop_atom(loop)
        count = 0
        for access in find_accesses(self._unit, self._kernel):
            if loop.span.contains(access.span) and access.index is not None:
                factor = access.index.coefficient(atom)
                count += factor is not None and factor.value in (1, -1)
        return count

    def _visit_expression(self, node: Node) -> None:
        changing = [a for a in self._accesses(node) if a.mode.writes and a.space is not Space.LOCAL]
        if not changing:
            return
        inner = named(node)
        line = self._unit.line_of(node)
        locals_too = [w for w in flow_of(self._unit, self._kernel).writes if _inside(w.node, node)]
        arrays_too = [a for a in self._accesses(node) if a.mode.writes and a.space is Space.LOCAL]
        plain = inner and inner[0].type in ("assignment_expression", "call_expression", "update_expression")
        if len(changing) != 1 or locals_too or arrays_too or not plain:
            raise SkillRefused(f"line {line} changes memory and more")
        if changing[0].space is Space.SHARED:
            raise SkillRefused(f"line {line} stores to shared memory")
        self.stores.append(node)

    def _refuse_changes(self, node: Node | None) -> None:
        if node is not None and any(
            a.mode.writes and a.space is not Space.LOCAL for a in self._accesses(node)
        ):
            raise SkillRefused(
                f"line {self._unit.line_of(node)} changes memory in a condition or declaration"
            )

    def _accesses(self, node: Node) -> list[Access]:
        return [a for a in find_accesses(self._unit, self._kernel) if _inside(a.node, node)]


def _inside(inner: Node, outer: Node) -> bool:
    return span_of(outer).contains(span_of(inner))


def _syncs(
    unit: SourceUnit,
    kernel: KernelDef,
    loops: tuple[SharedLoop, ...],
    stores: list[Node],
    context: SkillContext,
) -> tuple[frozenset[int], frozenset[int]]:
    """Return before and after which statements the threads of a row must wait for one another."""
    before: set[int] = set()
    after: set[int] = set()
    spans = {span_of(store) for store in stores}
    every = find_accesses(unit, kernel)
    for node in [*(shared.loop.node for shared in loops), *stores]:
        own = span_of(node)
        is_store = own in spans
        again = [span_of(one) for one in ancestors(node) if one.type in LOOPS]
        for write in every:
            if not own.contains(write.span) or not write.mode.writes or write.space is Space.LOCAL:
                continue
            for other in every:
                alone = is_store and any(span.contains(other.span) for span in spans)
                if alone or other.space is Space.LOCAL or not _may_meet(unit, kernel, write, other, context):
                    continue
                if own.contains(other.span) and not again:
                    continue
                repeats = any(span.contains(other.span) for span in again)
                if repeats or other.span.start < own.start:
                    before.add(own.start)
                if repeats or other.span.start >= own.end:
                    after.add(own.start)
    nodes = [*(shared.loop.node for shared in loops), *stores]
    waited = {node.start_byte for node in nodes if _follows(node, after)}
    return frozenset(before - waited), frozenset(after)


def _follows(node: Node, after: set[int]) -> bool:
    """Whether the statement right before one ends by waiting."""
    siblings = named(node.parent) if node.parent is not None else []
    position = siblings.index(node) if node in siblings else 0
    return position > 0 and siblings[position - 1].start_byte in after


def _may_meet(
    unit: SourceUnit, kernel: KernelDef, write: Access, other: Access, context: SkillContext
) -> bool:
    if other.root is not None and other.root is write.root:
        return (write.mode, other.mode) != (AccessMode.ATOMIC, AccessMode.ATOMIC)
    return not separate(unit, kernel, write, other, context).disjoint


def refuse_unknown_names(
    unit: SourceUnit, kernel: KernelDef, node: Node, place: Node, own: Collection[str] = ()
) -> None:
    """Decline an expression that has another value where a statement begins than where it stands.

    Args:
        unit: The file.
        kernel: The kernel.
        node: The expression.
        place: The statement.
        own: Names that don't count.

    Raises:
        SkillRefused: One of its variables is not known there, or changes.
    """
    flow = flow_of(unit, kernel)
    for name in walk(node):
        declared = flow.resolve(name) if name.type == "identifier" else None
        if declared is None or declared.name in own:
            continue
        known = flow.is_constant(declared)
        if isinstance(declared, VariableDef):
            visible = declared.scope_span.contains(span_of(place))
            known = known and visible and declared.name_span.start < place.start_byte
        if not known:
            text = unit.text_of(node)
            raise SkillRefused(f"what {text} touches is not known before the first loop of the row")
