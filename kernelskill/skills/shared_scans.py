"""Scans of a block over a shared array, by doubling or by a tree: found by what they compute, however spelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kernelskill.skills import lockstep_values as values
from kernelskill.skills.device_code import refuse_words, words_in
from kernelskill.skills.kernel_launches import launches_of, template_bindings
from kernelskill.skills.lockstep import Stepper
from kernelskill.skills.lockstep_expressions import Block, Read, Unclear, element_kind
from kernelskill.skills.lockstep_values import Value
from kernelskill.skills.row_accumulators import Way
from kernelskill.skills.shared_arrays import read_shared_array, whole_accesses
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.skills.value_ranges import ValueRanges
from kernelskill.source.accesses import find_accesses
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.scopes import LOOPS, Declared
from kernelskill.source.syntax import Node, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

KINDS = frozenset(
    {"float", "double", "int", "unsigned", "long", "unsigned long", "long long", "unsigned long long"}
)
_MOST = 1024
_SHARES = (4, 2, 1)


@dataclass(frozen=True, eq=False)
class Fill:
    """The statement by which every thread puts its element into the array."""

    statement: Node = field(repr=False)
    value: Node = field(repr=False)


@dataclass(frozen=True, eq=False)
class Scan:
    """A stretch of statements that together take a running result over a block's elements."""

    array: VariableDef
    extents: tuple[int, ...]
    """Of the array; of one that the launch gives its size, as many as can be of interest."""
    kind: str
    way: Way
    threads: int
    share: int
    """Neighbouring elements for each thread."""
    statements: tuple[Node, ...] = field(repr=False)
    """What computes the scan, barriers around it included."""
    block: Node = field(repr=False)
    """The compound statement that they stand in."""
    fill: Fill | None
    """Where the elements are what one statement stores; it is replaced, too."""
    variable: Declared | None
    """Where the elements are what a variable holds."""
    copies: tuple[Node, ...] = field(repr=False)
    """Statements before it that put them into the array, then."""
    first: int
    """Where the elements lie in the array, if there is neither of them."""
    scalars: tuple[tuple[Declared, str], ...]
    """Variables that are changed and used later: `inclusive`, `exclusive`, or a number as text."""
    memory: tuple[int, bool] | None
    """Where in the array the results lie, and whether they are exclusive."""
    reads: tuple[tuple[Node, str], ...]
    """What later reads find, in the order of the text: `inclusive`, `exclusive` or `total`."""
    needs_array: bool
    """Whether something else reads results in the array."""
    waits: bool
    """Whether the elements lie in the array and other threads may have put them there since the last barrier."""
    is_repeated: bool
    """Whether it stands in a loop."""


def find_scans(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Scan]:
    """Return the scans of a kernel, in the order of the text.

    Raises:
        SkillRefused: There is none that can be followed.
    """
    loops = [loop for loop in find_loops(unit, kernel) if loop.has_barrier]
    arrays = [v for v in kernel.locals if v.storage in (Storage.SHARED, Storage.DYNAMIC_SHARED)]
    if not loops or not arrays:
        raise SkillRefused("no loop of it has a barrier" if arrays else "it has no shared array")
    threads = _threads(unit, kernel, context)
    refuse_words(unit, kernel, context, {"asm", "__asm__", "goto"}, "what it does can't be followed")
    found: list[Scan] = []
    refusal = ""
    for array in arrays:
        for block, anchor in _places(unit, kernel, loops, array):
            for as_filled in (True, False):
                try:
                    reader = _Reader(unit, kernel, context, array, threads, as_filled=as_filled)
                    found.append(reader.read(block, anchor))
                    break
                except (SkillRefused, Unclear) as refused:
                    refusal = refusal or str(refused)
    if not found:
        raise SkillRefused(refusal or "no loop with a barrier works on a shared array")
    return sorted(found, key=lambda scan: scan.statements[0].start_byte)


def _threads(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> int:
    sizes = set()
    for entry in launches_of(unit, kernel, context):
        x, y, z = entry.launch.block.values
        if x is None or (y, z) != (1, 1):
            raise SkillRefused(f"the block on line {entry.launch.line} is no constant along x alone")
        sizes.add(x)
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
        context: SkillContext,
        array: VariableDef,
        threads: int,
        *,
        as_filled: bool,
    ) -> None:
        self.as_filled = as_filled
        self.unit, self.kernel, self.array, self.threads = unit, kernel, array, threads
        bindings = template_bindings(unit, kernel, context)
        kind = element_kind(unit, array, bindings)
        if kind not in KINDS:
            raise SkillRefused(f"elements of type {kind!r} can't be handed from lane to lane")
        self.accesses = whole_accesses(unit, kernel, array, context)
        extents = self._extents(context, bindings)
        self.state = Block(unit, kernel, threads, array, extents, kind, bindings)
        self.stepper = Stepper(self.state)
        self.stored: list[tuple[Fill, int]] = []
        """Fills with the first of the elements that they brought."""
        self.copies: dict[int, list[Node]] = {}
        """Statements that put a variable's values into the array, by the variable's declaration."""

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
        self._approach(block)
        for statement in statements[:at]:
            self._before(statement, block)
        self._take_contents(statements[:at])
        self.entry = dict(self.state.scalars)
        self.state.is_strict = True
        end, found = self._run_scan(statements, at)
        while end < len(statements) and self.stepper.is_barrier(statements[end]):
            end += 1
        first = at
        while first and self.stepper.is_barrier(statements[first - 1]):
            first -= 1
        return self._finish(block, statements, (first, at, end), found)

    def _run_scan(self, statements: list[Node], at: int) -> tuple[int, _Found]:
        """Run statements from a loop on until they have computed a scan; return where they end."""
        best: tuple[int, _Found] | None = None
        start = statements[at].start_byte
        reason = f"the loop on line {self.unit.line_of(start)} takes no running result over the block"
        for end in range(at, len(statements)):
            try:
                self.stepper.run(statements[end])
            except Unclear as unclear:
                reason = str(unclear)
                break
            found = self._results(start)
            best = (end + 1, found) if found is not None else best
            if found is not None and found.memory is not None:
                break
        if best is None:
            raise SkillRefused(reason)
        return best

    def _approach(self, block: Node) -> None:
        """Run what comes before a compound statement on the way to it."""
        path = [block, *ancestors(block)]
        path = path[: path.index(self.kernel.body) + 1]
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

    def _before(self, statement: Node, block: Node) -> None:
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
                declared = self.state.flow.resolve(fill.value) if fill.value.type == "identifier" else None
                if declared is not None and old == new and self.state.is_plain(declared):
                    value = self.state.group_of(declared)
                    self.copies.setdefault(id(declared), []).append(statement)
                else:
                    first = self.state.new_group(self.threads)
                    self.stored.append((fill, first))
                    value = values.single_parts(self.threads, first)
            target = named(statement)[0].child_by_field_name("left")
            if target is not None:
                self.state.store(target, value, everyone, is_maybe=False)
        except Unclear:
            self.stepper.forget(statement)

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

    def _take_contents(self, before: list[Node]) -> None:
        """Number the elements of the array of which nothing is known."""
        state = self.state
        for key in list(state.variables):
            first = state.variables[key]
            now = state.scalars.get(key, state.no_value())
            if not values.is_same(now, values.single_parts(self.threads, first)).all():
                self._forget_group(first)
        self.groups: list[_Group] = []
        for fill, first in self.stored:
            at = self._place_of(first)
            if self.as_filled and self._is_spread(first) and self._is_next(fill, before):
                self.groups.append(_Group(first, self.threads, fill, None, 0))
            elif self.as_filled and at is not None:
                self.groups.append(_Group(first, self.threads, None, None, at))
            else:
                self._forget_group(first)
        self.writer = self.state.writer.copy()
        self.contents = state.new_group(state.length)
        known = state.memory.kind != values.UNKNOWN
        fresh = values.single_parts(state.length, self.contents)
        state.memory = values.select(known, state.memory, fresh)

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
        rows = [np.pad(v.parts, ((0, 0), (0, width - v.parts.shape[1]))) for v in (group, memory)]
        there = {
            row.tobytes() for row, kind in zip(rows[1], memory.kind, strict=True) if kind == values.PARTS
        }
        return all(row.tobytes() in there for row in rows[0])

    def _forget_group(self, first: int) -> None:
        group = values.running_parts(self.threads, first).at(np.full(self.state.length, self.threads - 1))
        memory = self.state.memory
        width = max(memory.parts.shape[1], group.parts.shape[1])
        parts = np.pad(memory.parts, ((0, 0), (0, width - memory.parts.shape[1])))
        mask = np.pad(group.parts, ((0, 0), (0, width - group.parts.shape[1])))
        belongs = (memory.kind == values.PARTS) & (parts & mask).any(axis=1)
        self.state.memory = values.select(~belongs, memory, values.unknown(self.state.length))

    # What was computed

    def _results(self, start: int) -> _Found | None:
        """Return what the statements run so far computed; None where it is no scan yet."""
        if self.state.way is None:
            return None
        for group in self._groups():
            found = self._match(group, start)
            if found is not None:
                return found
        return None

    def _groups(self) -> Iterator[_Group]:
        yield from self.groups
        for key, first in self.state.variables.items():
            yield _Group(first, self.threads, None, self.state.names[key], 0)
        for share in _SHARES:
            size = share * self.threads
            for at in range(0, self.state.length - size + 1, self.state.extents[-1]):
                yield _Group(self.contents + at, size, None, None, at)

    def _match(self, group: _Group, start: int) -> _Found | None:
        inclusive = values.running_parts(group.size, group.first)
        memory = self._match_memory(group, inclusive)
        scalars = {}
        if group.size == self.threads:
            for key, value in self.state.scalars.items():
                outside = self.state.names[key].name_span.start < start
                changed = outside and value is not self.entry.get(key)
                which = self.which(value, inclusive, self.stepper.everyone) if changed else ""
                if which in ("inclusive", "exclusive"):
                    scalars[key] = which
        if memory is None and not scalars:
            return None
        return _Found(group, inclusive, memory, scalars)

    def _match_memory(self, group: _Group, inclusive: Value) -> tuple[int, bool] | None:
        memory, size = self.state.memory, group.size
        for is_exclusive in (False, True):
            first, rest = int(is_exclusive), inclusive.at(np.arange(size - is_exclusive))
            for at in range(self.state.length - size + 1):
                here = np.arange(at, at + size)
                if is_exclusive and not self._is_neutral(memory.at(here[:1])):
                    continue
                ends = values.is_same(memory.at(here[-1:]), rest.at(np.array([len(rest.kind) - 1])))
                if ends.all() and values.is_same(memory.at(here[first:]), rest).all():
                    return at, is_exclusive
        return None

    def _is_neutral(self, value: Value) -> bool:
        way = self.state.way
        return way is not None and bool(values.is_neutral(value, way.operator, self.state.kind).all())

    def which(self, value: Value, inclusive: Value, mask: np.ndarray) -> str:
        """Return what values of the threads of a mask are of a scan of one element a thread."""
        if len(inclusive.kind) != self.threads or not mask.any():
            return ""
        if values.is_same(value, inclusive)[mask].all():
            return "inclusive"
        before = inclusive.at(np.maximum(self.state.threads - 1, 0))
        same = values.is_same(value, before) & (self.state.threads > 0)
        way = self.state.way
        neutral = values.is_neutral(value, way.operator, self.state.kind) if way is not None else same
        if (same | (neutral & (self.state.threads == 0)))[mask].all():
            return "exclusive"
        total = inclusive.at(np.full(self.threads, self.threads - 1))
        return "total" if values.is_same(value, total)[mask].all() else ""

    # What comes after

    def _finish(
        self, block: Node, statements: list[Node], place: tuple[int, int, int], found: _Found
    ) -> Scan:
        first, at, end = place
        way = self.state.way
        if way is None:
            raise SkillRefused("nothing is combined")
        core = statements[first:end]
        fill = found.group.fill
        self._refuse_escapes(core)
        changed = self._changed(core, found)
        self.state.is_strict = False
        self.state.meet()
        self.state.reads.clear()
        for statement in statements[end:]:
            self.stepper.follow(statement)
        is_repeated = any(node.type in LOOPS for node in ancestors(block))
        if not is_repeated:
            self._leave(block)
        reads, needs_array = self._later_reads(found, block, core, is_repeated=is_repeated)
        share = found.group.size // self.threads
        if needs_array and found.memory is None:
            raise SkillRefused(f"{self.array.name!r} is used later, but does not hold the results")
        return Scan(
            array=self.array,
            extents=self.state.extents,
            kind=self.state.kind,
            way=way,
            threads=self.threads,
            share=share,
            statements=tuple(core),
            block=block,
            fill=fill,
            variable=found.group.variable,
            copies=tuple(self.copies.get(id(found.group.variable), ())),
            first=found.group.at,
            scalars=changed,
            memory=found.memory,
            reads=reads,
            needs_array=needs_array,
            waits=self._waits(found.group, is_met=first == at),
            is_repeated=is_repeated,
        )

    def _waits(self, group: _Group, *, is_met: bool) -> bool:
        """Whether a thread may read what another one put into the array; `is_met`: barriers before it stay."""
        if group.fill is not None or group.variable is not None:
            return False
        share = group.size // self.threads
        own = np.repeat(self.state.threads, share)
        writers = self.writer[group.at : group.at + group.size]
        return not bool((writers == own).all() or (is_met and (writers == -1).all()))

    def _refuse_escapes(self, core: list[Node]) -> None:
        """Decline where statements that are taken out declare what is used elsewhere."""
        for variable in self.kernel.locals:
            if any(variable.declaration == statement for statement in core):
                raise SkillRefused(f"{variable.name!r} is declared within the scan")

    def _changed(self, core: list[Node], found: _Found) -> tuple[tuple[Declared, str], ...]:
        """Return the variables from outside that the scan changes and that are used elsewhere."""
        start, end = core[0].start_byte, core[-1].end_byte
        result: list[tuple[Declared, str]] = []
        seen: set[int] = set()
        for write in self.state.flow.writes:
            declared = write.declared
            inside = start <= write.node.start_byte < end
            own = isinstance(declared, VariableDef) and start <= declared.name_span.start < end
            if not inside or own or id(declared) in seen:
                continue
            seen.add(id(declared))
            if not self._is_used(declared, start, end):
                continue
            value = self.state.scalars.get(id(declared), self.state.no_value())
            which = found.scalars.get(id(declared), "")
            if not which and value.is_number(self.stepper.everyone) and len(set(value.number)) == 1:
                which = str(int(value.number[0]))
            if not which:
                raise SkillRefused(f"{declared.name!r} is used after the scan, and is no result of it")
            result.append((declared, which))
        return tuple(result)

    def _is_used(self, declared: Declared, start: int, end: int) -> bool:
        """Whether a variable's value after a range may be read."""
        body = self.kernel.body
        is_looped = body is not None and any(
            node.type in LOOPS and node.start_byte < start and end <= node.end_byte for node in walk(body)
        )
        for node in walk(body) if body is not None else ():
            outside = node.start_byte >= end or (is_looped and node.start_byte < start)
            is_use = node.type == "identifier" and self.unit.text_of(node) == declared.name
            is_use = is_use and node.start_byte != declared.name_span.start
            if outside and is_use and self.state.flow.resolve(node) is declared:
                return True
        return False

    def _leave(self, block: Node) -> None:
        """Run what comes after a compound statement that stands in no loop."""
        inner = block
        for outer in ancestors(block):
            if inner == self.kernel.body:
                return
            if outer.type == "compound_statement":
                for statement in named(outer):
                    if statement.start_byte >= inner.end_byte:
                        self.stepper.follow(statement)
            inner = outer

    def _later_reads(
        self, found: _Found, block: Node, core: list[Node], *, is_repeated: bool
    ) -> tuple[tuple[tuple[Node, str], ...], bool]:
        """Return what reads after the scan find, and whether one of them needs the array."""
        fill, end = found.group.fill, core[-1].end_byte
        first = fill.statement.start_byte if fill is not None else core[0].start_byte
        reads: list[tuple[Node, str]] = []
        needs_array = False
        for access in self.accesses:
            if first <= access.span.start < end:
                continue
            if access.span.start < first:
                if is_repeated and access.mode.reads:
                    raise SkillRefused(f"line {access.line} reads {self.array.name!r} in the next turn")
                continue
            if not access.mode.reads:
                continue
            which = self._later_read(access.node, found, block) if not access.mode.writes else "array"
            needs_array = needs_array or which == "array"
            if which != "array":
                reads.append((access.node, which))
        return tuple(reads), needs_array

    def _later_read(self, node: Node, found: _Found, block: Node) -> str:
        """Return what a read finds; `array` where only the array can tell."""
        seen = [read for read in self.state.reads if read.node == node]
        if seen and all(read.places is not None for read in seen):
            kinds = {self.which(read.value, found.inclusive, read.mask) for read in seen}
            if len(kinds) == 1 and "" not in kinds:
                return kinds.pop() if span_of(block).contains(span_of(node)) else "array"
        self._refuse_junk(node, seen, found)
        return "array"

    def _refuse_junk(self, node: Node, seen: list[Read], found: _Found) -> None:
        """Decline where a read may find what the scan leaves beside its results."""
        at, size = found.memory[0] if found.memory else 0, found.group.size
        if found.memory is not None and size == self.state.length and self.array.storage is Storage.SHARED:
            return
        for read in seen:
            places = read.places[read.mask] if read.places is not None else None
            if found.memory is None or places is None or (places < at).any() or (places >= at + size).any():
                break
        else:
            if seen:
                return
        line = self.unit.line_of(node)
        raise SkillRefused(f"what {self.unit.text_of(node)} on line {line} finds of the scan can't be told")


@dataclass(frozen=True, eq=False)
class _Group:
    """Elements that may be those of a scan."""

    first: int
    size: int
    fill: Fill | None
    variable: Declared | None
    at: int


@dataclass(frozen=True, eq=False)
class _Found:
    group: _Group
    inclusive: Value
    memory: tuple[int, bool] | None
    scalars: dict[int, str]


def uses_volatile(unit: SourceUnit, scan: Scan) -> bool:
    """Whether the array is declared volatile."""
    return "volatile" in words_in(unit, scan.array.span)
