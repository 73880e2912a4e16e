"""Calls in device code: CUDA's functions, the user's own (inlined), macros and atomics."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Call, Cast, Expression
from kernelskill.algorithm.lifting.arithmetic import binary, convert, negative
from kernelskill.algorithm.lifting.casts import cast_to, combine, dim3_of, listed_value
from kernelskill.algorithm.lifting.cooperation import refuse_cooperation
from kernelskill.algorithm.lifting.cooperative_values import shuffle
from kernelskill.algorithm.lifting.inlining import inline, target_of
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.macros import expand_call
from kernelskill.algorithm.lifting.pairs import pair_function
from kernelskill.algorithm.lifting.places import read_place
from kernelskill.algorithm.lifting.types import VECTORS
from kernelskill.algorithm.lifting.values import Aggregate, CrossLane, MemoryPlace, Pointer, Value
from kernelskill.algorithm.types import is_float, is_integer, joined, promoted
from kernelskill.source.expansion import parse_expression
from kernelskill.source.intrinsics import FAST_COUNTERPARTS, FLOAT_COUNTERPARTS, PURE_FUNCTIONS
from kernelskill.source.syntax import named

_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
_FLOAT_BASES = {single: base for base, single in FLOAT_COUNTERPARTS.items()}
_CONVERSIONS = {
    "__half2float": "float",
    "__float2half": "half",
    "__float2half_rn": "half",
    "__bfloat162float": "float",
    "__float2bfloat16": "bfloat16",
    "__float2bfloat16_rn": "bfloat16",
    "__int2float_rn": "float",
    "__uint2float_rn": "float",
    "__int2half_rn": "half",
    "__float2int_rz": "int",
    "__float2uint_rz": "unsigned",
    "__half2int_rz": "int",
    "__int2double_rn": "double",
}
_OPERATORS = {
    "__hadd": "+",
    "__hsub": "-",
    "__hmul": "*",
    "__hdiv": "/",
    "__hgt": ">",
    "__hge": ">=",
    "__hlt": "<",
    "__hle": "<=",
    "__heq": "==",
    "__hne": "!=",
}
_RESULTS = {
    "__float2int_rn": "int",
    "__float2int_rd": "int",
    "__float2int_ru": "int",
    "__float_as_int": "int",
    "__float_as_uint": "unsigned",
    "__int_as_float": "float",
    "__uint_as_float": "float",
    "__popc": "int",
    "__popcll": "int",
    "__clz": "int",
    "__clzll": "int",
    "__ffs": "int",
    "__ffsll": "int",
    "__brev": "unsigned",
    "__umulhi": "unsigned",
    "__mulhi": "int",
    "__mul24": "int",
    "__umul24": "unsigned",
    "__saturatef": "float",
    "__fdividef": "float",
    "isnan": "bool",
    "isinf": "bool",
    "isfinite": "bool",
    "signbit": "bool",
    "lrintf": "long long",
    "lroundf": "long long",
    "llrintf": "long long",
    "llroundf": "long long",
    "ilogbf": "int",
    "ilogb": "int",
}
_RESULTS |= dict.fromkeys(FAST_COUNTERPARTS.values(), "float")
_RESULTS |= dict.fromkeys(("__dadd_rn", "__dsub_rn", "__dmul_rn"), "double")
_RESULTS |= {
    name: "float" for name in PURE_FUNCTIONS if name.startswith(("__f", "__r")) and name.endswith("_rn")
}
_HALF_FUNCTIONS = frozenset(
    {
        *(
            "__hmax",
            "__hmin",
            "__hfma",
            "__hmul_rn",
            "__habs",
            "hexp",
            "hexp2",
            "hlog",
            "hlog2",
            "hsqrt",
            "hrsqrt",
            "hrcp",
        ),
        *("hsin", "hcos", "hfloor", "hceil", "htrunc", "hrint", "htanh", "__hmax_nan", "__hmin_nan"),
    }
)
_INTEGER_RESULTS = frozenset({"ilogb", "lrint", "llrint", "lround", "llround"})


_REDUCING = {"fmaxf": "fmaxf", "fminf": "fminf", "max": "fmaxf", "min": "fminf", "__hadd": "+"}


def call(machine: Machine, node: Node) -> Value | None:
    """Return the value of a call; None where it has none.

    Raises:
        CannotLift: The call can't be followed.
    """
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or listed is None:
        raise machine.refuse(node, f"the call {machine.text(node)!r} is not understood")
    arguments = named(listed)
    parsed = expand_call(machine, node)
    if parsed is not None:
        with machine.reading(parsed[0]):
            return machine.value(parsed[1])
    template = _template_call(machine, function, arguments, node)
    if template is not None:
        return template
    name = machine.text(function).removeprefix("::").removeprefix("std::")
    if name == "dim3":
        return dim3_of(machine, arguments)
    conversion = _conversion(machine, node, name, arguments, listed)
    if conversion is not None:
        return conversion
    target = target_of(machine, function)
    if target is not None:
        return inline(machine, node, target, arguments, function)
    return _builtin(machine, node, name, arguments)


def _template_call(machine: Machine, function: Node, arguments: list[Node], node: Node) -> Value | None:
    if function.type != "template_function":
        return _numeric_limit(machine, function, arguments)
    name, listed = function.child_by_field_name("name"), function.child_by_field_name("arguments")
    if name is None or listed is None or machine.text(name) not in _CASTS:
        return None
    if len(named(listed)) != 1 or len(arguments) != 1:
        return None
    return cast_to(machine, node, machine.text(named(listed)[0]), machine.value(arguments[0]))


def _numeric_limit(machine: Machine, function: Node, arguments: list[Node]) -> Value | None:
    text = "".join(machine.text(function).split()).removeprefix("std::")
    if not text.startswith("numeric_limits<") or arguments:
        return None
    kind, _, member = text.removeprefix("numeric_limits<").partition(">::")
    found = _LIMITS.get((machine.types.resolve(kind), member))
    if found is None:
        raise machine.refuse(function, f"{text!r} is not understood")
    parsed = parse_expression(found)
    if parsed is None:
        return None
    with machine.reading(parsed[0]):
        return machine.value(parsed[1])


_LIMITS = {
    ("float", "max"): "FLT_MAX",
    ("float", "lowest"): "-FLT_MAX",
    ("float", "min"): "FLT_MIN",
    ("float", "epsilon"): "FLT_EPSILON",
    ("float", "infinity"): "INFINITY",
    ("double", "max"): "DBL_MAX",
    ("double", "lowest"): "-DBL_MAX",
    ("double", "infinity"): "HUGE_VAL",
    ("int", "max"): "INT_MAX",
    ("int", "min"): "INT_MIN",
    ("int", "lowest"): "INT_MIN",
}


def _conversion(machine: Machine, node: Node, name: str, arguments: list[Node], listed: Node) -> Value | None:
    """Return what `float(x)`, `T(x)`, `make_float4(...)` and `float4(...)` make."""
    if name.removeprefix("make_") in VECTORS:
        return listed_value(machine, VECTORS[name.removeprefix("make_")], listed)
    layout = machine.types.layout(name)
    if layout is None or any(f.name == name for _, f in machine.functions()):
        return None
    if layout.is_scalar and len(arguments) == 1:
        return cast_to(machine, node, name, machine.value(arguments[0]))
    return listed_value(machine, layout, listed)


def _builtin(machine: Machine, node: Node, name: str, arguments: list[Node]) -> Value:
    crossed = shuffle(machine, node, name, arguments)
    if crossed is not None:
        return crossed
    refuse_cooperation(machine, node, name)
    if name.startswith("atomic"):
        raise machine.refuse(node, f"the value that {name!r} returns is used")
    values = [machine.value(argument) for argument in arguments]
    if any(isinstance(value, CrossLane) for value in values):
        if len(values) != 2:
            raise machine.refuse(node, f"cooperative: {name!r} of another lane's value is not understood")
        return combine(machine, node, _REDUCING.get(name, name), values[0], values[1])
    if name in ("__ldg", "__ldcs", "__ldcg", "__ldca", "__ldcv") and len(values) == 1:
        pointer = values[0]
        if isinstance(pointer, Pointer):
            return read_place(machine, MemoryPlace(pointer.buffer, pointer.offset, pointer.layout))
    pair = pair_function(name, values, lambda label, operands: scalar_function(machine, label, operands))
    return pair if pair is not None else _of_numbers(machine, node, name, values)


def _of_numbers(machine: Machine, node: Node, name: str, values: list[Value]) -> Value:
    if values and all(isinstance(value, Aggregate) for value in values):
        raise machine.refuse(node, f"{name} on several values at once is not understood")
    numbers = [value for value in values if isinstance(value, Expression)]
    if not values or len(numbers) != len(values):
        raise machine.refuse(node, f"the call of {name!r} is not understood")
    found = scalar_function(machine, name, numbers)
    if found is None:
        raise machine.refuse(node, f"the call of {name!r} is not understood")
    return found


def scalar_function(machine: Machine, name: str, values: list[Expression]) -> Expression | None:
    """Return the value of one of CUDA's functions of numbers; None for other functions."""
    if name in _CONVERSIONS:
        return _explicit(values[0], _CONVERSIONS[name])
    if name in _OPERATORS and len(values) == 2:
        return binary(_OPERATORS[name], values[0], values[1], machine.ranges)
    if name == "__hneg":
        return negative(values[0], machine.ranges)
    if name in _HALF_FUNCTIONS:
        return Call(name, tuple(values), values[0].type)
    if name in ("min", "max"):
        return extremum(name, values)
    if name in ("umin", "umax"):
        return Call(name[1:], tuple(convert(value, "unsigned") for value in values), "unsigned")
    if name in ("abs", "labs", "llabs"):
        return _absolute(values[0])
    if name in _RESULTS:
        return Call(name, tuple(values), _RESULTS[name])
    return _mathematics(name, values)


def _explicit(value: Expression, kind: str) -> Expression:
    known = integers.value_of(value) if is_integer(value.type) else None
    if known is not None:
        return convert(value, kind)
    return value if value.type == kind else Cast(kind, value)


def extremum(name: str, values: list[Expression]) -> Expression | None:
    """Return `min` or `max` as CUDA overloads them."""
    if len(values) != 2:
        return None
    kind = joined(values[0].type, values[1].type)
    first, second = convert(values[0], kind), convert(values[1], kind)
    if is_float(kind):
        if kind not in ("float", "double"):
            return Call("__hmin" if name == "min" else "__hmax", (first, second), kind)
        return Call(f"f{name}{'f' if kind == 'float' else ''}", (first, second), kind)
    a, b = integers.value_of(first), integers.value_of(second)
    if a is not None and b is not None:
        return integers.constant(min(a, b) if name == "min" else max(a, b), kind)
    return first if first == second else Call(name, (first, second), kind)


def _absolute(value: Expression) -> Expression:
    if is_float(value.type):
        return Call("fabsf" if value.type == "float" else "fabs", (value,), value.type)
    return Call("abs", (value,), promoted(value.type))


def _mathematics(name: str, values: list[Expression]) -> Expression | None:
    """Return a maths function under the name of its precision, as C++ overloads choose it."""
    if name in _FLOAT_BASES:
        base, kind = _FLOAT_BASES[name], "float"
    elif name in FLOAT_COUNTERPARTS:
        base = name
        kind = "float" if all(value.type == "float" for value in values) else "double"
    else:
        return None
    if name not in PURE_FUNCTIONS:
        return None
    arguments = tuple(convert(value, kind) for value in values)
    label = FLOAT_COUNTERPARTS[base] if kind == "float" else base
    return Call(label, arguments, "int" if base in _INTEGER_RESULTS else kind)
