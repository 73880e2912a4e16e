"""Count the iterations of a loop with constant start, bound and step."""

from __future__ import annotations

from kernelskill.source.constants import truncated_division

_LIMIT = 4096


def trip_count(
    operator: str, comparison: str, start: int | None, bound: int | None, step: int | None
) -> int | None:
    """Return how often a loop runs; None where unknown, endless or beyond a few thousand odd steps."""
    if start is None or bound is None or not step or step < 0:
        return None
    value, count = start, 0
    if operator in ("+", "-") and comparison != "!=":
        distance = bound - start if operator == "+" else start - bound
        if (operator == "+") != (comparison in ("<", "<=")):
            return None
        distance += comparison in ("<=", ">=")
        return max(0, -(-distance // step))
    while _holds(value, comparison, bound):
        value, count = _stepped(value, operator, step), count + 1
        if count > _LIMIT:
            return None
    return count


def _holds(value: int, comparison: str, bound: int) -> bool:
    return {
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
        "!=": value != bound,
        "==": value == bound,
    }[comparison]


def _stepped(value: int, operator: str, step: int) -> int:
    if operator in ("<<", ">>") and step > 63:
        return 0
    return {
        "+": value + step,
        "-": value - step,
        "*": value * step,
        "/": truncated_division(value, step),
        "<<": value << min(step, 63),
        ">>": value >> min(step, 63),
    }[operator]


def trip_text(comparison: str, start: str, bound: str, step: str) -> str:
    """Return the iterations of an upward loop as an expression; empty for another comparison.

    Args:
        comparison: `<` or `<=`.
        start: First value; empty for 0.
        bound: The bound.
        step: The amount; empty for 1.
    """
    if comparison not in ("<", "<="):
        return ""
    length = f"{bound} - {start}" if start else bound
    length += " + 1" if comparison == "<=" else ""
    return f"({length} + {step} - 1) / {step}" if step else length
