"""Two loops of one block that follow each other: whether they run over the same range, and what lies between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.canonical import Canonical
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.plain_code import accesses_in, refuse_unclear
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, Span, named, span_of, walk
from kernelskill.source.unit import SourceUnit

COUNTER = "#"
"""Stands for the counter of either loop in canonical forms."""


@dataclass(frozen=True)
class LoopPair:
    """Two loops with nothing but plain statements between them."""

    first: Loop
    second: Loop
    between: tuple[Node, ...]

    @property
    def span(self) -> Span:
        """From the first loop to the end of the second."""
        return Span(self.first.span.start, self.second.span.end)

    @property
    def key(self) -> str:
        """Names the pair within its kernel."""
        return f"{self.first.key}+{self.second.key}"

    @property
    def lines(self) -> str:
        """For people."""
        return f"the loops on lines {self.first.line} and {self.second.line}"

    def canonical(self, unit: SourceUnit, kernel: KernelDef) -> Canonical:
        """Return what compares expressions of the two bodies, each counter written as `COUNTER`."""
        counters = [loop.declared for loop in (self.first, self.second)]
        return Canonical(unit, kernel, {id(entry): COUNTER for entry in counters if entry is not None})


def find_pairs(unit: SourceUnit, kernel: KernelDef) -> Iterator[LoopPair]:
    """Yield each `for` loop with the next one of its block, where only plain statements lie between."""
    loops = {loop.node.id: loop for loop in find_loops(unit, kernel)}
    for block in walk(kernel.body) if kernel.body is not None else ():
        if block.type != "compound_statement":
            continue
        first: Loop | None = None
        between: list[Node] = []
        for statement in named(block):
            loop = loops.get(statement.id)
            if loop is not None and loop.kind is LoopKind.FOR:
                if first is not None:
                    yield LoopPair(first, loop, tuple(between))
                first, between = loop, []
            elif statement.type in ("declaration", "expression_statement"):
                between.append(statement)
            else:
                first = None


def refuse_other_range(unit: SourceUnit, kernel: KernelDef, pair: LoopPair) -> None:
    """Decline two loops that don't certainly count the same values.

    Raises:
        SkillRefused: They may not.
    """
    first, second = pair.first, pair.second
    refuse_uncounted(unit, kernel, first, pair.span)
    refuse_uncounted(unit, kernel, second, pair.span)
    form = pair.canonical(unit, kernel)
    same = (first.comparison, first.step_operator) == (second.comparison, second.step_operator)
    for one, other in ((first.start, second.start), (first.bound, second.bound), (first.step, second.step)):
        same = same and (one is None) == (other is None)
        same = same and (one is None or other is None or form.of(one) == form.of(other))
    if not same or counter_type(first) != counter_type(second):
        raise SkillRefused(f"{pair.lines} do not run over the same range")


def refuse_uncounted(unit: SourceUnit, kernel: KernelDef, loop: Loop, span: Span) -> None:
    """Decline a loop whose counter is not plain or whose bounds change within a range.

    Raises:
        SkillRefused: It is another kind of loop.
    """
    parts = [loop.start, loop.bound, *([loop.step] if loop.step is not None else [])]
    if not loop.is_counted or loop.start is None or loop.bound is None or not loop.step_operator:
        raise SkillRefused(f"the loop on line {loop.line} does not count plainly")
    if not all(part is not None and is_invariant(unit, kernel, part, span) for part in parts):
        raise SkillRefused(f"the bounds of the loop on line {loop.line} are more than plain variables")


def counter_type(loop: Loop) -> str:
    """Return the plain type of a loop's counter; empty where it has none."""
    declared = loop.declared
    return plain_type(declared.base_type) if isinstance(declared, VariableDef) else ""


def is_own_counter(loop: Loop) -> bool:
    """Whether the counter lives no longer than the loop."""
    declared = loop.declared
    return isinstance(declared, VariableDef) and loop.span.contains(declared.name_span)


def refuse_lost_counter(pair: LoopPair) -> None:
    """Decline to take the second loop away where its counter may be used after it.

    Raises:
        SkillRefused: It lives on, and the first loop does not leave it the same.
    """
    if not is_own_counter(pair.second) and pair.first.declared is not pair.second.declared:
        raise SkillRefused(f"the counter of the loop on line {pair.second.line} lives on after it")


def used_variables(unit: SourceUnit, kernel: KernelDef, node: Node) -> dict[int, Declared]:
    """Return the variables that a piece of code reads or writes, by the id of their declaration."""
    flow = flow_of(unit, kernel)
    found = {}
    for entry in walk(node):
        declared = flow.resolve(entry) if entry.type == "identifier" else None
        if declared is not None:
            found[id(declared)] = declared
    return found


def written_variables(unit: SourceUnit, kernel: KernelDef, node: Node) -> dict[int, Declared]:
    """Return the variables declared outside a piece of code that it writes; elements of arrays don't count."""
    inside = span_of(node)
    return {
        id(write.declared): write.declared
        for write in flow_of(unit, kernel).writes
        if inside.contains(span_of(write.node)) and not inside.contains(write.declared.name_span)
    }


def refuse_aliased_variables(unit: SourceUnit, kernel: KernelDef, node: Node) -> None:
    """Decline code that uses a variable which something else may change: a reference, an address.

    Raises:
        SkillRefused: It does.
    """
    flow = flow_of(unit, kernel)
    for declared in used_variables(unit, kernel, node).values():
        hidden = any(write.operator in ("&", "asm", "lambda") for write in flow.writes_to(declared))
        if declared.is_reference or hidden:
            raise SkillRefused(f"{declared.name!r} may be changed by another name")


def refuse_between(unit: SourceUnit, kernel: KernelDef, pair: LoopPair, context: SkillContext) -> None:
    """Decline a pair whose first loop can't move behind the statements that follow it.

    Raises:
        SkillRefused: A statement between the loops may meet what the first loop does.
    """
    used, written = (
        used_variables(unit, kernel, pair.first.node),
        written_variables(unit, kernel, pair.first.node),
    )
    names = {entry.name for entry in used.values()}
    for statement in pair.between:
        line = unit.line_of(statement)
        refuse_unclear(unit, kernel, statement, context)
        if accesses_in(unit, kernel, statement, context):
            raise SkillRefused(f"line {line}, between {pair.lines}, uses memory")
        own = used_variables(unit, kernel, statement)
        changed = written_variables(unit, kernel, statement)
        declares = {entry.name for entry in own.values() if span_of(statement).contains(entry.name_span)}
        met = [own[key].name for key in own if key in written] + [
            used[key].name for key in changed if key in used
        ]
        if met or declares & names:
            name = met[0] if met else min(declares & names)
            raise SkillRefused(f"line {line}, between {pair.lines}, uses {name!r} as the first loop does")
