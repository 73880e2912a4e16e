"""Literals, maths calls and the types of expressions, as far as declarations tell."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.intrinsics import FAST_COUNTERPARTS as FAST_COUNTERPARTS
from kernelskill.source.intrinsics import FLOAT_COUNTERPARTS as FLOAT_COUNTERPARTS
from kernelskill.source.intrinsics import TRANSCENDENTALS as TRANSCENDENTALS
from kernelskill.source.literals import NumberLiteral, read_number
from kernelskill.source.members import member_type
from kernelskill.source.pointers import pointer_reader
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Span, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_FLOAT_RETURNING = frozenset(FLOAT_COUNTERPARTS.values()) | {
    *FAST_COUNTERPARTS.values(),
    *(
        "__half2float",
        "__bfloat162float",
        "__int_as_float",
        "__int2float_rn",
        "__uint2float_rn",
        "__fdividef",
    ),
    *("__fadd_rn", "__fmul_rn", "__fmaf_rn", "__frcp_rn", "__fsqrt_rn", "__frsqrt_rn", "__saturatef"),
}
_INTEGERS = (
    "bool",
    "char",
    "short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
)
_SPELLINGS = {
    "unsigned int": "unsigned",
    "uint": "unsigned",
    "int32_t": "int",
    "uint32_t": "unsigned",
    "int64_t": "long long",
    "uint64_t": "unsigned long long",
    "size_t": "unsigned long",
    "std::size_t": "unsigned long",
    "ptrdiff_t": "long",
    "long int": "long",
    "long long int": "long long",
    "unsigned long int": "unsigned long",
    "half": "__half",
    "signed int": "int",
    "signed": "int",
    "unsigned char": "unsigned char",
    "uint8_t": "unsigned char",
    "int8_t": "char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
}
_VECTOR_ELEMENTS = {"float": "float", "double": "double", "int": "int", "uint": "unsigned", "dim": "unsigned"}


@dataclass(frozen=True)
class LiteralSite:
    """A number literal in the source."""

    number: NumberLiteral
    span: Span
    node: Node = field(repr=False)


@dataclass(frozen=True)
class MathCall:
    """A call of a maths function."""

    name: str
    """Without `std::`."""
    base: str
    """The double-precision name, for example `exp` for `expf`."""
    is_double: bool
    """Whether it computes in double precision; False where the arguments' types can't be told."""
    float_name: str
    """The single-precision counterpart."""
    result_type: str
    """`float`, `double`, or empty where unknown."""
    arguments: tuple[Node, ...] = field(repr=False)
    span: Span
    name_span: Span
    node: Node = field(repr=False)


def find_literals(unit: SourceUnit, node: Node) -> tuple[LiteralSite, ...]:
    """Return the number literals below a node in the order of the text."""
    found = []
    for entry in walk(node):
        number = read_number(unit.text_of(entry)) if entry.type == "number_literal" else None
        if number is not None:
            found.append(LiteralSite(number, span_of(entry), entry))
    return tuple(found)


def find_math_calls(
    unit: SourceUnit, function: FunctionDef, node: Node | None = None
) -> tuple[MathCall, ...]:
    """Return the calls of maths functions below a node, by default in the whole body."""
    place = node if node is not None else function.body
    if place is None:
        return ()
    calls = [_math_call(unit, function, entry) for entry in walk(place) if entry.type == "call_expression"]
    return tuple(call for call in calls if call is not None)


def _math_call(unit: SourceUnit, function: FunctionDef, node: Node) -> MathCall | None:
    called, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if called is None or listed is None:
        return None
    name = unit.text_of(called).removeprefix("std::").removeprefix("::")
    base = _math_base(name)
    if base is None or unit.function(name) is not None or unit.macro(name) is not None:
        return None
    result = static_type(unit, function, node)
    return MathCall(
        name=name,
        base=base,
        is_double=result == "double",
        float_name=FLOAT_COUNTERPARTS[base],
        result_type=result,
        arguments=tuple(named(listed)),
        span=span_of(node),
        name_span=span_of(called),
        node=node,
    )


def _math_base(name: str) -> str | None:
    if name in FLOAT_COUNTERPARTS:
        return name
    plain = name.removeprefix("__")
    base = plain[:-1] if plain.endswith("f") else plain
    known = base in FLOAT_COUNTERPARTS and plain == f"{base}f"
    return base if known else None


def normalised_type(text: str) -> str:
    """Return one spelling for a scalar type; other types without qualifiers."""
    words = [word for word in text.split() if word not in ("const", "volatile", "constexpr", "static")]
    plain = " ".join(words)
    return _SPELLINGS.get(plain, plain)


def static_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int = 0) -> str:
    """Return the type of an expression, for example `float`; empty where it can't be told.

    Pointers end in `*`. Typedefs and template parameters are returned as written.
    """
    node = strip_parentheses(node)
    handler = _TYPE_HANDLERS.get(node.type)
    return handler(unit, function, node, depth + 1) if handler is not None and depth < 32 else ""


def _literal_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    number = read_number(unit.text_of(node))
    return normalised_type(number.type_name) if number is not None else ""


def _name_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    flow = flow_of(unit, function)
    declared = flow.resolve(node)
    if declared is None:
        return _macro_type(unit, unit.text_of(node))
    if isinstance(declared, ParameterDef):
        return _resolved(unit, function, declared.pointee_type) + "*" * declared.pointer_depth
    stars = "*" * (declared.pointer_depth + len(declared.dimensions))
    if declared.base_type == "auto":
        value = declared.initialiser
        return static_type(unit, function, value, depth) if value is not None else ""
    return _resolved(unit, function, declared.base_type) + stars


def _macro_type(unit: SourceUnit, name: str) -> str:
    macro = unit.macro(name)
    number = read_number(macro.value.strip("() ")) if macro is not None and macro.value else None
    return normalised_type(number.type_name) if number is not None else ""


def _resolved(unit: SourceUnit, function: FunctionDef, type_text: str) -> str:
    """Return a type with simple typedefs of the file followed."""
    for _ in range(4):
        target = _aliases(unit).get(type_text)
        if target is None:
            break
        type_text = target
    return normalised_type(type_text)


def _aliases(unit: SourceUnit) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in unit.root.children:
        if node.type == "type_definition":
            kind, name = node.child_by_field_name("type"), node.child_by_field_name("declarator")
        elif node.type == "alias_declaration":
            kind, name = node.child_by_field_name("type"), node.child_by_field_name("name")
        else:
            continue
        if kind is not None and name is not None and name.type == "type_identifier":
            found[unit.text_of(name)] = unit.text_of(kind)
    return found


def _element_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    base = node.child_by_field_name("argument")
    text = static_type(unit, function, base, depth) if base is not None else ""
    if text.endswith("*"):
        return text[:-1]
    if node.type == "pointer_expression" and unit.operator(node) == "&":
        return f"{text}*" if text else ""
    reader = pointer_reader(unit, function)
    return reader.element(node).element_type if node.type == "subscript_expression" else ""


def _field_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    base, name = node.child_by_field_name("argument"), node.child_by_field_name("field")
    if base is None or name is None:
        return ""
    if unit.text_of(base) in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        return "unsigned"
    kind = static_type(unit, function, base, depth).rstrip("*")
    if kind[-1:].isdigit() and unit.text_of(name) in ("x", "y", "z", "w"):
        return _VECTOR_ELEMENTS.get(kind[:-1], "")
    found = member_type(unit, kind, unit.text_of(name))
    bare = found.rstrip("*")
    return normalised_type(bare) + found[len(bare) :] if bare else ""


def _binary_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = unit.operator(node)
    if left is None or right is None or operator in ("==", "!=", "<", ">", "<=", ">=", "&&", "||"):
        return "bool"
    first = static_type(unit, function, left, depth)
    if operator in ("<<", ">>"):
        return first
    return common_type(first, static_type(unit, function, right, depth))


def common_type(first: str, second: str) -> str:
    """Return the type of an arithmetic operation on two types; empty where unknown."""
    if not first or not second:
        return ""
    if first.endswith("*") or second.endswith("*"):
        return first if first.endswith("*") else second
    for kind in ("long double", "double", "float"):
        if kind in (first, second):
            other = second if first == kind else first
            return kind if other in (*_INTEGERS, "float", "double", "long double", "unsigned char") else ""
    if first in _INTEGERS and second in _INTEGERS:
        rank = max(_INTEGERS.index(first), _INTEGERS.index(second), _INTEGERS.index("int"))
        return _INTEGERS[rank]
    return first if first == second else ""


def _unary_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    argument = node.child_by_field_name("argument")
    kind = static_type(unit, function, argument, depth) if argument is not None else ""
    return "bool" if unit.operator(node) == "!" else "int" if kind in ("bool", "char", "short") else kind


def _cast_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    kind = node.child_by_field_name("type")
    text = unit.text_of(kind) if kind is not None else ""
    stars = "*" * text.count("*")
    return _resolved(unit, function, normalised_type(text.replace("*", " ").replace("&", " "))) + stars


def _call_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    called, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if called is None or listed is None:
        return ""
    name = unit.text_of(called).removeprefix("std::").removeprefix("::")
    target = unit.function(name)
    if target is not None:
        return normalised_type(target.return_type)
    if called.type == "primitive_type" or name in _SPELLINGS:
        return normalised_type(name)
    if name.startswith(("static_cast<", "reinterpret_cast<")):
        text = name.split("<", 1)[1].rsplit(">", 1)[0]
        return normalised_type(text.replace("*", " ")) + "*" * text.count("*")
    if name.startswith("make_"):
        return name.removeprefix("make_")
    if name in _FLOAT_RETURNING:
        return "float"
    kinds = [static_type(unit, function, argument, depth) for argument in named(listed)]
    return _overloaded_type(name, kinds)


def _overloaded_type(name: str, kinds: list[str]) -> str:
    """Return the result of a function that CUDA overloads by argument type."""
    if not kinds or not all(kinds):
        return ""
    if name in FLOAT_COUNTERPARTS:
        return "float" if all(kind == "float" for kind in kinds) else "double"
    if name in ("min", "max", "abs", "__ldg", "__shfl_down_sync", "__shfl_xor_sync", "__shfl_sync"):
        return common_type(kinds[0], kinds[-1]) if name in ("min", "max") else kinds[0].rstrip("*")
    return ""


def _assignment_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    left = node.child_by_field_name("left") or node.child_by_field_name("argument")
    return static_type(unit, function, left, depth) if left is not None else ""


def _choice_type(unit: SourceUnit, function: FunctionDef, node: Node, depth: int) -> str:
    sides = [node.child_by_field_name(name) for name in ("consequence", "alternative")]
    kinds = [static_type(unit, function, side, depth) for side in sides if side is not None]
    return (
        common_type(kinds[0], kinds[1])
        if len(kinds) == 2 and kinds[0] != kinds[1]
        else kinds[0]
        if kinds
        else ""
    )


_TYPE_HANDLERS = {
    "number_literal": _literal_type,
    "identifier": _name_type,
    "subscript_expression": _element_type,
    "pointer_expression": _element_type,
    "field_expression": _field_type,
    "binary_expression": _binary_type,
    "unary_expression": _unary_type,
    "cast_expression": _cast_type,
    "call_expression": _call_type,
    "assignment_expression": _assignment_type,
    "update_expression": _assignment_type,
    "conditional_expression": _choice_type,
}
