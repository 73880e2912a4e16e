"""Launches that choose between a rewritten kernel and the kernel as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.launch_edits import Shape, shape_text
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Span
from kernelskill.source.unit import SourceUnit

_PLAIN = re.compile(r"[\w\s+\-*&.\[\]>]*")
_CHANGES = ("++", "--", "=")


def kernel_copy(unit: SourceUnit, kernel: KernelDef, name: str) -> str:
    """Return the text of a kernel under another name."""
    return _renamed(unit, kernel.span, kernel.name_span, kernel.name, name)


def write_choice(
    edits: EditSet,
    entry: KernelLaunch,
    kernel: KernelDef,
    kept: str,
    pairs: Sequence[tuple[str, str]],
    grid: Shape | None,
    block: Shape | None,
) -> None:
    """Let a launch take the kernel as it was where two of its parameters are the same array.

    Args:
        edits: Edits of the file that launches.
        entry: The launch.
        kernel: The kernel.
        kept: What the kernel as it was is called now.
        pairs: Names of parameters that must not be equal.
        grid: New shape of the grid; None leaves it.
        block: New shape of the block; None leaves it.

    Raises:
        SkillRefused: The launch is no statement of its own, or an argument does more than name an array.
    """
    unit, launch = entry.unit, entry.launch
    statement = launch.node.parent
    if statement is None or statement.type != "expression_statement":
        raise SkillRefused(f"the launch on line {launch.line} is part of a larger expression")
    tests = [
        f"(size_t)({_argument(entry, kernel, first)}) != (size_t)({_argument(entry, kernel, second)})"
        for first, second in dict.fromkeys(pairs)
    ]
    text, position = "", launch.span.start
    shapes = [(launch.grid, grid), (launch.block, block)]
    for shape, wanted in sorted(shapes, key=lambda each: each[0].span.start):
        text += unit.text_of(Span(position, shape.span.start))
        text += unit.text_of(shape.span) if wanted is None else shape_text(wanted)
        position = shape.span.end
    text += unit.text_of(Span(position, launch.span.end))
    original = _renamed(unit, launch.span, launch.name_span, kernel.name, kept)
    indent = unit.indent_of(statement)
    lines = [
        "{",
        "    // One array for both is left to the kernel as it was.",
        f"    if ({' && '.join(tests)})",
        f"        {text};",
        "    else",
        f"        {original};",
        "}",
    ]
    edits.replace(statement, f"\n{indent}".join(lines))


def _argument(entry: KernelLaunch, kernel: KernelDef, name: str) -> str:
    names = [parameter.name for parameter in kernel.parameters]
    place = names.index(name) if name in names else len(entry.launch.arguments)
    if place >= len(entry.launch.arguments):
        raise SkillRefused(f"which array {name!r} is can't be told at the launch on line {entry.launch.line}")
    text = entry.launch.arguments[place].text
    if not _PLAIN.fullmatch(text) or any(sign in text for sign in _CHANGES):
        raise SkillRefused(f"the argument {text!r} on line {entry.launch.line} does more than name an array")
    return text


def _renamed(unit: SourceUnit, whole: Span, place: Span, name: str, fresh: str) -> str:
    before, after = unit.text_of(Span(whole.start, place.start)), unit.text_of(Span(place.end, whole.end))
    return before + re.sub(rf"\b{re.escape(name)}\b", fresh, unit.text_of(place), count=1) + after
