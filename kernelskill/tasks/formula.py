"""Formulas of launch sizes: nested tuples that are written as C and evaluated as C would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Node = tuple[Any, ...]
"""`("number", 256)`, `("name", "n")`, `("neg", node)`, or an operator, `min` or `max` with two nodes."""

_PRECEDENCE = {"|": 0, "^": 1, "&": 2, "<<": 3, ">>": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_UNARY, _ATOM = 6, 7
_INT_MAX = 2**31 - 1


def c_text(node: Node) -> str:
    """Return the formula as a C expression; a product of two variables is taken in 64 bits."""
    return _written(node)[0]


def evaluate(node: Node, values: Mapping[str, Any]) -> int | None:
    """Return the formula's value as C computes it, or None where it has none.

    Raises:
        KeyError: A variable has no value.
    """
    kind = node[0]
    if kind == "number":
        return int(node[1])
    if kind == "name":
        return int(values[node[1]])
    parts = [evaluate(part, values) for part in node[1:]]
    if parts[0] is None or parts[-1] is None:
        return None
    if kind == "neg":
        return -parts[0]
    return _applied(kind, parts[0], parts[-1])


def _applied(operator: str, left: int, right: int) -> int | None:
    if operator in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>"):
        if not 0 <= right < 63:
            return None
        return left << right if operator == "<<" else left >> right
    simple = {"+": left + right, "-": left - right, "*": left * right, "&": left & right, "|": left | right}
    simple |= {"^": left ^ right, "min": min(left, right), "max": max(left, right)}
    return simple[operator]


def _written(node: Node) -> tuple[str, int]:
    """Return a node as C and how tightly it binds."""
    kind = node[0]
    if kind == "number":
        suffix = "LL" if abs(node[1]) > _INT_MAX else ""
        return f"{node[1]}{suffix}", _ATOM if node[1] >= 0 else _UNARY
    if kind == "name":
        return str(node[1]), _ATOM
    if kind == "neg":
        return f"-{_inside(node[1], _ATOM)}", _UNARY
    if kind in ("min", "max"):
        left, right = _inside(node[1], _ATOM), _inside(node[2], _ATOM)
        sign = "<" if kind == "min" else ">"
        return f"({left} {sign} {right} ? {left} : {right})", _ATOM
    binding = _PRECEDENCE[kind]
    left = _inside(node[1], binding)
    if kind == "*" and _is_variable(node[1]) and _is_variable(node[2]):
        left = f"(long long){_inside(node[1], _ATOM)}"
    return f"{left} {kind} {_inside(node[2], binding + 1)}", binding


def _is_variable(node: Node | list[Any]) -> bool:
    return node[0] == "name" or any(
        _is_variable(part) for part in node[1:] if isinstance(part, (tuple, list))
    )


def _inside(node: Node, binding: int) -> str:
    text, own = _written(node)
    return text if own >= binding else f"({text})"
