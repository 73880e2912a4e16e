"""The user's own mapping of points to threads, for algorithms that are emitted unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from kernelskill.algorithm.integers import compared, exact_division, value_of
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


def _wide(context: Context, text: str) -> str:
    """Return a built-in index in the type of the indices, so that nothing is computed without sign."""
    return f"static_cast<long long>({text})" if context.index_type == "long long" else text


def _value(context: Context, axis: Axis, flat: dict[Binding, str]) -> str:
    binding = _binding(axis)
    if binding.weight is None:
        return _wide_index(context, binding)
    whole = Binding(binding.dimension, binding.source)
    if whole not in flat:
        flat[whole] = context.names.fresh("flat")
        context.out.line(f"const {context.index_type} {flat[whole]} = {_wide_index(context, binding)};")
    text = _quotient(context, binding, flat)
    return f"{text} % {_divisor(context.show(axis.upper))}" if binding.wraps else text


def _quotient(context: Context, binding: Binding, flat: dict[Binding, str]) -> str:
    """Return a flat index divided by the weight of a digit, one digit after the other as people write it."""
    assert binding.weight is not None
    whole = Binding(binding.dimension, binding.source)
    text, left = flat[whole], binding.weight
    faster = [
        axis
        for axis in reversed(context.algorithm.axes)
        if axis.binding is not None and replace(axis.binding, weight=None, wraps=False) == whole
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
    start = _index(binding) if low == "0" else f"{low} + {_index(binding)}"
    step = _wide(context, _count(binding))
    return f"for ({context.index_type} {name} = {start}; {name} < {high}; {name} += {step})"
