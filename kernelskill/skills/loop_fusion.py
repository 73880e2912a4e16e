"""Whether two loops over one range may become one loop, turn by turn, and the text of that loop."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from kernelskill.skills.adjacent_loops import (
    LoopPair,
    is_own_counter,
    refuse_aliased_variables,
    refuse_between,
    refuse_other_range,
    used_variables,
    written_variables,
)
from kernelskill.skills.device_code import words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import ExpressionTypes, is_integer, is_wide
from kernelskill.skills.plain_code import accesses_in, refuse_unclear
from kernelskill.skills.text_changes import Replacement, renamed, replaced_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode
from kernelskill.source.affine import index_reader
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop
from kernelskill.source.polynomial import Polynomial
from kernelskill.source.syntax import Node, Span, walk
from kernelskill.source.unit import SourceUnit

INDENT = "    "
_NARROW = frozenset({"char", "short", "uint8_t", "int8_t", "uint16_t", "int16_t", "uchar", "ushort", "bool"})
_SIZES = frozenset(f"{name}.{axis}" for name in ("blockDim", "gridDim") for axis in "xyz")


@dataclass(frozen=True)
class Fusion:
    """Two loops that may become one."""

    pair: LoopPair
    assumptions: tuple[str, ...]


def read_fusion(unit: SourceUnit, kernel: KernelDef, pair: LoopPair, context: SkillContext) -> Fusion:
    """Return what fusing two loops relies on.

    Raises:
        SkillRefused: They may not be fused, or it can't be told.
    """
    refuse_other_range(unit, kernel, pair)
    for loop in (pair.first, pair.second):
        refuse_unclear(unit, kernel, loop.node, context)
        refuse_aliased_variables(unit, kernel, loop.node)
        if loop.has_break or loop.has_return:
            raise SkillRefused(f"the loop on line {loop.line} can be left early")
    if pair.first.has_continue:
        raise SkillRefused(f"the loop on line {pair.first.line} skips turns by `continue`")
    one = pair.first.declared is pair.second.declared
    if not one and not (is_own_counter(pair.first) and is_own_counter(pair.second)):
        raise SkillRefused(f"the counter of {pair.lines} lives on after them")
    refuse_between(unit, kernel, pair, context)
    _refuse_shared_variables(unit, kernel, pair)
    return Fusion(pair, _memory_assumptions(unit, kernel, pair, context))


def _refuse_shared_variables(unit: SourceUnit, kernel: KernelDef, pair: LoopPair) -> None:
    nodes = (pair.first.node, pair.second.node)
    used = [used_variables(unit, kernel, node) for node in nodes]
    written = [written_variables(unit, kernel, node) for node in nodes]
    counters = {id(loop.declared) for loop in (pair.first, pair.second)}
    for key in (used[0].keys() & written[1].keys()) | (used[1].keys() & written[0].keys()):
        if key not in counters:
            raise SkillRefused(
                f"the second of {pair.lines} needs {used[0][key].name!r} as all turns leave it"
            )


def _memory_assumptions(
    unit: SourceUnit, kernel: KernelDef, pair: LoopPair, context: SkillContext
) -> tuple[str, ...]:
    sides = [accesses_in(unit, kernel, loop.node, context) for loop in (pair.first, pair.second)]
    found: list[str] = []
    for one in sides[0]:
        for other in sides[1]:
            if not one.mode.writes and not other.mode.writes:
                continue
            answer = separate(unit, kernel, one, other, context)
            if answer.disjoint:
                found += [answer.assumption] if answer.assumption else []
            elif not _same_turn(unit, kernel, pair, one, other):
                texts = [unit.text_of(access.node) for access in (one, other)]
                raise SkillRefused(
                    f"{texts[0]} on line {one.line} and {texts[1]} on line {other.line} may be one element,"
                    " met in another order"
                )
    return tuple(dict.fromkeys(found))


def _same_turn(unit: SourceUnit, kernel: KernelDef, pair: LoopPair, one: Access, other: Access) -> bool:
    """Whether two accesses of the two loops meet at an element in the same turn only."""
    if one.root is None or one.root is not other.root or AccessMode.ATOMIC in (one.mode, other.mode):
        return False
    if not one.element_type or one.element_type != other.element_type:
        return False
    reader = index_reader(unit, kernel)
    parts: list[tuple[Polynomial, Polynomial]] = []
    for loop, access in ((pair.first, one), (pair.second, other)):
        atom = reader.loop_atom(loop)
        factor = access.index.coefficient(atom) if access.index is not None else None
        if access.index is None or factor is None or not is_never_zero(factor):
            return False
        if not _is_plainly_indexed(unit, kernel, loop, access):
            return False
        parts.append((factor, access.index.substitute({atom: 0})))
    return parts[0] == parts[1]


def is_never_zero(factor: Polynomial) -> bool:
    """Whether a factor is one, minus one, or a product of sizes of blocks and grids."""
    if factor.value is not None:
        return abs(factor.value) == 1
    return len(factor.terms) == 1 and all(atom.text in _SIZES for atom in factor.atoms)


def _is_plainly_indexed(unit: SourceUnit, kernel: KernelDef, loop: Loop, access: Access) -> bool:
    """Whether no narrow type may make two turns out of one index."""
    if set(words_in(unit, loop.node)) & _NARROW:
        return False
    types = ExpressionTypes(unit, kernel)
    for index in access.indices:
        for node in walk(index):
            if node.type == "identifier" and types.of(node) is not None:
                kind = str(types.of(node))
                if not kind.endswith("*") and (not is_integer(kind) or kind in _NARROW):
                    return False
            if node.type == "cast_expression" and not _keeps_values(types, node):
                return False
    return True


def _keeps_values(types: ExpressionTypes, cast: Node) -> bool:
    """Whether a cast of an index gives different values for different ones."""
    kind = types.of(cast)
    from_wide = is_wide(types.of(cast.child_by_field_name("value")))
    return is_wide(kind) or (kind in ("int", "unsigned") and not from_wide)


def write_fusion(unit: SourceUnit, kernel: KernelDef, fusion: Fusion, edits: EditSet) -> None:
    """Take the first loop away and do its work in the second one."""
    pair = fusion.pair
    first, second = pair.first, pair.second
    names = {}
    if first.declared is not None and second.declared is not None and first.declared is not second.declared:
        _refuse_name(unit, kernel, first, second)
        names[id(first.declared)] = second.variable
    start = first.pragma_span.start if first.pragma_span is not None else first.span.start
    edits.delete_line(Span(start, first.span.end))
    bodies = [
        body_lines(unit, first, renamed(unit, kernel, first.body, names)),
        body_lines(unit, second, []),
    ]
    if _names_meet(unit, kernel, pair):
        bodies = [["{", *(f"{INDENT}{line}" if line else line for line in lines), "}"] for lines in bodies]
    indent = unit.indent_of(second.node)
    lines = [f"{indent}{INDENT}{line}" if line else line for lines in bodies for line in lines]
    edits.replace(second.node, "\n".join([f"{header_text(unit, second)} {{", *lines, f"{indent}}}"]))


def _refuse_name(unit: SourceUnit, kernel: KernelDef, first: Loop, second: Loop) -> None:
    """Decline where the second counter's name means something else in the first body.

    Raises:
        SkillRefused: It does.
    """
    if first.variable != second.variable and second.variable in words_in(unit, first.node):
        raise SkillRefused(f"the loop on line {first.line} has another {second.variable!r}")


def _names_meet(unit: SourceUnit, kernel: KernelDef, pair: LoopPair) -> bool:
    """Whether a variable of one body is a name in the other one."""
    for loop, other in ((pair.first, pair.second), (pair.second, pair.first)):
        own = {name for name in loop.declares if name != loop.variable}
        if own & set(words_in(unit, other.node)):
            return True
    return False


def header_end(loop: Loop) -> int:
    """Return where a loop's header ends, its closing parenthesis included."""
    return max(
        child.end_byte
        for child in loop.node.children
        if child.type in (")", "condition_clause") and child.end_byte <= loop.body_span.start
    )


def header_text(unit: SourceUnit, loop: Loop) -> str:
    """Return a loop's header up to its closing parenthesis."""
    return unit.text_of(Span(loop.span.start, header_end(loop)))


def replace_body(edits: EditSet, loop: Loop, lines: list[str], indent: str) -> None:
    """Write a new body in braces, its lines one step to the right of the loop."""
    text = "".join(f"\n{indent}{INDENT}{line}" if line else "\n" for line in lines)
    edits.replace(Span(header_end(loop), loop.span.end), f" {{{text}\n{indent}}}")


def body_lines(unit: SourceUnit, loop: Loop, replacements: list[tuple[Node, str]]) -> list[str]:
    """Return the lines of a loop's body without its braces, parts replaced, the outermost at the margin."""
    return block_lines(unit, loop.body, replacements)


def block_lines(
    unit: SourceUnit, block: Node, replacements: list[Replacement] | list[tuple[Node, str]]
) -> list[str]:
    """Return the lines of a statement or of what a block holds, the outermost at the margin."""
    if block.type != "compound_statement":
        text = replaced_text(unit, block, replacements)
        return margin_lines(unit.indent_of(block) + text)
    opening, closing = block.children[0], block.children[-1]
    text = replaced_text(unit, Span(opening.end_byte, closing.start_byte), replacements)
    head, _, rest = text.replace("\r\n", "\n").partition("\n")
    return [*([head.strip()] if head.strip() else []), *margin_lines(rest)]


def margin_lines(text: str) -> list[str]:
    """Return lines moved left as far as they go together, without blank ones at the ends."""
    lines = [line.rstrip() for line in textwrap.dedent(text.replace("\r\n", "\n")).split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return lines
