"""Edits that put other code in the place of launches in a row and of their kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelskill.skills.launch_pairs import deletion_span, only_launched_by, statement_of
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.edits import EditSet
from kernelskill.source.launches import LaunchSite
from kernelskill.source.syntax import Span, span_of
from kernelskill.source.unit import SourceUnit


def replace_launches(
    unit: SourceUnit, launches: Sequence[LaunchSite], context: SkillContext, code: str, statement: str
) -> EditSet:
    """Return the edits; kernels that nothing else launches are taken out.

    Args:
        unit: The file.
        launches: In their order.
        context: Knows the other files.
        code: What stands in the place of the first launch's kernel.
        statement: What stands in the place of the last launch; it may launch the kernels again, which stay then.

    Raises:
        SkillRefused: A kernel is not in this file, or a launch is part of another statement.
    """
    edits = EditSet(unit)
    names = dict.fromkeys(launch.kernel for launch in launches)
    for name in names:
        kernel = unit.kernel(name)
        if kernel is None:
            raise SkillRefused(f"{name} is not defined in this file")
        is_used = re.search(rf"\b{re.escape(name)}\b", statement) is not None
        gone = not is_used and only_launched_by(unit, kernel, launches, context)
        if name == launches[0].kernel:
            edits.replace(kernel.span, code) if gone else edits.insert_after(kernel.span, f"\n\n{code}")
        elif gone:
            edits.replace(_with_gap(unit, kernel.span), "")
    places = [statement_of(launch) for launch in launches]
    for number, place in enumerate(places):
        if place is None:
            raise SkillRefused(f"the launch on line {launches[number].line} is part of another statement")
        if number + 1 < len(places):
            edits.replace(deletion_span(unit, span_of(place)), "")
        else:
            edits.replace(place, statement.replace("\n", f"\n{unit.indent_of(place)}"))
    return edits


def _with_gap(unit: SourceUnit, span: Span) -> Span:
    """Return the range of a kernel with the empty lines behind it."""
    found = deletion_span(unit, span)
    empty = re.match(rb"(?:[ \t]*\r?\n)*", unit.data[found.end :])
    return Span(found.start, found.end + (empty.end() if empty is not None else 0))


def indented_block(lines: Sequence[str]) -> str:
    """Return lines between braces."""
    return "\n".join(["{", *(f"    {line}" for line in lines), "}"])
