"""The user's own mapping of points to threads, for algorithms that are emitted unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.integers import add, compared, constant, exact_division, multiply, value_of
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.model import Axis, Binding, IllegalMove


@contextmanager
def original_points(context: Context) -> Iterator[None]:
    """Declare each thread's point, or open the loops over its points, as the user's kernel did.

    Raises:
        IllegalMove: It is not known how the launch produced an axis.
    """
    axes = context.algorithm.axes
    flat: dict[Binding, str] = {}
    for axis in axes:
        binding = _binding(axis)
        if not binding.strided:
            context.out.line(f"const {context.index_type} {axis.name} = {_value(context, axis, flat)};")
    for binding, name in flat.items():
        whole = _whole_of_digits([axis for axis in axes if _flat_binding(_binding(axis)) == binding])
        if whole is not None:
            context.values[whole] = name
    tests = [test for axis in axes if not _binding(axis).strided for test in _tests(context, axis)]
    with ExitStack() as stack:
        if tests:
            stack.enter_context(context.out.block(f"if ({' && '.join(tests)})"))
        for axis in axes:
            binding = _binding(axis)
            if binding.strided:
                stack.enter_context(context.out.block(_loop(context, axis, binding)))
        yield


def _binding(axis: Axis) -> Binding:
    if axis.binding is None or axis.binding.dimension == "":
        raise IllegalMove(f"it is not known how the launch produced {axis.name}")
    if axis.binding.strided and axis.binding.weight is not None:
        raise IllegalMove(f"{axis.name} is a digit of a strided index")
    return axis.binding


def _flat_binding(binding: Binding) -> Binding:
    """Return the index of which an axis is a digit."""
    return replace(binding, weight=None, wraps=False)


def _whole_of_digits(axes: list[Axis]) -> Expression | None:
    """Return what digits of a flat index are together; None where not all of it is among them."""
    length: Expression = constant(1)
    whole: Expression = constant(0)
    waiting = list(axes)
    while waiting:
        digit = next((axis for axis in waiting if _binding(axis).weight == length), None)
        if digit is None or value_of(digit.lower) != 0 or _binding(digit).wraps != (len(waiting) > 1):
            return None
        whole = add(whole, multiply(Sym(digit.name, digit.kind), length))
        length = multiply(length, digit.upper)
        waiting.remove(digit)
    return whole


def _index(binding: Binding) -> str:
    d = binding.dimension
    return {
        "global": f"blockIdx.{d} * blockDim.{d} + threadIdx.{d}",
        "thread": f"threadIdx.{d}",
        "block": f"blockIdx.{d}",
    }[binding.source]


def _wide_index(context: Context, binding: Binding) -> str:
    """Return an index in the type of the indices: a product of built-in values has 32 bits."""
    d = binding.dimension
    if binding.source != "global" or context.index_type != "long long":
        return _index(binding)
    return f"static_cast<long long>(blockIdx.{d}) * blockDim.{d} + threadIdx.{d}"


def _count(binding: Binding) -> str:
    d = binding.dimension
    return {
        "global": f"gridDim.{d} * blockDim.{d}",
        "thread": f"blockDim.{d}",
        "block": f"gridDim.{d}",
    }[binding.source]


def _wide_count(context: Context, binding: Binding) -> str:
    """Return a number of threads in the type of the indices, so that nothing is computed without sign."""
    d = binding.dimension
    if context.index_type != "long long":
        return _count(binding)
    if binding.source == "global":
        return f"static_cast<long long>(gridDim.{d}) * blockDim.{d}"
    return f"static_cast<long long>({_count(binding)})"


def _value(context: Context, axis: Axis, flat: dict[Binding, str]) -> str:
    binding = _binding(axis)
    if binding.weight is None:
        return _wide_index(context, binding)
    whole = _flat_binding(binding)
    if whole not in flat:
        flat[whole] = context.names.fresh("flat")
        context.out.line(f"const {context.index_type} {flat[whole]} = {_wide_index(context, binding)};")
    text = _quotient(context, binding, flat)
    return f"{text} % {_divisor(context.show(axis.upper))}" if binding.wraps else text


def _quotient(context: Context, binding: Binding, flat: dict[Binding, str]) -> str:
    """Return a flat index divided by the weight of a digit, one digit after the other as people write it."""
    assert binding.weight is not None
    whole = _flat_binding(binding)
    text, left = flat[whole], binding.weight
    faster = [
        axis
        for axis in reversed(context.algorithm.axes)
        if axis.binding is not None and _flat_binding(axis.binding) == whole
    ]
    for axis in faster:
        assert axis.binding is not None
        if axis.binding.weight is None or axis.binding == binding or not axis.binding.wraps:
            break
        quotient, rest = exact_division(left, axis.upper)
        if value_of(rest) != 0 or value_of(axis.lower) != 0:
            break
        text, left = f"{text} / {_divisor(context.show(axis.upper))}", quotient
    return text if value_of(left) == 1 else f"{text} / {_divisor(context.show(left))}"


def _divisor(text: str) -> str:
    return f"({text})" if " " in text else text


def _tests(context: Context, axis: Axis) -> list[str]:
    if _binding(axis).wraps:
        return []
    tests = []
    if value_of(axis.lower) != 0:
        tests.append(f"{axis.name} >= {context.show(axis.lower, 8)}")
    below = compared("<", axis.lower, axis.upper)
    if value_of(below) != 0:
        tests.append(f"{axis.name} < {context.show(axis.upper, 8)}")
    return tests


def _loop(context: Context, axis: Axis, binding: Binding) -> str:
    low, high, name = context.show(axis.lower), context.show(axis.upper, 8), axis.name
    first = _wide_index(context, binding)
    start = first if low == "0" else f"{low} + {first}"
    step = _wide_count(context, binding)
    return f"for ({context.index_type} {name} = {start}; {name} < {high}; {name} += {step})"
