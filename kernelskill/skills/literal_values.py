"""The value of a number that stands in the source, also behind a macro."""

from __future__ import annotations

from kernelskill.source.literals import read_number
from kernelskill.source.syntax import Node
from kernelskill.source.unit import SourceUnit


def literal_value(unit: SourceUnit, node: Node) -> float | None:
    """Return the value of a literal or of a macro that is one; None for anything else."""
    text = unit.text_of(node).replace(" ", "").strip("()")
    macro = unit.macro(text)
    if macro is not None and not macro.is_function_like:
        text = macro.value.replace(" ", "").strip("()")
    number = read_number(text.removeprefix("-"))
    if number is None:
        return None
    return -float(number.value) if text.startswith("-") else float(number.value)
