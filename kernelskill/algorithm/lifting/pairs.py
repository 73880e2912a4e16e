"""Pairs of halves: the functions on `__half2` and `__nv_bfloat162`, field by field."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.types import VECTORS
from kernelskill.algorithm.lifting.values import Aggregate, Layout, Value

Scalar = Callable[[str, list[Expression]], Expression | None]
"""Makes the call of a function on single values."""
_PAIRS = {"half": VECTORS["__half2"], "bfloat16": VECTORS["__nv_bfloat162"]}
_FIELD_BY_FIELD = {
    f"__{name}2": f"__{name}" for name in ("hadd", "hsub", "hmul", "hfma", "hneg", "habs", "hmax", "hmin")
} | {
    f"h2{name}": f"h{name}"
    for name in (
        "exp",
        "exp2",
        "log",
        "log2",
        "sqrt",
        "rsqrt",
        "rcp",
        "sin",
        "cos",
        "floor",
        "ceil",
        "trunc",
        "rint",
    )
}
_FIELD_BY_FIELD["__h2div"] = "__hdiv"
_MADE_OF_FLOATS = {
    # function -> type of the pair it makes
    "__float2half2_rn": "half",
    "__floats2half2_rn": "half",
    "__float22half2_rn": "half",
    "__float2bfloat162_rn": "bfloat16",
    "__floats2bfloat162_rn": "bfloat16",
    "__float22bfloat162_rn": "bfloat16",
}
_MADE_OF_HALVES = frozenset({"__half2half2", "__halves2half2", "__bfloat162bfloat162", "__halves2bfloat162"})
_TO_FLOATS = frozenset({"__half22float2", "__bfloat1622float2"})
_PICKED = {
    # function -> fields of its operands, and whether these become floats
    "__low2half": ((0,), False),
    "__high2half": ((1,), False),
    "__low2bfloat16": ((0,), False),
    "__high2bfloat16": ((1,), False),
    "__low2float": ((0,), True),
    "__high2float": ((1,), True),
    "__low2half2": ((0, 0), False),
    "__high2half2": ((1, 1), False),
    "__low2bfloat162": ((0, 0), False),
    "__high2bfloat162": ((1, 1), False),
    "__lowhigh2highlow": ((1, 0), False),
}
_OF_BOTH = {"__lows2half2": 0, "__highs2half2": 1, "__lows2bfloat162": 0, "__highs2bfloat162": 1}


def pair_function(name: str, values: Sequence[Value | None], scalar: Scalar) -> Value | None:
    """Return what a function on pairs gives; None where it is no such function, or its operands are others."""
    if name in _MADE_OF_FLOATS:
        return _made(values, _MADE_OF_FLOATS[name])
    if name in _MADE_OF_HALVES and all(isinstance(v, Expression) and v.type in _PAIRS for v in values):
        first = values[0]
        return _made(values, first.type) if isinstance(first, Expression) else None
    pairs = [_fields(value) for value in values]
    known = [pair for pair in pairs if pair is not None]
    if not known or len(known) < len(pairs):
        return None
    kind = known[0][0].type
    if any(field.type != kind for pair in known for field in pair):
        return None
    if name in _FIELD_BY_FIELD:
        return _each(_FIELD_BY_FIELD[name], known, _PAIRS[kind], scalar)
    if name in _TO_FLOATS and len(known) == 1:
        return Aggregate(VECTORS["float2"], tuple(convert(field, "float") for field in known[0]))
    if name in _PICKED and len(known) == 1:
        picked, as_float = _PICKED[name]
        fields = [convert(known[0][k], "float") if as_float else known[0][k] for k in picked]
        return fields[0] if len(fields) == 1 else Aggregate(_PAIRS[kind], tuple(fields))
    if name in _OF_BOTH and len(known) == 2:
        return Aggregate(_PAIRS[kind], tuple(pair[_OF_BOTH[name]] for pair in known))
    return None


def pair_operator(operator: str, first: Value, second: Value, scalar: Scalar) -> Value | None:
    """Return arithmetic on two pairs; None for anything else."""
    name = {"+": "__hadd2", "-": "__hsub2", "*": "__hmul2", "/": "__h2div"}.get(operator)
    return pair_function(name, (first, second), scalar) if name is not None else None


def _fields(value: Value | None) -> tuple[Expression, Expression] | None:
    """Return the two halves of a pair."""
    if not isinstance(value, Aggregate) or value.layout not in (*_PAIRS.values(), VECTORS["half2"]):
        return None
    first, second = value.parts
    return (first, second) if first is not None and second is not None else None


def _made(values: Sequence[Value | None], kind: str) -> Value | None:
    """Return the pair of one value twice, of two values, or of the fields of a `float2`."""
    fields: list[Expression] = []
    for value in values:
        if isinstance(value, Aggregate) and value.layout == VECTORS["float2"]:
            fields += [part for part in value.parts if part is not None]
        elif isinstance(value, Expression):
            fields.append(value)
        else:
            return None
    if len(fields) == 1 and len(values) == 1 and isinstance(values[0], Expression):
        fields *= 2
    if len(fields) != 2:
        return None
    if not all(field.type in _PAIRS for field in fields):
        fields = [convert(field, "float") for field in fields]
    return Aggregate(_PAIRS[kind], tuple(convert(field, kind) for field in fields))


def _each(
    function: str, pairs: Sequence[tuple[Expression, Expression]], layout: Layout, scalar: Scalar
) -> Value | None:
    found = [scalar(function, [pair[field] for pair in pairs]) for field in (0, 1)]
    parts = [part for part in found if part is not None]
    return Aggregate(layout, tuple(parts)) if len(parts) == 2 else None
