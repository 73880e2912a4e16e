"""What happens to the results of a scan: which variables keep them, and what later reads of the array find."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.lockstep import Stepper
from kernelskill.skills.lockstep_expressions import Block
from kernelskill.skills.lockstep_memory import Read
from kernelskill.skills.scan_matches import Matcher
from kernelskill.skills.shared_scans import Found
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.accesses import Access
from kernelskill.source.declarations import Storage
from kernelskill.source.scopes import LOOPS, Declared
from kernelskill.source.syntax import Node, ancestors, named, span_of, walk


@dataclass(frozen=True, eq=False)
class LaterUses:
    """Looks at what follows a scan."""

    stepper: Stepper = field(repr=False)
    matcher: Matcher = field(repr=False)
    found: Found
    accesses: tuple[Access, ...] = field(repr=False)
    """Every access of the kernel to the array."""
    block: Node = field(repr=False)
    core: tuple[Node, ...] = field(repr=False)

    @property
    def is_repeated(self) -> bool:
        """Whether the scan stands in a loop."""
        return any(node.type in LOOPS for node in ancestors(self.block))

    @property
    def _state(self) -> Block:
        return self.stepper.block

    def refuse_escapes(self) -> None:
        """Decline where statements that are taken out declare what is used elsewhere.

        Raises:
            SkillRefused: One does.
        """
        for variable in self._state.kernel.locals:
            if variable.declaration in self.core:
                raise SkillRefused(f"{variable.name!r} is declared within the scan")

    def changed(self) -> tuple[tuple[Declared, str], ...]:
        """Return the variables from outside that the scan changes and that are used elsewhere.

        Raises:
            SkillRefused: One of them holds nothing that is known.
        """
        start, end = self.core[0].start_byte, self.core[-1].end_byte
        result: list[tuple[Declared, str]] = []
        seen: set[int] = set()
        for write in self._state.flow.writes:
            declared = write.declared
            inside = start <= write.node.start_byte < end
            own = start <= declared.name_span.start < end
            if not inside or own or id(declared) in seen:
                continue
            seen.add(id(declared))
            if self._is_used(declared, start, end):
                result.append((declared, self._value_of(declared)))
        return tuple(result)

    def _value_of(self, declared: Declared) -> str:
        value = self._state.scalars.get(id(declared), self._state.no_value())
        which = self.found.scalars.get(id(declared), "")
        if not which and value.is_number(self.stepper.everyone) and len(set(value.number)) == 1:
            which = str(int(value.number[0]))
        if not which:
            raise SkillRefused(f"{declared.name!r} is used after the scan, and is no result of it")
        return which

    def _is_used(self, declared: Declared, start: int, end: int) -> bool:
        """Whether a variable's value after a range may be read."""
        body = self._state.kernel.body
        for node in walk(body) if body is not None else ():
            outside = node.start_byte >= end or (self.is_repeated and node.start_byte < start)
            is_use = node.type == "identifier" and self.stepper.unit.text_of(node) == declared.name
            is_use = is_use and node.start_byte != declared.name_span.start
            if outside and is_use and self._state.flow.resolve(node) is declared:
                return True
        return False

    def reads(self) -> tuple[tuple[tuple[Node, str], ...], bool]:
        """Run what follows; return what later reads find, and whether one of them needs the array.

        Raises:
            SkillRefused: What one of them finds can't be told.
        """
        self._state.is_strict = False
        self._state.meet()
        self._state.reads.clear()
        self._follow_on()
        fill, end = self.found.group.fill, self.core[-1].end_byte
        first = fill.statement.start_byte if fill is not None else self.core[0].start_byte
        found: list[tuple[Node, str]] = []
        needs_array = False
        for access in self.accesses:
            if access.span.start < first and self.is_repeated and access.mode.reads:
                raise SkillRefused(f"line {access.line} reads {access.root_name!r} in the next turn")
            if access.span.start < end or not access.mode.reads:
                continue
            which = self._find(access.node) if not access.mode.writes else "array"
            needs_array = needs_array or which == "array"
            if which != "array":
                found.append((access.node, which))
        if needs_array and self.found.memory is None:
            raise SkillRefused(f"{self._state.array.name!r} is used later, but does not hold the results")
        return tuple(found), needs_array

    def _follow_on(self) -> None:
        """Run what comes after the scan, as far as that stands in no loop around it."""
        inner = self.core[-1]
        for outer in (self.block, *ancestors(self.block)):
            if outer.type in LOOPS:
                return
            for statement in named(outer) if outer.type == "compound_statement" else ():
                if statement.start_byte >= inner.end_byte:
                    self.stepper.follow(statement)
            if outer == self._state.kernel.body:
                return
            inner = outer

    def _find(self, node: Node) -> str:
        """Return what a read finds; `array` where only the array can tell."""
        seen = [read for read in self._state.reads if read.node == node]
        if seen and all(read.places is not None for read in seen):
            kinds = {self.matcher.which(read.value, self.found.inclusive, read.mask) for read in seen}
            if len(kinds) == 1 and "" not in kinds:
                return kinds.pop() if span_of(self.block).contains(span_of(node)) else "array"
        if not self._is_kept(seen):
            line, text = self.stepper.unit.line_of(node), self.stepper.unit.text_of(node)
            raise SkillRefused(f"what {text} on line {line} finds of the scan can't be told")
        return "array"

    def _is_kept(self, seen: list[Read]) -> bool:
        """Whether a read finds none of what the scan leaves in the array beside its results."""
        memory, size = self.found.memory, self.found.group.size
        if memory is None:
            return True  # whether the array is needed is asked later
        if size == self._state.length and self._state.array.storage is Storage.SHARED:
            return True
        at = memory[0]
        for read in seen:
            places = read.places[read.mask] if read.places is not None else None
            if places is None or (places < at).any() or (places >= at + size).any():
                return False
        return bool(seen)
