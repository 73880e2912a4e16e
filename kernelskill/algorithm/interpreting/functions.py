"""Pure functions of CUDA on numpy values; the rounded result of the exact one where there is a choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernelskill.algorithm.interpreting.values import (
    InterpretError,
    Value,
    convert,
    dtype_of,
    fmax,
    fmin,
    fused,
)
from kernelskill.algorithm.types import is_float, is_integer, joined

_erf: Callable[[Value], Value] = np.vectorize(math.erf, otypes=[np.float64])
_erfc: Callable[[Value], Value] = np.vectorize(math.erfc, otypes=[np.float64])
_lgamma: Callable[[Value], Value] = np.vectorize(math.lgamma, otypes=[np.float64])
_tgamma: Callable[[Value], Value] = np.vectorize(math.gamma, otypes=[np.float64])


def _away_from_zero(x: Value) -> Value:
    whole = np.trunc(x)
    return np.asarray(whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0))


def _normal_cdf(x: Value) -> Value:
    return 0.5 * _erfc(-x / math.sqrt(2.0))


_DOUBLE: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "rcp": lambda x: 1.0 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "erf": _erf,
    "erfc": _erfc,
    "lgamma": _lgamma,
    "tgamma": _tgamma,
    "normcdf": _normal_cdf,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": _away_from_zero,
    "fabs": np.abs,
    "pow": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)),
    "ldexp": lambda x, e: np.ldexp(x, e.astype(np.int32)),
    "scalbn": lambda x, e: np.ldexp(x, e.astype(np.int32)),
    "fdivide": np.divide,
}
"""What is computed in double and rounded once. Sums, products and quotients come out exact that way too."""

_ALIASES = {
    "powi": "pow",
    "powif": "powf",
    "__frcp_rn": "rcpf",
    "__fsqrt_rn": "sqrtf",
    "__frsqrt_rn": "rsqrtf",
    "__dsqrt_rn": "sqrt",
    "__drcp_rn": "rcp",
    "__fdiv_rn": "fdividef",
    "__fmaf_rn": "fmaf",
    "__fma_rn": "fma",
    "__saturatef": "saturatef",
    "__hfma": "fma",
    "__hmax": "fmax",
    "__hmin": "fmin",
    "__habs": "fabs",
    "hrcp": "rcp",
}
_FAST = ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow", "fdivide", "tanh")
_ALIASES |= {f"__{name}f": f"{name}f" for name in _FAST}
_ALIASES |= {f"h{name}": name for name in ("exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt")}
_ALIASES |= {f"h{name}": name for name in ("sin", "cos", "tanh", "floor", "ceil", "trunc", "rint")}

_OPERATORS: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_BY_OPERATOR = {
    f"__{lead}{name}{tail}": (operator, kind)
    for name, operator in _OPERATORS.items()
    for lead, tail, kind in (("f", "_rn", "float"), ("d", "_rn", "double"), ("h", "", ""))
}
_BY_OPERATOR["__hmul_rn"] = (np.multiply, "")
_BY_OPERATOR["__hdiv"] = (np.divide, "")
_BY_OPERATOR["__ddiv_rn"] = (np.divide, "double")

_CONVERSIONS = {
    "__float2half": "half",
    "__float2half_rn": "half",
    "__double2half": "half",
    "__int2half_rn": "half",
    "__half2float": "float",
    "__float2bfloat16": "bfloat16",
    "__float2bfloat16_rn": "bfloat16",
    "__double2bfloat16": "bfloat16",
    "__bfloat162float": "float",
    "__int2float_rn": "float",
    "__uint2float_rn": "float",
    "__ll2float_rn": "float",
    "__ull2float_rn": "float",
    "__double2float_rn": "float",
    "__int2double_rn": "double",
    "__uint2double_rn": "double",
    "__ll2double_rn": "double",
    "__float2int_rz": "int",
    "__float2uint_rz": "unsigned",
    "__float2ll_rz": "long long",
    "__double2int_rz": "int",
    "__half2int_rz": "int",
}
_ROUNDINGS = {
    f"__{source}2{target}_{mode}": (operation, kind)
    for source in ("float", "double", "half")
    for target, kind in (("int", "int"), ("uint", "unsigned"), ("ll", "long long"))
    for mode, operation in (("rn", np.rint), ("rd", np.floor), ("ru", np.ceil))
}
_BITS = {
    "__float_as_int": ("float", "int"),
    "__float_as_uint": ("float", "unsigned"),
    "__int_as_float": ("int", "float"),
    "__uint_as_float": ("unsigned", "float"),
    "__double_as_longlong": ("double", "long long"),
    "__longlong_as_double": ("long long", "double"),
    "__half_as_ushort": ("half", "unsigned short"),
    "__ushort_as_half": ("unsigned short", "half"),
}
_TESTS: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "__hisnan": np.isnan,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "__hlt": np.less,
    "__hle": np.less_equal,
    "__hgt": np.greater,
    "__hge": np.greater_equal,
    "__heq": np.equal,
    "__hne": np.not_equal,
}
_COUNTS: dict[str, Callable[[int], int]] = {
    "__popc": lambda v: v.bit_count(),
    "__popcll": lambda v: v.bit_count(),
    "__clz": lambda v: 32 - v.bit_length(),
    "__clzll": lambda v: 64 - v.bit_length(),
    "__ffs": lambda v: (v & -v).bit_length(),
    "__ffsll": lambda v: (v & -v).bit_length(),
    "__brev": lambda v: int(f"{v:032b}"[::-1], 2),
}


def call(name: str, arguments: Sequence[Value], kinds: Sequence[str], kind: str) -> Value:
    """Return the value of a call; `kinds` are the types of the arguments, `kind` that of the result.

    Raises:
        InterpretError: The function is not known here.
    """
    plain = name.removeprefix("::").removeprefix("cuda::")
    for family in (_selections, _arithmetic, _bits, _rounded):
        result = family(_ALIASES.get(plain, plain), list(arguments), list(kinds), kind)
        if result is not None:
            return convert(np.asarray(result), kind)
    raise InterpretError(f"no function {name!r}")


def _selections(name: str, arguments: list[Value], kinds: list[str], kind: str) -> Value | None:
    """Minimum, maximum, absolute value and tests."""
    standard, name = name.startswith("std::"), name.removeprefix("std::")
    if name in ("max", "min", "fmax", "fmin", "fmaxf", "fminf", "umax", "umin", "llmax", "llmin"):
        work = joined(*kinds)
        if name.endswith("f"):
            work = "float"
        a, b = (convert(value, work) for value in arguments)
        greater = "max" in name
        if standard and name in ("max", "min"):
            return np.where(a < b, b, a) if greater else np.where(b < a, b, a)
        if is_float(work):
            return fmax(a, b) if greater else fmin(a, b)
        return np.asarray(np.maximum(a, b) if greater else np.minimum(a, b))
    if name in ("abs", "labs", "llabs"):
        return np.asarray(np.abs(convert(arguments[0], kind)))
    if name == "saturatef":
        x = convert(arguments[0], "float")
        return np.asarray(np.where(np.isnan(x), np.float32(0), np.clip(x, np.float32(0), np.float32(1))))
    if name in _TESTS:
        return np.asarray(_TESTS[name](arguments[0]))
    if name in _COMPARISONS:
        return np.asarray(_COMPARISONS[name](*arguments))
    return None


def _arithmetic(name: str, arguments: list[Value], kinds: list[str], kind: str) -> Value | None:
    """Operators under the names of functions, and the fused product and sum."""
    name = name.removeprefix("std::")
    if name in ("fma", "fmaf"):
        a, b, c = arguments
        return fused(a, b, c, "float" if name == "fmaf" else kind)
    if name == "__hneg":
        return np.asarray(np.negative(convert(arguments[0], kind)))
    if name in _BY_OPERATOR:
        operator, work = _BY_OPERATOR[name]
        return np.asarray(operator(*(convert(value, work or kind) for value in arguments)))
    if name in ("__umulhi", "__mulhi"):
        work = "unsigned" if name == "__umulhi" else "int"
        a, b = (convert(value, work).astype(np.int64 if work == "int" else np.uint64) for value in arguments)
        return np.asarray((a * b) >> a.dtype.type(32)).astype(dtype_of(work))
    if name in ("__mul24", "__umul24"):
        return np.asarray(convert(arguments[0], kind) * convert(arguments[1], kind))
    return None


def _bits(name: str, arguments: list[Value], kinds: list[str], kind: str) -> Value | None:
    """Conversions, reinterpretations and counts of bits."""
    if name in _CONVERSIONS:
        return convert(arguments[0], _CONVERSIONS[name])
    if name in _ROUNDINGS:
        operation, target = _ROUNDINGS[name]
        return convert(np.asarray(operation(arguments[0].astype(np.float64))), target)
    if name in _BITS:
        source, target = _BITS[name]
        return convert(arguments[0], source).view(dtype_of(target))
    if name in _COUNTS:
        bits = 64 if name.endswith("ll") else 32
        mask = (1 << bits) - 1
        counted = [_COUNTS[name](int(value) & mask) for value in np.ravel(arguments[0])]
        return np.asarray(counted, np.int64).reshape(arguments[0].shape)
    return None


def _rounded(name: str, arguments: list[Value], kinds: list[str], kind: str) -> Value | None:
    """Functions of real numbers: in double, then rounded to the type they work in."""
    name = name.removeprefix("std::")
    function, work = _DOUBLE.get(name), kind
    if function is None and name.endswith("f"):
        function, work = _DOUBLE.get(name[:-1]), "float"
    if function is None:
        return None
    if is_integer(work):
        work = "double"
    exact = [
        convert(value, work) if is_float(k) else value for value, k in zip(arguments, kinds, strict=True)
    ]
    return convert(np.asarray(function(*(value.astype(np.float64) for value in exact))), work)
