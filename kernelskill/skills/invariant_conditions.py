"""Conditions inside a loop that have one value in all its turns, and the loop without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.adjacent_loops import is_own_counter, refuse_aliased_variables
from kernelskill.skills.canonical import Canonical
from kernelskill.skills.expression_types import ExpressionTypes, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.loop_fusion import INDENT, block_lines, margin_lines
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import Replacement, clean_text, replaced_text, shifted
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, LoopKind, enclosing_loops, find_loops
from kernelskill.source.syntax import Node, Span, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

LONGEST = 4000
"""Bytes of a loop that is worth having twice."""
_ATOMS = (
    "identifier",
    "number_literal",
    "call_expression",
    "parenthesized_expression",
    "subscript_expression",
)
CHOICES = ("if_statement", "conditional_expression")


@dataclass(frozen=True)
class Switch:
    """A loop and the condition that can be tested before it."""

    loop: Loop
    condition: str
    """Its text."""
    form: str
    choices: tuple[Node, ...]
    """Every `if` and conditional in the loop that tests it."""


def find_switches(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[Switch]:
    """Yield each condition with the outermost loop in which it stays the same."""
    loops = find_loops(unit, kernel)
    form = Canonical(unit, kernel)
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    found: dict[tuple[str, str], list[Node]] = {}
    for node in walk(kernel.body) if kernel.body is not None else ():
        condition = condition_of(node) if node.type in CHOICES else None
        loop = _outermost(unit, kernel, loops, node, condition) if condition is not None else None
        if node.type == "conditional_expression" and not has_one_type(types, node):
            continue
        if loop is not None and condition is not None:
            found.setdefault((loop.key, form.of(condition)), []).append(node)
    by_key = {loop.key: loop for loop in loops}
    for (key, text), nodes in found.items():
        condition = condition_of(nodes[0])
        assert condition is not None
        try:
            _refuse(unit, kernel, by_key[key], context)
            refuse_aliased_variables(unit, kernel, condition)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        yield Switch(by_key[key], clean_text(unit, condition), text, tuple(nodes))


def has_one_type(types: ExpressionTypes, node: Node) -> bool:
    """Whether each branch of a conditional alone has the type of the whole."""
    kinds = [types.of(node.child_by_field_name(field)) for field in ("consequence", "alternative")]
    return kinds[0] is not None and kinds[0] == kinds[1]


def condition_of(node: Node) -> Node | None:
    """Return what an `if` or conditional tests; None where it declares or is decided by the compiler."""
    condition = node.child_by_field_name("condition")
    if condition is None or any(child.type in ("constexpr", "declaration") for child in walk(condition)):
        return None
    if node.type == "if_statement" and any(child.type == "constexpr" for child in node.children):
        return None
    return strip_parentheses(condition)


def _outermost(
    unit: SourceUnit, kernel: KernelDef, loops: tuple[Loop, ...], node: Node, condition: Node
) -> Loop | None:
    """Return the outermost loop round a choice in which its condition is made of unchanging variables."""
    names = [entry for entry in walk(condition) if entry.type == "identifier"]
    division = any(unit.operator(entry) in ("/", "%") for entry in walk(condition))
    if not names or division or not is_pure(unit, condition) or _is_known(unit, condition):
        return None
    for loop in enclosing_loops(loops, node):
        if is_invariant(unit, kernel, condition, loop.span):
            return loop
    return None


def _is_known(unit: SourceUnit, condition: Node) -> bool:
    """Whether the compiler decides: nothing but macros and constants."""
    return unit.constants.value(condition) is not None


def _refuse(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> None:
    refuse_unclear(unit, kernel, loop.node, context)
    if loop.span.end - loop.span.start > LONGEST:
        raise SkillRefused(f"the loop on line {loop.line} is too long to stand twice")
    if any(node.type == "case_statement" for node in walk(loop.node)):
        raise SkillRefused(f"the loop on line {loop.line} has a switch")


def write_switch(unit: SourceUnit, kernel: KernelDef, switch: Switch, edits: EditSet) -> None:
    """Write the loop twice, once for each outcome, under one test before it."""
    loop = switch.loop
    start = loop.pragma_span.start if loop.pragma_span is not None else loop.span.start
    indent = unit.indent_of(Span(start, start))
    texts = [
        _loop_text(unit, loop, _decided(unit, switch.choices, outcome), indent) for outcome in (True, False)
    ]
    lines = [f"if ({switch.condition}) {{", *texts[0], "} else {", *texts[1], "}"]
    if _does_nothing(unit, loop, switch):
        lines = [f"if ({switch.condition}) {{", *texts[0], "}"]
    text = f"\n{indent}".join(lines)
    if not is_statement_of_block(loop.node):
        text = f"{{ {text} }}"  # an `else` that follows belongs to another `if`
    edits.replace(Span(start, loop.span.end), text)


def _loop_text(unit: SourceUnit, loop: Loop, replacements: list[Replacement], indent: str) -> list[str]:
    text = replaced_text(unit, loop.node, replacements)
    lines = margin_lines(indent + text)
    pragma = [loop.pragma] if loop.pragma else []
    return [f"{INDENT}{line}" if line else line for line in (*pragma, *lines)]


def decided_body(unit: SourceUnit, loop: Loop, choices: tuple[Node, ...], outcome: bool) -> str:
    """Return the text of a loop's body with some choices decided."""
    return replaced_text(unit, loop.body, _decided(unit, choices, outcome))


def _decided(unit: SourceUnit, choices: tuple[Node, ...], outcome: bool) -> list[Replacement]:
    """Return what stands for each choice once its outcome is known, choices inside a branch decided too."""
    own = {node.id for node in choices}

    def text_of(node: Node) -> str:
        kept = branch(node)
        if kept is None:
            return ";" if _is_whole_body(node) else "{}" if not is_statement_of_block(node) else ""
        inner = [(below, text_of(below)) for below in walk(kept) if below.id in own]
        if kept.type == "compound_statement" and is_statement_of_block(node) and not _declares(kept):
            lines = block_lines(unit, kept, inner)
            if not lines or "//" not in lines[-1]:  # else what follows on the line would be a comment
                return shifted("\n".join(lines), unit.indent_of(node))
        text = replaced_text(unit, kept, inner)
        if node.type == "conditional_expression":
            return text if kept.type in _ATOMS else f"({text})"
        alone = _is_whole_body(node) and kept.type != "if_statement"
        # Braces keep an `else` that follows with the `if` that it belongs to.
        bare = alone or kept.type == "compound_statement" or is_statement_of_block(node)
        return text if bare else f"{{ {text} }}"

    def branch(node: Node) -> Node | None:
        kept = node.child_by_field_name("consequence" if outcome else "alternative")
        if kept is not None and kept.type == "else_clause":
            kept = named(kept)[0] if named(kept) else None
        return kept

    found: list[Replacement] = []
    for node in choices:
        text = text_of(node)
        found.append((_whole_lines(unit, node) if not text else span_of(node), text))
    return found


def _whole_lines(unit: SourceUnit, node: Node) -> Span:
    """Return the lines of a statement with their breaks where nothing else stands on them; else its own range."""
    first = unit.syntax.line_span(unit.line_of(node.start_byte))
    last = unit.syntax.line_span(unit.line_of(node.end_byte - 1))
    beside = unit.text_of(Span(first.start, node.start_byte)) + unit.text_of(Span(node.end_byte, last.end))
    return span_of(node) if beside.strip() or first.start == 0 else Span(first.start - 1, last.end)


def _declares(block: Node) -> bool:
    return any(child.type == "declaration" for child in named(block))


def _is_whole_body(node: Node) -> bool:
    return node.parent is not None and node.parent.type in ("for_statement", "while_statement")


def _does_nothing(unit: SourceUnit, loop: Loop, switch: Switch) -> bool:
    """Whether the loop has no effect where the condition is false: its body is the one `if`, without `else`."""
    body = loop.body
    while body.type == "compound_statement" and len(named(body)) == 1:
        body = named(body)[0]
    alone = body in switch.choices and body.type == "if_statement"
    ends = loop.kind is LoopKind.FOR and is_own_counter(loop) and loop.is_counted
    return alone and ends and body.child_by_field_name("alternative") is None
