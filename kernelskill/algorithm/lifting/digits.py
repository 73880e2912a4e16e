"""Split flat indices that the kernel takes apart by `/` and `%` into axes of their own."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Sym, walk
from kernelskill.algorithm.lifting.draft import Draft
from kernelskill.algorithm.lifting.launch import Binding as LaunchBinding
from kernelskill.algorithm.model import Axis, Binding
from kernelskill.algorithm.types import is_integer

_MOST_SPLITS = 8


def split_digits(draft: Draft, launch: LaunchBinding) -> None:
    """Split axes by the divisors that divide their range exactly; others stay flat."""
    tried: set[tuple[str, Expression]] = set()
    for _ in range(_MOST_SPLITS):
        draft.simplify()
        found = next((pair for pair in _divided(draft) if pair not in tried), None)
        if found is None:
            return
        tried.add(found)
        _split(draft, launch, *found)


def _divided(draft: Draft) -> list[tuple[str, Expression]]:
    """Return pairs of an axis and what it is divided by, in the order of the text."""
    found: list[tuple[str, Expression]] = []
    for expression in draft.expressions():
        for node in walk(expression):
            if not isinstance(node, Binary) or node.op not in ("/", "%") or not is_integer(node.type):
                continue
            if (
                isinstance(node.left, Sym)
                and node.left.name in draft.axes
                and not _uses_axes(draft, node.right)
            ):
                found.append((node.left.name, node.right))
    return list(dict.fromkeys(found))


def _uses_axes(draft: Draft, divisor: Expression) -> bool:
    return divisor.depends_on(*draft.axes) or any(type(node).__name__ == "Load" for node in walk(divisor))


def _split(draft: Draft, launch: LaunchBinding, name: str, divisor: Expression) -> None:
    axis = draft.axes[name]
    if integers.value_of(axis.lower) != 0:
        return
    quotient = _exact(axis.upper, divisor)
    if quotient is None:
        wide = launch.in_host_terms(axis.upper)
        compound = frozenset(n for n, v in launch.values.items() if not isinstance(v, Sym))
        quotient = _exact(launch.in_kernel_terms(wide, expand=compound), divisor)
        if quotient is None:
            return
        draft.notes.append("the length of a flat index is a product because of what the launcher passes")
    high, low = f"{name}/", f"{name}%"
    own = axis.binding if axis.binding is not None else Binding("", "global")
    weight = own.weight if own.weight is not None else integers.constant(1)
    upper_digit = replace(own, weight=integers.multiply(weight, divisor))
    lower_digit = replace(own, weight=weight, wraps=True)
    zero = integers.constant(0)
    axes: dict[str, Axis] = {}
    for key, entry in draft.axes.items():
        if key == name:
            axes[high] = Axis(high, zero, quotient, upper_digit, axis.kind)
            axes[low] = Axis(low, zero, divisor, lower_digit, axis.kind)
        else:
            axes[key] = entry
    draft.axes = axes
    whole = integers.add(integers.multiply(Sym(high, axis.kind), divisor), Sym(low, axis.kind))
    draft.substitute({name: whole})


def _exact(extent: Expression, divisor: Expression) -> Expression | None:
    quotient, rest = integers.exact_division(extent, divisor)
    return quotient if integers.value_of(rest) == 0 and integers.value_of(quotient) != 0 else None
