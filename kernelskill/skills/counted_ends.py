"""Loops that a condition on data ends, and counts besides: what of their tests a stretch of turns can go without."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.device_code import BARRIERS, WARP_WORDS, fresh_name, words_outside
from kernelskill.skills.expression_types import is_pure
from kernelskill.skills.global_index import joined_tests
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import clean_text, shifted
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.expressions import static_type
from kernelskill.source.literals import read_integer
from kernelskill.source.loops import Loop, LoopKind
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, ancestors, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LONGEST = 24
"""Statements of a turn that is written out several times."""
_LOOSE = frozenset({"conditional_expression", "assignment_expression", "comma_expression"})
_MEMORY = frozenset({"subscript_expression", "pointer_expression", "call_expression", "field_expression"})
_STEP = "    "
_WHY = "// No count is asked for in {turns} turns once it is known to allow them all."


@dataclass(frozen=True)
class Count:
    """A test of a loop's condition by which a variable that every turn adds one to ends it."""

    test: Node
    name: str
    bound: Node
    inclusive: bool
    value: int | None
    """Of the bound, where it is a literal."""

    def allows(self, unit: SourceUnit, turns: int) -> str:
        """Return the test that so many turns may follow."""
        more = turns - 1 if self.inclusive else turns
        if self.value is not None:
            return f"{self.name} <= {self.value - more}"
        bound = clean_text(unit, self.bound)
        wide = bound if bound.isidentifier() else f"({bound})"
        return f"(long long){wide} - {self.name} >= {more}"


@dataclass(frozen=True)
class CountedEnds:
    """A loop with the tests of its condition."""

    loop: Loop
    counts: tuple[Count, ...]
    others: tuple[Node, ...]


def read_counted_ends(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext
) -> CountedEnds | None:
    """Return the tests of a loop; None where counts alone end it, or none does.

    Raises:
        SkillRefused: It can't be written twice.
    """
    condition = loop.node.child_by_field_name("condition")
    if condition is None or loop.kind not in (LoopKind.FOR, LoopKind.WHILE) or not loop.is_innermost:
        return None
    tests = joined_tests(unit, strip_parentheses(condition), "&&")
    counts = tuple(count for test in tests if (count := _count(unit, kernel, loop, test)) is not None)
    others = tuple(test for test in tests if not any(count.test == test for count in counts))
    if not counts or not others:
        return None
    _refuse_shape(unit, kernel, loop, condition, context)
    return CountedEnds(loop, counts, others)


def _refuse_shape(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, condition: Node, context: SkillContext
) -> None:
    line = f"the loop on line {loop.line}"
    if unit.is_locked(loop.node):
        raise SkillRefused(f"{line} is locked")
    if loop.has_break or loop.has_return:
        raise SkillRefused(f"{line} is left from within a turn")
    if any(node.type in ("declaration", "init_declarator") for node in walk(condition)):
        raise SkillRefused(f"{line} declares a variable in its condition")
    if not is_pure(unit, condition):
        raise SkillRefused(f"the condition of {line} does more than test")
    if _has_copy(unit, loop):
        raise SkillRefused(f"{line} is what a stretch of turns has left")
    if sum(node.type.endswith("_statement") for node in walk(loop.body)) > _LONGEST:
        raise SkillRefused(f"{line} is too long to be written out")
    if any(node.type in _MEMORY for node in walk(condition)):
        raise SkillRefused(f"the condition of {line} reads memory, which a count may guard")
    if any(_may_divide_by_zero(unit, node) for node in walk(condition)):
        raise SkillRefused(f"the condition of {line} divides, which a count may guard")
    refuse_unclear(unit, kernel, loop.node, context)
    if loop.calls and words_outside(unit, kernel, context) & (BARRIERS | WARP_WORDS):
        raise SkillRefused(f"{line} may call a function in which threads meet")


def _may_divide_by_zero(unit: SourceUnit, node: Node) -> bool:
    """Whether an operation is a quotient or remainder by anything but a number."""
    if node.type != "binary_expression" or unit.operator(node) not in ("/", "%"):
        return False
    divisor = node.child_by_field_name("right")
    return divisor is None or not read_integer(unit.text_of(divisor))


def _count(unit: SourceUnit, function: KernelDef, loop: Loop, test: Node) -> Count | None:
    """Return a test as one of a count; None for any other."""
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    operator = unit.operator(test) if test.type == "binary_expression" else ""
    if operator not in _MIRRORED or left is None or right is None:
        return None
    for variable, bound, sign in ((left, right, operator), (right, left, _MIRRORED[operator])):
        if sign not in ("<", "<=") or not _counts_turns(unit, function, loop, variable):
            continue
        if static_type(unit, function, bound) == "int" and is_invariant(unit, function, bound, loop.span):
            value = read_integer(unit.text_of(bound)) if bound.type == "number_literal" else None
            return Count(test, unit.text_of(variable), bound, sign == "<=", value)
    return None


def _counts_turns(unit: SourceUnit, function: FunctionDef, loop: Loop, node: Node) -> bool:
    """Whether every turn adds one to a variable, and nothing else changes it in the loop."""
    flow = flow_of(unit, function)
    declared = flow.resolve(node) if node.type == "identifier" else None
    if not isinstance(declared, VariableDef) or declared.storage is not Storage.LOCAL:
        return False
    if declared.dimensions or declared.pointer_depth or declared.is_reference:
        return False
    if static_type(unit, function, node) != "int":
        return False
    writes = flow.writes_to(declared)
    if any(write.operator in ("&", "asm", "lambda", "range") for write in writes):
        return False
    start = loop.node.child_by_field_name("initializer")
    inside = [
        write
        for write in writes
        if loop.span.contains(span_of(write.node))
        and not (start is not None and span_of(start).contains(span_of(write.node)))
    ]
    if len(inside) != 1:
        return False
    (write,) = inside
    right = write.node.child_by_field_name("right")
    by_one = write.operator == "++" or (
        write.operator == "+=" and right is not None and unit.text_of(right) == "1"
    )
    return by_one and _is_once_a_turn(loop, write.node)


def _is_once_a_turn(loop: Loop, write: Node) -> bool:
    """Whether an assignment is a statement of the loop's body or a part of its step."""
    update = loop.node.child_by_field_name("update")
    if update is not None and span_of(update).contains(span_of(write)):
        between = [node for node in ancestors(write) if span_of(update).contains(span_of(node))]
        return all(node.type == "comma_expression" for node in between)
    parent = write.parent
    if loop.has_continue or parent is None or parent.type != "expression_statement":
        return False
    return parent == loop.body or parent.parent == loop.body


def _has_copy(unit: SourceUnit, loop: Loop) -> bool:
    """Whether the loop before this one has the same turns."""
    before = loop.node.prev_named_sibling
    while before is not None and before.type in ("comment", "preproc_call"):
        before = before.prev_named_sibling
    if before is None or (before.type != loop.node.type and before.type != "for_statement"):
        return False
    turn = "".join(unit.text_of(loop.body).strip("{}").split())
    return bool(turn) and turn in "".join(unit.text_of(before).split())


def stretches_text(
    unit: SourceUnit, found: CountedEnds, context: SkillContext, turns: int
) -> tuple[Span, str]:
    """Return the range of a loop, and its new text: stretches of turns, then the loop as it was.

    Args:
        unit: The file.
        found: The loop.
        context: For a name that nobody uses.
        turns: Of a stretch.
    """
    loop, pragma = found.loop, found.loop.pragma_span
    span = Span(pragma.start if pragma is not None else loop.span.start, loop.span.end)
    start, update = (loop.node.child_by_field_name(name) for name in ("initializer", "update"))
    taken = fresh_name(unit, context, "taken")
    allowed = " && ".join(count.allows(unit, turns) for count in found.counts)
    tests = " && ".join(_tested(unit, test) for test in found.others)
    step = f"{clean_text(unit, update)}, ++{taken}" if update is not None else f"++{taken}"
    condition = loop.node.child_by_field_name("condition")
    assert condition is not None
    rest = f"while ({clean_text(unit, strip_parentheses(condition))})"
    if loop.kind is LoopKind.FOR:
        last = f" {clean_text(unit, update)}" if update is not None else ""
        rest = f"for (; {clean_text(unit, condition)};{last})"
    lines = [] if start is None else [clean_text(unit, start).rstrip("; ") + ";"]
    lines += [
        _WHY.format(turns=turns),
        f"#pragma unroll {turns}",
        f"for (unsigned {taken} = 0; {tests}; {step}) {{",
        f"{_STEP}if ({taken} % {turns} == 0 && !({allowed})) break;",
        *_turn(unit, loop),
        "}",
        f"{rest}{unit.text_of(Span(_end_of_head(loop), loop.body_span.end))}",
    ]
    return span, _placed(unit, loop, lines, wrapped=start is not None)


def _turn(unit: SourceUnit, loop: Loop) -> list[str]:
    """Return the statements of a turn, their lines as if the loop stood at the left margin."""
    own = unit.indent_of(loop.node)
    if loop.body.type != "compound_statement":
        first, *others = unit.text_of(loop.body).split("\n")
        return [f"{_STEP}{first}", *(line.removeprefix(own) for line in others)]
    lines = unit.text_of(loop.body)[1:-1].split("\n")
    first, *others = lines
    inner = [f"{_STEP}{first.strip()}"] if first.strip() else []
    inner += [line.removeprefix(own) for line in others]
    return [line for line in inner if line.strip()]


def _placed(unit: SourceUnit, loop: Loop, lines: list[str], *, wrapped: bool) -> str:
    """Return statements as they stand in place of a loop, in a block of their own where they need one."""
    indent = unit.indent_of(loop.node)
    if not wrapped and is_statement_of_block(loop.node):
        return f"\n{indent}".join(lines)
    inner = f"\n{indent}{_STEP}"
    return f"{{{inner}{inner.join(shifted(line, _STEP) for line in lines)}\n{indent}}}"


def _tested(unit: SourceUnit, test: Node) -> str:
    """Return a test as a part of a conjunction."""
    text, inner = clean_text(unit, test), strip_parentheses(test)
    is_or = inner.type == "binary_expression" and unit.operator(inner) == "||"
    return f"({text})" if (is_or or inner.type in _LOOSE) and inner == test else text


def _end_of_head(loop: Loop) -> int:
    condition = loop.node.child_by_field_name("condition")
    if loop.kind is LoopKind.WHILE and condition is not None:
        return condition.end_byte
    return max(child.end_byte for child in loop.node.children if child.type == ")")
