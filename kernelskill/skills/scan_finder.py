"""Find the scans of a block over a shared array, by doubling or by a tree, however they are spelled."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelskill.skills import lockstep_values as values
from kernelskill.skills.device_code import refuse_words
from kernelskill.skills.kernel_launches import block_lengths, template_bindings
from kernelskill.skills.lockstep import Stepper
from kernelskill.skills.lockstep_expressions import Block, Unclear
from kernelskill.skills.lockstep_memory import element_kind
from kernelskill.skills.lockstep_values import Value
from kernelskill.skills.scan_matches import Matcher
from kernelskill.skills.scan_uses import LaterUses
from kernelskill.skills.shared_arrays import read_shared_array, whole_accesses
from kernelskill.skills.shared_scans import Fill, Found, Group, Scan
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.skills.value_ranges import ValueRanges
from kernelskill.source.accesses import find_accesses
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.influence import influences
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import Node, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

KINDS = frozenset(
    {"float", "double", "int", "unsigned", "long", "unsigned long", "long long", "unsigned long long"}
)
_FLOATS = frozenset({"float", "double"})
_MOST = 1024


def find_scans(unit: SourceUnit, kernel: KernelDef, context: SkillContext, *, of_floats: bool) -> list[Scan]:
    """Return the scans of a kernel, of floating-point numbers or of integers, in the order of the text.

    Raises:
        SkillRefused: There is none that can be followed.
    """
    loops = [loop for loop in find_loops(unit, kernel) if loop.has_barrier]
    arrays = [v for v in kernel.locals if v.storage in (Storage.SHARED, Storage.DYNAMIC_SHARED)]
    if not loops or not arrays:
        raise SkillRefused("no loop of it has a barrier" if arrays else "it has no shared array")
    bindings = template_bindings(unit, kernel, context)
    kinds = [element_kind(array, bindings) for array in arrays]
    arrays = [a for a, kind in zip(arrays, kinds, strict=True) if (kind in _FLOATS) == of_floats]
    if not arrays:
        raise SkillRefused(f"its shared arrays hold {' and '.join(dict.fromkeys(kinds))}")
    threads = _threads(unit, kernel, context)
    refuse_words(unit, kernel, context, {"asm", "__asm__", "goto"}, "what it does can't be followed")
    found: list[Scan] = []
    refusal = ""
    for array in arrays:
        for block, anchor in _places(unit, kernel, loops, array):
            for as_filled in (True, False):
                reader = _Reader(unit, kernel, array, threads, as_filled=as_filled)
                try:
                    reader.begin(context)
                    found.append(reader.read(block, anchor))
                    break
                except (SkillRefused, Unclear) as refused:
                    refusal = refusal or str(refused)
                    if not reader.stored:
                        break
    if not found:
        raise SkillRefused(refusal or "no loop with a barrier works on a shared array")
    return sorted(found, key=lambda scan: scan.statements[0].start_byte)


def _threads(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> int:
    sizes = block_lengths(unit, kernel, context)
    size = sizes.pop()
    if sizes:
        raise SkillRefused("its launches have blocks of different sizes")
    if size % 32 or not 0 < size <= _MOST:
        raise SkillRefused(f"blocks of {size} threads are no whole warps")
    return size


def _places(
    unit: SourceUnit, kernel: KernelDef, loops: list[Loop], array: VariableDef
) -> Iterator[tuple[Node, Node]]:
    """Yield the first loop with a barrier that works on an array in each compound statement."""
    touched = [access.span for access in find_accesses(unit, kernel) if access.root is array]
    seen: set[int] = set()
    for loop in loops:
        inner = any(other is not loop and loop.body_span.contains(other.span) for other in loops)
        block = loop.node.parent
        works = any(loop.span.contains(span) for span in touched)
        if inner or block is None or block.type != "compound_statement" or block.id in seen or not works:
            continue
        seen.add(block.id)
        yield block, loop.node


class _Reader:
    """Reads one scan."""

    def __init__(
        self,
        unit: SourceUnit,
        kernel: KernelDef,
        array: VariableDef,
        threads: int,
        *,
        as_filled: bool,
    ) -> None:
        self.as_filled = as_filled
        self.unit, self.kernel, self.array, self.threads = unit, kernel, array, threads
        self.stored: list[tuple[Fill, int]] = []
        """Fills with the first of the elements that they brought."""
        self.copies: dict[int, list[Node]] = {}
        """Statements that put a variable's values into the array, by the variable's declaration."""

    def begin(self, context: SkillContext) -> None:
        """Read the array.

        Raises:
            SkillRefused: It is of a type or a size that can't be handled, or used as more than elements.
        """
        bindings = template_bindings(self.unit, self.kernel, context)
        kind = element_kind(self.array, bindings)
        if kind not in KINDS:
            raise SkillRefused(f"elements of type {kind!r} can't be handed from lane to lane")
        self.accesses = whole_accesses(self.unit, self.kernel, self.array, context)
        extents = self._extents(context, bindings)
        self.state = Block(self.unit, self.kernel, self.threads, self.array, extents, kind, bindings)
        self.stepper = Stepper(self.state)

    def _extents(self, context: SkillContext, bindings: dict[str, str]) -> tuple[int, ...]:
        array = self.array
        if array.storage is Storage.DYNAMIC_SHARED:
            others = [v for v in self.kernel.locals if v.storage is Storage.DYNAMIC_SHARED]
            pointers = [v for v in self.kernel.locals if v.pointer_depth]
            if len(others) != 1 or pointers or len(array.dimensions) != 1:
                raise SkillRefused(f"other arrays may lie where {array.name!r} lies")
            return (4 * self.threads,)
        found = read_shared_array(array, ValueRanges(self.unit, self.kernel, bindings=bindings))
        if found is None:
            raise SkillRefused(f"the size of the shared variable {array.name!r} can't be told")
        size = int(np.prod(found.extents))
        if size > 8 * _MOST:
            raise SkillRefused(f"{array.name!r} holds {size} elements, more than a block scans")
        return found.extents

    def read(self, block: Node, anchor: Node) -> Scan:
        """Return the scan that begins with a loop of a compound statement."""
        statements = named(block)
        at = next(i for i, statement in enumerate(statements) if statement == anchor)
        self._refuse_exits(anchor)
        self._approach(block)
        for statement in statements[:at]:
            self._before(statement)
        matcher = self._take_contents(statements[:at])
        self.state.is_strict = True
        end, found = self._run_scan(statements, at, matcher)
        while end < len(statements) and self.stepper.is_barrier(statements[end]):
            end += 1
        first = at
        while first and self.stepper.is_barrier(statements[first - 1]):
            first -= 1
        return self._finish(block, statements, (first, at, end), (matcher, found))

    def _run_scan(self, statements: list[Node], at: int, matcher: Matcher) -> tuple[int, Found]:
        """Run statements from a loop on until they have computed a scan; return where they end."""
        best: tuple[int, Found] | None = None
        start = statements[at].start_byte
        reason = f"the loop on line {self.unit.line_of(start)} takes no running result over the block"
        for end in range(at, len(statements)):
            try:
                self.stepper.run(statements[end])
            except Unclear as unclear:
                reason = str(unclear) if end == at else reason
                break
            found = matcher.results(start)
            best = (end + 1, found) if found is not None else best
            if found is not None and found.memory is not None:
                break
        if best is None:
            raise SkillRefused(reason)
        return best

    def _refuse_exits(self, anchor: Node) -> None:
        """Decline where some threads may have left the kernel before the scan."""
        for node in walk(self.kernel.node):
            if node.type != "return_statement" or node.start_byte >= anchor.end_byte:
                continue
            tests = [outer.child_by_field_name("condition") for outer in ancestors(node)]
            depends: set[str] = set()
            for test in tests:
                if test is not None:
                    depends |= influences(self.state.flow, test, self.unit.syntax, test)
            if any("threadIdx" in text or "[" in text for text in depends):
                raise SkillRefused(f"line {self.unit.line_of(node)} leaves the kernel before the scan")

    def _approach(self, block: Node) -> None:
        """Run what comes before a compound statement on the way to it."""
        path = [block, *ancestors(block)]
        path = path[: next(i for i, node in enumerate(path) if node == self.kernel.body) + 1]
        for outer, inner in zip(path[::-1], path[-2::-1], strict=False):
            if outer.type == "compound_statement":
                for statement in named(outer):
                    if statement == inner:
                        break
                    self.stepper.follow(statement)
            elif outer.type in LOOPS:
                self.stepper.forget(outer)
            else:
                raise SkillRefused(
                    f"line {self.unit.line_of(inner)} stands in a branch that some threads may not take"
                )

    def _before(self, statement: Node) -> None:
        """Run a statement before the scan; note what it puts into the array."""
        fill = self._fill_of(statement)
        if fill is None:
            self.stepper.follow(statement)
            return
        everyone = self.stepper.everyone
        try:
            value = self.state.value(fill.value, everyone)
            old, new = self.state.types.of(fill.value), self.state.kind
            value = self.state.converted(value, old, new)
            if not value.is_number(everyone):
                value = self._elements(fill, value)
            target = named(statement)[0].child_by_field_name("left")
            if target is not None:
                self.state.store(target, value, everyone, is_maybe=False)
        except Unclear:
            self.stepper.forget(statement)

    def _elements(self, fill: Fill, value: Value) -> Value:
        """Return what a fill stores as elements: those of a variable, or new ones."""
        known = self.state.variable_of(value)
        declared = self.state.flow.resolve(fill.value) if fill.value.type == "identifier" else None
        is_same_type = self.state.types.of(fill.value) == self.state.kind
        if known is None and declared is not None and is_same_type and self.state.is_plain(declared):
            value, known = self.state.group_of(declared), id(declared)
        if known is not None:
            self.copies.setdefault(known, []).append(fill.statement)
            return value
        first = self.state.new_group(self.threads)
        self.stored.append((fill, first))
        return values.single_parts(self.threads, first)

    def _fill_of(self, statement: Node) -> Fill | None:
        if statement.type != "expression_statement" or len(named(statement)) != 1:
            return None
        assignment = named(statement)[0]
        left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
        if assignment.type != "assignment_expression" or self.unit.operator(assignment) != "=":
            return None
        if left is None or right is None or self.state.root_of(left) is not self.array:
            return None
        reads = [a for a in self.accesses if span_of(right).contains(a.span)]
        nested = any(n.type in ("assignment_expression", "update_expression") for n in walk(right))
        return None if reads or nested or left.type != "subscript_expression" else Fill(statement, right)

    def _take_contents(self, before: list[Node]) -> Matcher:
        """Number the elements of the array of which nothing is known."""
        state = self.state
        for key in list(state.variables):
            first = state.variables[key]
            now = state.scalars.get(key, state.no_value())
            if not values.is_same(now, values.single_parts(self.threads, first)).all():
                self._forget_group(first)
                del state.variables[key]
        groups: list[Group] = []
        for fill, first in self.stored:
            at = self._place_of(first)
            if self.as_filled and self._is_spread(first) and self._is_next(fill, before):
                groups.append(Group(first, self.threads, fill, None, 0))
            elif self.as_filled and at is not None:
                groups.append(Group(first, self.threads, None, None, at))
            else:
                self._forget_group(first)
        self.writer = self.state.writer.copy()
        contents = state.new_group(state.length)
        known = state.memory.kind != values.UNKNOWN
        fresh = values.single_parts(state.length, contents)
        state.memory = values.select(known, state.memory, fresh)
        return Matcher(state, groups, contents)

    def _is_next(self, fill: Fill, before: list[Node]) -> bool:
        """Whether nothing between a fill and the scan touches the array."""
        at = next((i for i, statement in enumerate(before) if statement == fill.statement), len(before))
        later = [access for access in self.accesses if access.span.start >= fill.statement.end_byte]
        return at < len(before) and not any(
            span_of(statement).contains(access.span) for statement in before[at + 1 :] for access in later
        )

    def _place_of(self, first: int) -> int | None:
        """Return where the elements of a group lie in a row in the array."""
        group = values.single_parts(self.threads, first)
        for at in range(self.state.length - self.threads + 1):
            here = np.arange(at, at + self.threads)
            is_start = self.state.memory.kind[at] == values.PARTS
            if is_start and values.is_same(self.state.memory.at(here), group).all():
                return at
        return None

    def _is_spread(self, first: int) -> bool:
        """Whether every element of a group lies in the array."""
        group, memory = values.single_parts(self.threads, first), self.state.memory
        width = max(group.parts.shape[1], memory.parts.shape[1])
        rows = [values.rows_of(value, width) for value in (group, memory)]
        there = {
            row.tobytes() for row, kind in zip(rows[1], memory.kind, strict=True) if kind == values.PARTS
        }
        return all(row.tobytes() in there for row in rows[0])

    def _forget_group(self, first: int) -> None:
        group = values.running_parts(self.threads, first).at(np.full(self.state.length, self.threads - 1))
        memory = self.state.memory
        width = max(memory.parts.shape[1], group.parts.shape[1])
        parts = values.rows_of(memory, width)
        mask = values.rows_of(group, width)
        belongs = (memory.kind == values.PARTS) & (parts & mask).any(axis=1)
        self.state.memory = values.select(~belongs, memory, values.unknown(self.state.length))

    def _finish(
        self, block: Node, statements: list[Node], place: tuple[int, int, int], matched: tuple[Matcher, Found]
    ) -> Scan:
        first, at, end = place
        matcher, found = matched
        way, core = self.state.way, tuple(statements[first:end])
        if way is None:
            raise SkillRefused("nothing is combined")
        later = LaterUses(self.stepper, matcher, found, tuple(self.accesses), block, core)
        later.refuse_escapes()
        changed = later.changed()
        reads, needs_array = later.reads()
        return Scan(
            array=self.array,
            extents=self.state.extents,
            kind=self.state.kind,
            way=way,
            threads=self.threads,
            share=found.group.size // self.threads,
            statements=core,
            block=block,
            fill=found.group.fill,
            variable=found.group.variable,
            copies=tuple(self.copies.get(id(found.group.variable), ())),
            first=found.group.at,
            scalars=changed,
            memory=found.memory,
            reads=reads,
            needs_array=needs_array,
            waits=self._waits(found.group, is_met=first == at),
            is_repeated=later.is_repeated,
        )

    def _waits(self, group: Group, *, is_met: bool) -> bool:
        """Whether a thread may read what another one put into the array; `is_met`: barriers before it stay."""
        if group.fill is not None or group.variable is not None:
            return False
        share = group.size // self.threads
        own = np.repeat(self.state.threads, share)
        writers = self.writer[group.at : group.at + group.size]
        return not bool((writers == own).all() or (is_met and (writers == -1).all()))
