"""Tests inside a loop that hold for one range of its counter only: the range, and the loop without the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelskill.skills.adjacent_loops import counter_type, is_own_counter, refuse_aliased_variables
from kernelskill.skills.approximations import is_defined
from kernelskill.skills.expression_types import is_pure
from kernelskill.skills.linear_bounds import LinearForm, LinearReader, is_int, is_plain, range_names
from kernelskill.skills.loop_edits import is_statement_of_block, surround_loop
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.loop_statements import local_values
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.syntax import Node, Span, named, strip_parentheses
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class Guard:
    """One `if` that guards all that a loop does, split into what must hold together."""

    statement: Node
    leaves: tuple[Node, ...]
    skips: bool
    """Whether it is `if (...) continue;`: then each leaf must not hold."""


@dataclass(frozen=True)
class ClippedLoop:
    """A loop with the tests that its bounds can take over."""

    loop: Loop
    guards: tuple[Guard, ...]
    lows: tuple[LinearForm, ...]
    """The counter is at least each of these."""
    ends: tuple[LinearForm, ...]
    """The counter is less than each of these."""
    taken: frozenset[int] = field(default=frozenset())
    """Ids of the leaves that the bounds take over."""


def find_clipped(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[ClippedLoop]:
    """Yield the loops whose bounds can take over a test."""
    for loop in find_loops(unit, kernel):
        try:
            found = _read(unit, kernel, loop, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        if found is not None:
            yield found


def _read(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> ClippedLoop | None:
    guards, values = guards_of(unit, kernel, loop)
    if not guards:
        return None
    refuse_shape(unit, kernel, loop)
    if is_defined(unit, "min", context) or is_defined(unit, "max", context):
        raise SkillRefused("the source defines min or max itself")
    refuse_unclear(unit, kernel, loop.node, context)
    reader = LinearReader(unit, kernel, loop, values)
    lows: list[LinearForm] = []
    ends: list[LinearForm] = []
    taken: set[int] = set()
    for guard in guards:
        for leaf in guard.leaves:
            bound = reader.bound(leaf, guard.skips)
            if bound is not None:
                (lows if bound[0] else ends).append(bound[1])
                taken.add(leaf.id)
                refuse_aliased_variables(unit, kernel, leaf)
    if not taken:
        return None
    return ClippedLoop(loop, tuple(guards), tuple(lows), tuple(ends), frozenset(taken))


def refuse_shape(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> None:
    """Decline a loop that does not count up by one in an int of its own, between plain bounds.

    Raises:
        SkillRefused: It does not.
    """
    where = f"the loop on line {loop.line}"
    if loop.kind is not LoopKind.FOR or not loop.is_counted or loop.signed_step != 1:
        raise SkillRefused(f"{where} does not count up by one")
    if not is_own_counter(loop) or counter_type(loop) != "int" or loop.comparison not in ("<", "<="):
        raise SkillRefused(f"{where} has no int counter of its own below a bound")
    for part in (loop.start, loop.bound):
        known = part is not None and is_int(unit, kernel, part) and is_plain(unit, part)
        if part is None or not known or not is_invariant(unit, kernel, part, loop.span):
            raise SkillRefused(f"the bounds of {where} are no plain int")


def guards_of(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> tuple[list[Guard], dict[int, Node]]:
    """Return the tests without which a turn of a loop does nothing, and the values of locals before them."""
    guards: list[Guard] = []
    values: dict[int, Node] = {}
    inner = {entry.node.id: entry for entry in find_loops(unit, kernel)}
    statements = _statements(loop.body)
    while statements:
        head = statements.pop(0)
        if head.type == "declaration":
            if not _is_pure_declaration(unit, head):
                break
            values |= local_values(unit, kernel, [head])
            continue
        guard = _guard(unit, head)
        if guard is not None and guard.skips:
            guards.append(guard)
            continue
        if statements:
            break
        below = inner.get(head.id)
        body = head.child_by_field_name("consequence")
        if guard is not None and body is not None:
            guards.append(guard)
            statements = _statements(body)
        elif below is not None and below.is_counted and is_own_counter(below) and below.kind is LoopKind.FOR:
            statements = _statements(below.body)
    return guards, values


def _statements(body: Node) -> list[Node]:
    return named(body) if body.type == "compound_statement" else [body]


def _is_pure_declaration(unit: SourceUnit, declaration: Node) -> bool:
    for child in declaration.children_by_field_name("declarator"):
        value = child.child_by_field_name("value")
        if value is None or not (is_plain(unit, value) or is_pure(unit, value)):
            return False
    return True


def _guard(unit: SourceUnit, statement: Node) -> Guard | None:
    condition = statement.child_by_field_name("condition")
    body = statement.child_by_field_name("consequence")
    if statement.type != "if_statement" or condition is None or body is None:
        return None
    if statement.child_by_field_name("alternative") is not None or not is_plain(unit, condition):
        return None
    if any(child.type == "constexpr" for child in statement.children) or len(named(condition)) != 1:
        return None
    inner = _statements(body)
    skips = len(inner) == 1 and inner[0].type == "continue_statement"
    leaves = conjuncts(unit, condition, "||" if skips else "&&")
    return Guard(statement, tuple(leaves), skips)


def conjuncts(unit: SourceUnit, node: Node, joiner: str) -> list[Node]:
    """Return the parts of a condition that `&&` or `||` joins; the condition itself where it has none."""
    bare = strip_parentheses(node)
    left, right = bare.child_by_field_name("left"), bare.child_by_field_name("right")
    if bare.type == "binary_expression" and unit.operator(bare) == joiner and left and right:
        return [*conjuncts(unit, left, joiner), *conjuncts(unit, right, joiner)]
    return [bare if node.type == "condition_clause" else node]


def write_clipped(
    unit: SourceUnit, clipped: ClippedLoop, context: SkillContext, edits: EditSet, *, is_wide: bool
) -> None:
    """Compute the bounds before the loop and take the tests out of it."""
    loop = clipped.loop
    assert loop.start is not None
    names = range_names(unit, loop, clipped.lows, clipped.ends, context, is_wide=is_wide)
    surround_loop(unit, edits, loop, names.lines, [])
    if clipped.lows:
        edits.replace(loop.start, names.first)
    condition = loop.node.child_by_field_name("condition")
    if clipped.ends and condition is not None:
        edits.replace(condition, f"{loop.variable} < {names.end}")
    for guard in clipped.guards:
        _write_guard(unit, guard, clipped.taken, edits)


def _write_guard(unit: SourceUnit, guard: Guard, taken: frozenset[int], edits: EditSet) -> None:
    left = [leaf for leaf in guard.leaves if leaf.id not in taken]
    if len(left) == len(guard.leaves):
        return
    condition = guard.statement.child_by_field_name("condition")
    body = guard.statement.child_by_field_name("consequence")
    assert condition is not None
    assert body is not None
    if left:
        joiner = " || " if guard.skips else " && "
        edits.replace(condition, f"({joiner.join(clean_text(unit, leaf) for leaf in left)})")
    elif guard.skips and not is_statement_of_block(guard.statement):
        edits.replace(guard.statement, ";")
    elif guard.skips:
        edits.delete_line(guard.statement)
    else:
        start = guard.statement.start_byte
        edits.delete(Span(start, body.start_byte))
