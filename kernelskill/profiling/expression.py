"""Arithmetic over named figures, as rule tables write it: numbers, names, + - * /, comparisons, min and max."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from kernelskill.errors import HarnessError

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISON: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
_FUNCTIONS: dict[str, Callable[[float, float], float]] = {"min": min, "max": max}


class Expression:
    """One parsed expression.

    Raises:
        HarnessError: The text is not an expression of the permitted kind.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise HarnessError(f"{text!r} is no expression: {error.msg}") from error
        self.names = frozenset(self._check(self._tree))

    def value(self, figures: Mapping[str, float]) -> float | None:
        """Return the value; None where a name is unknown or a divisor is zero."""
        if not self.names <= figures.keys():
            return None
        try:
            return self._evaluate(self._tree, figures)
        except ZeroDivisionError:
            return None

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Return whether the value is known and not zero."""
        return bool(self.value(figures))

    def _check(self, node: ast.expr) -> set[str]:
        match node:
            case ast.Constant(value=int() | float()):
                return set()
            case ast.Name(id=name):
                return {name}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._check(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return self._check(left) | self._check(right)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISON:
                return self._check(left) | self._check(right)
            case ast.Call(func=ast.Name(id=name), args=[first, second], keywords=[]) if name in _FUNCTIONS:
                return self._check(first) | self._check(second)
            case _:
                raise HarnessError(f"{self.text!r} holds something else than arithmetic on figures")

    def _evaluate(self, node: ast.expr, figures: Mapping[str, float]) -> float:
        match node:
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.Name(id=name):
                return figures[name]
            case ast.UnaryOp(operand=operand):
                return -self._evaluate(operand, figures)
            case ast.BinOp(left=left, op=op, right=right):
                return _ARITHMETIC[type(op)](self._evaluate(left, figures), self._evaluate(right, figures))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return float(
                    _COMPARISON[type(op)](self._evaluate(left, figures), self._evaluate(right, figures))
                )
            case ast.Call(func=ast.Name(id=name), args=[first, second]):
                return _FUNCTIONS[name](self._evaluate(first, figures), self._evaluate(second, figures))
            case _:
                raise HarnessError(f"{self.text!r} was not checked")
