"""The C type of an expression in device code, where it can be told from the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.literals import read_number
from kernelskill.source.members import member_type
from kernelskill.source.syntax import Node, ancestors, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

FLOAT_FUNCTIONS = frozenset(
    {
        *(
            "sqrtf",
            "rsqrtf",
            "expf",
            "exp2f",
            "exp10f",
            "expm1f",
            "logf",
            "log2f",
            "log10f",
            "log1pf",
            "powf",
        ),
        *("sinf", "cosf", "tanf", "asinf", "acosf", "atanf", "atan2f", "sinhf", "coshf", "tanhf", "erff"),
        *(
            "erfcf",
            "fabsf",
            "fmaxf",
            "fminf",
            "fmodf",
            "floorf",
            "ceilf",
            "roundf",
            "truncf",
            "rintf",
            "fmaf",
        ),
        *("cbrtf", "hypotf", "copysignf", "lgammaf", "tgammaf", "fdividef", "__expf", "__logf", "__powf"),
        *("__sinf", "__cosf", "__tanf", "__fdividef", "__frcp_rn", "__fsqrt_rn", "__fmaf_rn", "__fadd_rn"),
        *("__fmul_rn", "__half2float", "__bfloat162float", "__saturatef", "__int_as_float", "__int2float_rn"),
        *("__uint2float_rn", "rcbrtf", "normcdff", "sinpif", "cospif", "fdimf", "__fsub_rn", "__fdiv_rn"),
    }
)
GENERIC_FUNCTIONS = frozenset(
    {
        *(
            "sqrt",
            "rsqrt",
            "exp",
            "exp2",
            "exp10",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "pow",
            "sin",
            "cos",
        ),
        *(
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "tanh",
            "erf",
            "erfc",
            "fabs",
            "abs",
            "fmax",
        ),
        *("fmin", "fmod", "floor", "ceil", "round", "trunc", "rint", "fma", "cbrt", "hypot", "copysign"),
        *("max", "min", "fdim"),
    }
)
"""Overloaded on float and double; one double argument makes the result double."""
PURE_FUNCTIONS = FLOAT_FUNCTIONS | GENERIC_FUNCTIONS
_FLOATING = ("double", "float")
_INTEGER_RANK = {
    "bool": 0,
    "char": 0,
    "signed char": 0,
    "unsigned char": 0,
    "short": 0,
    "unsigned short": 0,
    "int": 1,
    "unsigned": 2,
    "long": 3,
    "unsigned long": 4,
    "long long": 5,
    "unsigned long long": 6,
}
_ALIASES = {
    "unsigned int": "unsigned",
    "uint": "unsigned",
    "unsigned long int": "unsigned long",
    "long int": "long",
    "long long int": "long long",
    "size_t": "unsigned long",
    "std::size_t": "unsigned long",
    "ptrdiff_t": "long",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned",
    "int64_t": "long",
    "uint64_t": "unsigned long",
    "signed": "int",
    "signed int": "int",
    "short int": "short",
    "uchar": "unsigned char",
    "ushort": "unsigned short",
}
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!=", "&&", "||"})


def plain_type(text: str) -> str:
    """Return the canonical name of a scalar type as written: `unsigned int` and `uint32_t` are `unsigned`."""
    bare = " ".join(word for word in text.split() if word not in ("const", "volatile", "constexpr", "static"))
    return _ALIASES.get(bare, bare)


def is_integer(name: str | None) -> bool:
    """Whether a plain type is an integer."""
    return name in _INTEGER_RANK


def is_unsigned(name: str | None) -> bool:
    """Whether a plain type is an unsigned integer of at least 32 bits."""
    return name in ("unsigned", "unsigned long", "unsigned long long")


def is_wide(name: str | None) -> bool:
    """Whether a plain type is a 64-bit integer."""
    return name in ("long", "unsigned long", "long long", "unsigned long long")


@dataclass(frozen=True)
class ExpressionTypes:
    """Answers for one function; None is an honest "can't tell"."""

    unit: SourceUnit
    function: FunctionDef
    bindings: Mapping[str, str] = field(default_factory=dict)
    """What template parameters stand for, where every launch agrees."""

    def of(self, node: Node | None) -> str | None:
        """Return the plain type of an expression, a pointer type as `float*`, or None."""
        if node is None:
            return None
        node = strip_parentheses(node)
        handler = _HANDLERS.get(node.type)
        answer: str | None = getattr(self, handler)(node) if handler is not None else None
        return answer

    def of_name(self, name: str, place: Node) -> str | None:
        """Return the type of a variable as seen from a place."""
        variable = visible_local(self.function, name, place)
        if variable is not None:
            if variable.base_type == "auto":
                return self.of(variable.initialiser) if variable.pointer_depth == 0 else None
            depth = variable.pointer_depth + len(variable.dimensions)
            return self._known(variable.base_type, depth)
        parameter = self.function.parameter(name)
        if parameter is not None:
            return self._known(parameter.pointee_type, parameter.pointer_depth)
        found = [entry for entry in self.unit.globals if entry.name == name]
        if len(found) == 1:
            return self._known(found[0].base_type, found[0].pointer_depth + len(found[0].dimensions))
        return None

    def _known(self, base: str, depth: int) -> str | None:
        """Return a type unless its name is a template parameter or a macro."""
        base = self.bindings.get(base, base)
        if any(parameter.name == base for parameter in self.function.template_parameters):
            return None
        return plain_type(base) + "*" * depth if self.unit.macro(base) is None else None

    def _identifier(self, node: Node) -> str | None:
        name = self.unit.text_of(node)
        macro = self.unit.macro(name)
        if macro is not None:
            number = read_number(macro.value.strip("() ")) if not macro.is_function_like else None
            return plain_type(number.type_name) if number is not None else None
        return self.of_name(name, node)

    def _literal(self, node: Node) -> str | None:
        number = read_number(self.unit.text_of(node))
        return plain_type(number.type_name) if number is not None else None

    def _field(self, node: Node) -> str | None:
        argument = node.child_by_field_name("argument")
        text = self.unit.text_of(argument) if argument is not None else ""
        if text in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
            return "unsigned"
        kind, name = (self.of(argument) or "").removesuffix("*"), node.child_by_field_name("field")
        if kind in ("float2", "float3", "float4", "double2", "int2", "int3", "int4"):
            return kind[:-1]
        member = member_type(self.unit, kind, self.unit.text_of(name)) if name is not None else ""
        return self._known(member.rstrip("*"), member.count("*")) if member else None

    def _element(self, node: Node) -> str | None:
        kind = self.of(node.child_by_field_name("argument"))
        return kind[:-1] if kind is not None and kind.endswith("*") else None

    def _pointer(self, node: Node) -> str | None:
        if self.unit.text_of(node).startswith("*"):
            return self._element(node)
        kind = self.of(node.child_by_field_name("argument"))
        return f"{kind}*" if kind is not None else None

    def _unary(self, node: Node) -> str | None:
        if self.unit.operator(node) == "!":
            return "bool"
        kind = self.of(node.child_by_field_name("argument"))
        return "int" if _INTEGER_RANK.get(kind or "") == 0 else kind

    def _binary(self, node: Node) -> str | None:
        operator = self.unit.operator(node)
        if operator in _COMPARISONS:
            return "bool"
        left, right = self.of(node.child_by_field_name("left")), self.of(node.child_by_field_name("right"))
        if operator in ("<<", ">>"):
            return common_type(left, "int")
        if left is not None and left.endswith("*"):
            return left if is_integer(right) else None
        return common_type(left, right)

    def _conditional(self, node: Node) -> str | None:
        return common_type(
            self.of(node.child_by_field_name("consequence")), self.of(node.child_by_field_name("alternative"))
        )

    def _assignment(self, node: Node) -> str | None:
        return self.of(node.child_by_field_name("left"))

    def _cast(self, node: Node) -> str | None:
        kind = node.child_by_field_name("type")
        text = "".join(self.unit.text_of(kind).split(" *")) if kind is not None else ""
        return self._known(text.rstrip("*"), text.count("*")) if kind is not None else None

    def _call(self, node: Node) -> str | None:
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or listed is None:
            return None
        name = called_name(self.unit, node)
        if name.startswith("static_cast<"):
            return self._known(name[len("static_cast<") : -1].strip(), 0)
        if function.type == "primitive_type" or name in self.bindings:
            return self._known(name, 0)
        if self.unit.macro(name) is not None:
            return None
        if name in FLOAT_FUNCTIONS and self.unit.function(name) is None:
            return "float"
        if name in GENERIC_FUNCTIONS and self.unit.function(name) is None:
            return self._generic(name, [self.of(argument) for argument in named(listed)])
        declared = [f for f in self.unit.device_functions if f.name == name]
        if len(declared) == 1 and not declared[0].is_templated:
            return plain_type(declared[0].return_type)
        return None

    def _generic(self, name: str, arguments: list[str | None]) -> str | None:
        if None in arguments or not arguments:
            return None
        if name in ("max", "min", "abs"):
            kind: str | None = arguments[0]
            for argument in arguments[1:]:
                kind = common_type(kind, argument)
            return kind
        return "float" if all(argument == "float" for argument in arguments) else "double"


_HANDLERS = {
    "identifier": "_identifier",
    "number_literal": "_literal",
    "field_expression": "_field",
    "subscript_expression": "_element",
    "pointer_expression": "_pointer",
    "unary_expression": "_unary",
    "binary_expression": "_binary",
    "conditional_expression": "_conditional",
    "assignment_expression": "_assignment",
    "cast_expression": "_cast",
    "call_expression": "_call",
    "update_expression": "_unary",
}


def common_type(left: str | None, right: str | None) -> str | None:
    """Return the type that C's usual arithmetic conversions give, None where either is unknown."""
    if left is None or right is None:
        return None
    for kind in _FLOATING:
        if kind in (left, right):
            other = right if left == kind else left
            return kind if other in _FLOATING or is_integer(other) else None
    if not is_integer(left) or not is_integer(right):
        return None
    winner = max(left, right, key=lambda kind: _INTEGER_RANK[kind])
    return winner if _INTEGER_RANK[winner] > 0 else "int"


def visible_local(function: FunctionDef, name: str, place: Node) -> VariableDef | None:
    """Return the local variable that a name means at a place."""
    scopes = list(ancestors(place))
    visible = [
        variable
        for variable in function.locals
        if variable.name == name and variable.name_span.start <= place.start_byte and variable.scope in scopes
    ]
    return min(visible, key=lambda variable: scopes.index(variable.scope), default=None)


def is_pure(unit: SourceUnit, node: Node) -> bool:
    """Whether evaluating an expression changes nothing and calls only known mathematics."""
    for entry in walk(node):
        if entry.type in (
            "assignment_expression",
            "update_expression",
            "lambda_expression",
            "new_expression",
        ):
            return False
        if entry.type == "identifier":
            macro = unit.macro(unit.text_of(entry))
            if macro is not None and (macro.is_function_like or not _is_number(macro.value)):
                return False
        if entry.type == "call_expression" and not _is_known_call(unit, entry):
            return False
    return True


def is_square(types: ExpressionTypes, left: Node, right: Node) -> bool:
    """Whether two factors are one and the same float, evaluated without effects."""
    same = types.unit.text_of(strip_parentheses(left)) == types.unit.text_of(strip_parentheses(right))
    return same and is_pure(types.unit, left) and types.of(left) in ("float", "double")


def _is_number(text: str) -> bool:
    return read_number(text.strip("()+- ")) is not None


def called_name(unit: SourceUnit, call: Node) -> str:
    """Return the name that a call calls, without `std::`; empty where it has none."""
    function = call.child_by_field_name("function")
    return unit.text_of(function).removeprefix("std::").removeprefix("::") if function is not None else ""


def _is_known_call(unit: SourceUnit, node: Node) -> bool:
    function = node.child_by_field_name("function")
    if function is None:
        return False
    name = called_name(unit, node)
    if function.type == "primitive_type" or name.startswith("static_cast<"):
        return True
    return name in PURE_FUNCTIONS and unit.function(name) is None and unit.macro(name) is None
