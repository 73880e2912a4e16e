"""Trace a Python launch function with integers that record what is done to them.

Runs in the test process. Follows one path only: a comparison ends the trace, because a formula that
holds on one side of it need not hold on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kernelskill.errors import TaskError
from kernelskill.tasks.formula import Node


class Untraceable(BaseException):
    """The sizes are no formula in the arguments; no `except Exception` of the user's may hold it."""


class Symbol:
    """An integer that remembers how it was made."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __add__(self, other: Any) -> Symbol:
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return _binary("*", other, self)

    def __floordiv__(self, other: Any) -> Symbol:
        if self.node[0] == "neg":
            return -_rounded_up(Symbol(self.node[1]), other)
        return _binary("/", self, other)

    def __rfloordiv__(self, other: Any) -> Symbol:
        return _binary("/", other, self)

    def __truediv__(self, other: Any) -> _Ratio:
        return _Ratio(self, other)

    def __rtruediv__(self, other: Any) -> _Ratio:
        return _Ratio(other, self)

    def __mod__(self, other: Any) -> Symbol:
        return _binary("%", self, other)

    def __rmod__(self, other: Any) -> Symbol:
        return _binary("%", other, self)

    def __lshift__(self, other: Any) -> Symbol:
        return _binary("<<", self, other)

    def __rlshift__(self, other: Any) -> Symbol:
        return _binary("<<", other, self)

    def __rshift__(self, other: Any) -> Symbol:
        return _binary(">>", self, other)

    def __and__(self, other: Any) -> Symbol:
        return _binary("&", self, other)

    def __or__(self, other: Any) -> Symbol:
        return _binary("|", self, other)

    def __neg__(self) -> Symbol:
        return Symbol(self.node[1]) if self.node[0] == "neg" else Symbol(("neg", self.node))

    def __pos__(self) -> Symbol:
        return self

    def __ceil__(self) -> Symbol:
        return self

    __floor__ = __round__ = __trunc__ = __ceil__

    def __divmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return self // other, self % other

    def _leave(self, *arguments: Any) -> Any:
        raise Untraceable

    __bool__ = __index__ = __int__ = __float__ = __hash__ = _leave
    __lt__ = __le__ = __gt__ = __ge__ = _leave
    __eq__ = __ne__ = _leave
    __pow__ = __rpow__ = __abs__ = __iter__ = __len__ = _leave


class _Ratio:
    """A quotient that has not been rounded yet."""

    def __init__(self, above: Any, below: Any) -> None:
        self._above, self._below = above, below

    def __ceil__(self) -> Symbol:
        return _rounded_up(self._above, self._below)

    def __floor__(self) -> Symbol:
        return _binary("/", self._above, self._below)

    def __getattr__(self, name: str) -> Any:
        raise Untraceable

    __trunc__ = __floor__


def trace_launch(
    function: Callable[..., Any], parameters: list[str], arguments: Mapping[str, Any], names: dict[str, Any]
) -> list[Node] | None:
    """Return the three sizes of the grid, the three of the block and the shared bytes as formulas.

    Args:
        function: The user's launch.
        parameters: The launcher's integer parameters; any other argument makes no formula.
        arguments: The case's arguments.
        names: The test's module names; `min` and `max` are replaced there while tracing.

    Returns:
        None where the sizes are no formulas in the parameters.
    """
    given = {
        name: Symbol(("name", name) if name in parameters else ("unknown", name))
        if type(value) is int
        else value
        for name, value in arguments.items()
    }
    added = {name: value for name, value in (("min", _least), ("max", _greatest)) if name not in names}
    names.update(added)
    try:
        answer = function(**given)
        sizes = [*_three(answer["grid"]), *_three(answer["block"]), answer.get("shared", 0)]
        nodes = [_node(size) for size in sizes]
    except (Untraceable, TypeError, KeyError, AttributeError):
        return None
    finally:
        for name in added:
            del names[name]
    return None if any(_holds_unknown(node) for node in nodes) else nodes


def _holds_unknown(node: Node) -> bool:
    return node[0] == "unknown" or any(_holds_unknown(part) for part in node[1:] if isinstance(part, tuple))


def _three(given: Any) -> list[Any]:
    sizes = list(given) if isinstance(given, (list, tuple)) else [given]
    return sizes + [1] * (3 - len(sizes))


def _node(value: Any) -> Node:
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, int):
        return ("number", int(value))
    if hasattr(value, "__index__"):
        return ("number", value.__index__())
    raise Untraceable


def _binary(operator: str, left: Any, right: Any) -> Symbol:
    if operator == "*" and isinstance(left, Symbol) and left.node[0] == "neg":
        return Symbol(("neg", _binary("*", Symbol(left.node[1]), right).node))
    return Symbol((operator, _node(left), _node(right)))


def _rounded_up(above: Any, below: Any) -> Symbol:
    extra = below - 1
    return _binary("/", _as_symbol(above) + extra, below)


def _as_symbol(value: Any) -> Symbol:
    return value if isinstance(value, Symbol) else Symbol(_node(value))


def _least(*values: Any, **options: Any) -> Any:
    return _choice("min", min, values, options)


def _greatest(*values: Any, **options: Any) -> Any:
    return _choice("max", max, values, options)


def _choice(word: str, plain: Callable[..., Any], values: tuple[Any, ...], options: dict[str, Any]) -> Any:
    every = tuple(values[0]) if len(values) == 1 else values
    if options or not any(isinstance(value, Symbol) for value in every):
        return plain(*values, **options)
    chosen = every[0]
    for value in every[1:]:
        chosen = Symbol((word, _node(chosen), _node(value)))
    return chosen


def require_function(names: Mapping[str, Any], name: str) -> Callable[..., Any]:
    """Return a function of the test.

    Raises:
        TaskError: There is none of that name.
    """
    function = names.get(name)
    if not callable(function):
        raise TaskError(f"test.py defines no {name}")
    found: Callable[..., Any] = function
    return found
