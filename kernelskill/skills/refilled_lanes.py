"""Write a kernel in which a lane that is done with its element takes the next one of its warp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.global_index import Guard
from kernelskill.skills.parted_declarations import (
    Parted,
    is_plain_type,
    needed_later,
    part_declarations,
    refuse_other_meanings,
)
from kernelskill.skills.text_changes import Replacement, replaced_text
from kernelskill.skills.transformation import SkillContext
from kernelskill.skills.uneven_loops import UnevenKernel
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import LoopKind
from kernelskill.source.syntax import Node, Span, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_STEP = "    "
_COPIES = 8
_SHORT = 12
"""Statements up to which a body is copied."""
_LOOSE = frozenset({"conditional_expression", "assignment_expression", "comma_expression"})


@dataclass(frozen=True)
class _Names:
    first: str
    rest: str
    count: str
    taken: str
    below: str
    own: str
    done: str
    idle: str
    turn: str
    begun: str

    @staticmethod
    def fresh(unit: SourceUnit, context: SkillContext) -> _Names:
        wanted = ("first", "rest", "count", "taken", "lanes_below", "own", "done", "idle", "turn", "begun")
        return _Names(*(fresh_name(unit, context, name) for name in wanted))


@dataclass(frozen=True)
class _Parts:
    """Texts of a thread's work; the lines of each stand as far right as its first."""

    declared: list[str]
    first: str
    condition: str
    """Of the loop, behind `&&`; empty where it has none."""
    step: str
    """Of the loop, behind a comma; empty where it has none."""
    body: str
    pragma: str
    last: str


def refilled_text(
    unit: SourceUnit, kernel: KernelDef, found: UnevenKernel, context: SkillContext, work: int, turns: int
) -> tuple[Span, str]:
    """Return the range of a kernel that changes, and its new text.

    Args:
        unit: The file.
        kernel: The kernel.
        found: Its parts.
        context: For names that nobody uses.
        work: Elements a lane, on average.
        turns: Turns of the loop after which a warp looks for lanes that are done.

    Raises:
        SkillRefused: A variable of the thread can't outlive a turn of the new loop.
    """
    names = _Names.fresh(unit, context)
    parts = _parts(unit, kernel, found, names)
    indent = unit.indent_of(found.guard.variable.span)
    size, bound = 32 * work, _bound(unit, found.guard)
    lines = [
        "// The loop takes another number of turns for every element, and a warp waits for its longest. So a warp has",
        f"// {size} elements here, and a lane that is done with one takes the next: every {turns} turns the warp looks",
        "// which lanes those are.",
        f"const long long {names.first} = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32 * {size};",
        f"const long long {names.rest} = (long long){bound} - {names.first};",
        f"const int {names.count} = {names.rest} < {size} ? (int){names.rest} : {size};",
        f"const unsigned {names.below} = (1u << threadIdx.x % 32) - 1;",
        f"int {names.taken} = 0, {names.own} = 0;  // elements of the warp that were taken, and the lane's",
        f"bool {names.done} = true;",
        *parts.declared,
        "for (;;) {",
        *_rounds(parts, names, turns),
        "}",
    ]
    text = "\n".join(lines).split("\n")
    placed = "\n".join(
        f"{indent}{line}" if line.strip() and not line.startswith("#") else line for line in text
    )
    return _whole(unit, found), placed.removeprefix(indent)


def _bound(unit: SourceUnit, guard: Guard) -> str:
    """Return the tested size as the operand of a cast."""
    bound = strip_parentheses(guard.bound)
    text = unit.text_of(bound)
    return text if bound.type in ("identifier", "number_literal") else f"({text})"


def _rounds(parts: _Parts, names: _Names, turns: int) -> list[str]:
    """Return the lines of one turn of the new loop."""
    lines = [
        f"const unsigned {names.idle} = __ballot_sync(0xffffffff, {names.done});",
        f"if ({names.idle} == 0xffffffff && {names.taken} >= {names.count}) break;",
        f"if ({names.done}) {names.own} = {names.taken} + __popc({names.idle} & {names.below});",
        f"{names.taken} = min({names.taken} + __popc({names.idle}), {names.count});",
    ]
    if parts.first:
        lines += [f"if ({names.done} && {names.own} < {names.count}) {{", _moved(parts.first, 1), "}"]
    loop = f"for (; {names.turn} < {turns}{parts.condition}; ++{names.turn}{parts.step}){parts.body}"
    lines += [
        f"if ({names.own} < {names.count}) {{",
        f"{_STEP}int {names.turn} = 0;",
        *([_moved(parts.pragma, 1)] if parts.pragma else []),
        _moved(loop, 1),
        f"{_STEP}{names.done} = {names.turn} < {turns};",
    ]
    if parts.last:
        lines += [f"{_STEP}if ({names.done}) {{", _moved(parts.last, 2), f"{_STEP}}}"]
    lines.append("}")
    return _moved("\n".join(lines), 1).split("\n")


def _moved(text: str, steps: int) -> str:
    return "\n".join(f"{_STEP * steps}{line}" if line.strip() else "" for line in text.split("\n"))


def _parts(unit: SourceUnit, kernel: KernelDef, found: UnevenKernel, names: _Names) -> _Parts:
    loop, guard = found.loop, found.guard
    update = loop.node.child_by_field_name("update")
    step = f", {unit.text_of(update)}" if update is not None else ""
    start = loop.node.child_by_field_name("initializer") if loop.kind is LoopKind.FOR else None
    inner: list[Replacement] = [
        (guard.index.node, f"({guard.variable.base_type})({names.first} + {names.own})")
    ]
    parted = _parted(unit, kernel, found, start, inner)
    pieces = _pieces(unit, found)
    before = [_outdented(unit, found, piece, [*parted.replacements, *inner]) for piece in pieces[:-1]]
    if start is not None:
        own = [entry for entry in parted.replacements if span_of(entry[0]) == span_of(start)]
        text = str(own[0][1]) if own else unit.text_of(start).rstrip("; ") + ";"
        before += [line.strip() for line in text.split("\n")]
    if loop.kind is LoopKind.DO:
        parted.lines.append(
            f"bool {names.begun};  // whether the element has had its first turn, which has no test"
        )
        before.append(f"{names.begun} = false;")
        step = f", {names.begun} = true"
    return _Parts(
        declared=parted.lines,
        first="\n".join(text for text in before if text.strip()),
        condition=_condition(unit, found, names),
        step=step,
        body=_body(unit, found),
        pragma=_pragma(unit, found),
        last=_outdented(unit, found, pieces[-1], []),
    )


def _parted(
    unit: SourceUnit,
    kernel: KernelDef,
    found: UnevenKernel,
    start: Node | None,
    inner: Sequence[Replacement],
) -> Parted:
    """Split the declarations of what lives longer than one turn of the new loop."""
    kept = needed_later(unit, kernel, found.before, [found.loop.node, *found.after])
    declarations = [node for node in found.before if any(v.declaration == node for v in kept)]
    if any(variable.dimensions for variable in kept):
        # Sizes of arrays are made of constants that may stand before them.
        declarations = [node for node in found.before if node.type == "declaration"]
    if start is not None and start.type == "declaration":
        declarations.append(start)
    hoisted = [v for v in kernel.locals if v.declaration in declarations]
    refuse_other_meanings(unit, kernel, hoisted, found.turn)
    plain = {
        parameter.name
        for index, parameter in enumerate(kernel.template_parameters)
        if _are_plain(found, index, parameter.default)
    }
    return part_declarations(unit, kernel, declarations, inner, plain)


def _are_plain(found: UnevenKernel, index: int, default: str) -> bool:
    """Whether a template parameter stands for a number's type wherever the kernel is launched."""
    given = [entry.launch.template_arguments for entry in found.entries]
    return all(is_plain_type(values[index] if index < len(values) else default) for values in given)


def _pieces(unit: SourceUnit, found: UnevenKernel) -> list[Span]:
    """Return the ranges before and after the test of the index and the loop, comments included."""
    loop = found.loop
    opening = loop.pragma_span.start if loop.pragma_span is not None else loop.span.start
    first = found.guard.variable.span.start
    if not found.is_wrapped:
        pieces = [Span(first, found.test.start_byte), Span(found.test.end_byte, opening)]
        return [*pieces, Span(loop.span.end, _whole(unit, found).end)]
    body = found.test.child_by_field_name("consequence")
    assert body is not None
    if body.type != "compound_statement":
        return [Span(first, found.test.start_byte), Span(loop.span.end, loop.span.end)]
    pieces = [Span(first, found.test.start_byte), Span(body.start_byte + 1, opening)]
    return [*pieces, Span(loop.span.end, body.end_byte - 1)]


def _whole(unit: SourceUnit, found: UnevenKernel) -> Span:
    """Return the range that changes: a comment behind the last statement goes with it."""
    turn = found.turn
    if found.is_wrapped or not found.after:
        return turn
    line = unit.syntax.line_span(unit.line_of(turn.end - 1))
    is_comment = unit.text_of(Span(turn.end, line.end)).strip().startswith("//")
    return Span(turn.start, line.end if is_comment else turn.end)


def _outdented(
    unit: SourceUnit, found: UnevenKernel, piece: Span, replacements: Sequence[Replacement]
) -> str:
    """Return a piece with its lines at the left margin; lines that a replacement emptied are left out."""
    gone = "\0"
    marked = [(place, text or gone) for place, text in replacements if piece.contains(span_of(place))]
    text = replaced_text(unit, piece, marked)
    lines = [
        _closed_up(line, gone)
        for line in text.split("\n")
        if line.replace(gone, "").strip() or gone not in line
    ]
    return "\n".join(line.rstrip() for line in _without_indent(unit, found, piece, lines)).strip("\n")


def _closed_up(line: str, gone: str) -> str:
    """Return a line without the place of a declaration that went, a comment behind it in its place."""
    if gone not in line:
        return line
    before, _, after = line.partition(gone)
    return before + after.replace(gone, "").lstrip()


def _without_indent(unit: SourceUnit, found: UnevenKernel, piece: Span, lines: Sequence[str]) -> list[str]:
    """Return lines moved left by the indentation of the loop, or of the index where that is less."""
    wrapped = found.is_wrapped and piece.start > found.test.start_byte
    own = unit.indent_of(found.loop.node if wrapped else found.guard.variable.span)
    moved = [line.removeprefix(own) if line.startswith(own) else line.lstrip() for line in lines]
    while moved and not moved[0].strip():
        moved.pop(0)
    while moved and not moved[-1].strip():
        moved.pop()
    if moved and moved[0] != moved[0].lstrip():
        moved[0] = moved[0].lstrip()
    return moved


def _pragma(unit: SourceUnit, found: UnevenKernel) -> str:
    """Return the line above the loop: its own, or one that spares short bodies most of the counting of turns."""
    loop = found.loop
    if loop.pragma_span is not None:
        return unit.text_of(loop.pragma_span).strip()
    statements = sum(node.type in ("expression_statement", "declaration") for node in walk(loop.body))
    return f"#pragma unroll {_COPIES}" if loop.is_innermost and statements <= _SHORT else ""


def _condition(unit: SourceUnit, found: UnevenKernel, names: _Names) -> str:
    """Return the condition of the loop behind `&&`; empty where it always holds."""
    condition = found.loop.node.child_by_field_name("condition")
    if condition is None:
        return ""
    inner = condition if found.loop.kind is LoopKind.FOR else strip_parentheses(condition)
    text = unit.text_of(inner)
    is_or = inner.type == "binary_expression" and unit.operator(inner) == "||"
    if text in ("true", "1"):
        return ""
    if is_or or inner.type in _LOOSE:
        text = f"({text})"
    return f" && (!{names.begun} || {text})" if found.loop.kind is LoopKind.DO else f" && {text}"


def _body(unit: SourceUnit, found: UnevenKernel) -> str:
    """Return the body of the loop with what stands before it, from the end of the header on."""
    loop = found.loop
    condition = loop.node.child_by_field_name("condition")
    if loop.kind is LoopKind.WHILE and condition is not None:
        end = condition.end_byte
    elif loop.kind is LoopKind.DO:
        end = loop.node.children[0].end_byte
    else:
        end = max(child.end_byte for child in loop.node.children if child.type == ")")
    text = unit.text_of(Span(end, loop.body_span.end))
    own = unit.indent_of(loop.node)
    first, *rest = text.split("\n")
    return "\n".join([first, *(line.removeprefix(own) for line in rest)])
