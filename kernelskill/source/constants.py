"""Fold integer expressions to constants, through macros, constexpr and const variables and enums.

C semantics: division truncates, the result is exact, and anything doubtful is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from kernelskill.source.declarations import VariableDef
from kernelskill.source.literals import read_integer
from kernelskill.source.preprocessor import MacroDef
from kernelskill.source.syntax import SyntaxTree, named, parse_syntax, strip_parentheses, walk

_DEPTH = 16
_SIZES = {
    **dict.fromkeys(("char", "bool", "signed char", "unsigned char", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("short", "unsigned short", "half", "__half", "__nv_bfloat16", "int16_t", "uint16_t"), 2),
    **dict.fromkeys(
        ("int", "unsigned", "unsigned int", "float", "int32_t", "uint32_t", "__half2", "half2"), 4
    ),
    **dict.fromkeys(("double", "long long", "unsigned long long", "int64_t", "uint64_t", "size_t"), 8),
    **dict.fromkeys(("float2", "int2"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}


def type_size(name: str) -> int | None:
    """Return the bytes of a scalar or vector type by its name, or None."""
    return _SIZES.get(name)


def truncated_division(left: int, right: int) -> int:
    """Divide as C does: towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<<": lambda a, b: a << b if 0 <= b < 64 else 0,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else 0,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "&&": lambda a, b: int(bool(a and b)),
    "||": lambda a, b: int(bool(a or b)),
}


@dataclass(frozen=True)
class Constants:
    """What is known about names: macros, file variables and enumerators."""

    syntax: SyntaxTree = field(repr=False)
    macros: Mapping[str, MacroDef]
    globals: Mapping[str, VariableDef]
    enumerators: Mapping[str, int]

    @staticmethod
    def of(syntax: SyntaxTree, macros: tuple[MacroDef, ...], variables: tuple[VariableDef, ...]) -> Constants:
        """Collect the constants of a file; a macro defined twice or given by flags counts for nothing."""
        counts: dict[str, int] = {}
        for macro in macros:
            counts[macro.name] = counts.get(macro.name, 0) + 1
        known = {m.name: m for m in macros if counts[m.name] == 1 and not m.is_given}
        fixed = {v.name: v for v in variables if v.is_const and v.pointer_depth == 0 and not v.dimensions}
        bare = Constants(syntax, known, fixed, {})
        return Constants(syntax, known, fixed, _enumerators(bare))

    def value(
        self, node: Node | None, locals_: Mapping[str, Node] | None = None, syntax: SyntaxTree | None = None
    ) -> int | None:
        """Return the value of an integer expression, or None.

        Args:
            node: The expression.
            locals_: Initialisers of local constants, by name.
            syntax: The tree that `node` belongs to, where it is not the file's own.
        """
        return _Folder(self, locals_ or {}, syntax or self.syntax).fold(node, 0)


@dataclass(frozen=True)
class _Folder:
    constants: Constants
    locals: Mapping[str, Node]
    syntax: SyntaxTree
    arguments: Mapping[str, int] = field(default_factory=dict)

    def fold(self, node: Node | None, depth: int) -> int | None:
        if node is None or depth > _DEPTH:
            return None
        node = strip_parentheses(node)
        handler = _HANDLERS.get(node.type)
        return handler(self, node, depth + 1) if handler is not None else None

    def literal(self, node: Node, _depth: int) -> int | None:
        return read_integer(self.syntax.text_of(node))

    def name(self, node: Node, depth: int) -> int | None:
        name = self.syntax.text_of(node)
        if name in self.arguments:
            return self.arguments[name]
        if name in self.locals:
            return self.fold(self.locals[name], depth)
        macro = self.constants.macros.get(name)
        if macro is not None and macro.parameters is None:
            return self.expand(macro, {}, depth)
        if name in self.constants.enumerators:
            return self.constants.enumerators[name]
        variable = self.constants.globals.get(name)
        if variable is None or variable.initialiser is None:
            return None
        return _Folder(self.constants, {}, self.constants.syntax).fold(_single(variable.initialiser), depth)

    def expand(self, macro: MacroDef, arguments: Mapping[str, int], depth: int) -> int | None:
        syntax = parse_syntax(f"auto value = ({macro.value});")
        declared = next((n for n in walk(syntax.root) if n.type == "init_declarator"), None)
        if declared is None or syntax.root.has_error:
            return None
        return _Folder(self.constants, {}, syntax, arguments).fold(
            declared.child_by_field_name("value"), depth
        )

    def call(self, node: Node, depth: int) -> int | None:
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or listed is None:
            return None
        values = [self.fold(child, depth) for child in named(listed)]
        known = [value for value in values if value is not None]
        if len(known) != len(values):
            return None
        name = self.syntax.text_of(function)
        if function.type == "primitive_type" and len(known) == 1:
            return known[0]
        if name.removeprefix("std::") in ("min", "max") and len(known) == 2:
            return min(known) if name.endswith("min") else max(known)
        macro = self.constants.macros.get(name)
        if macro is not None and macro.parameters is not None and len(macro.parameters) == len(known):
            return self.expand(macro, dict(zip(macro.parameters, known, strict=True)), depth)
        return None

    def binary(self, node: Node, depth: int) -> int | None:
        left = self.fold(node.child_by_field_name("left"), depth)
        right = self.fold(node.child_by_field_name("right"), depth)
        operator = self.syntax.operator(node)
        if left is None or right is None:
            return None
        if operator in ("/", "%"):
            if right == 0:
                return None
            quotient = truncated_division(left, right)
            return quotient if operator == "/" else left - quotient * right
        function = _BINARY.get(operator)
        return function(left, right) if function is not None else None

    def unary(self, node: Node, depth: int) -> int | None:
        value = self.fold(node.child_by_field_name("argument"), depth)
        operator = self.syntax.operator(node)
        if value is None:
            return None
        return {"-": -value, "+": value, "~": ~value, "!": int(not value)}.get(operator)

    def cast(self, node: Node, depth: int) -> int | None:
        kind = node.child_by_field_name("type")
        wide = kind is not None and self.syntax.text_of(kind).strip() in _INTEGER_TYPES
        return self.fold(node.child_by_field_name("value"), depth) if wide else None

    def conditional(self, node: Node, depth: int) -> int | None:
        condition = self.fold(node.child_by_field_name("condition"), depth)
        if condition is None:
            return None
        return self.fold(node.child_by_field_name("consequence" if condition else "alternative"), depth)

    def size_of(self, node: Node, _depth: int) -> int | None:
        kind = node.child_by_field_name("type")
        text = self.syntax.text_of(kind).strip() if kind is not None else ""
        return 8 if text.endswith("*") else _SIZES.get(text)


_INTEGER_TYPES = frozenset(
    {"int", "long", "long long", "unsigned", "unsigned int", "size_t", "int64_t", "int32_t", "uint32_t"}
    | {"unsigned long long", "unsigned long", "uint64_t", "ptrdiff_t"}
)
_HANDLERS: Mapping[str, Callable[[_Folder, Node, int], int | None]] = {
    "number_literal": _Folder.literal,
    "identifier": _Folder.name,
    "qualified_identifier": _Folder.name,
    "type_identifier": _Folder.name,
    "type_descriptor": lambda folder, node, depth: folder.fold(node.child_by_field_name("type"), depth),
    "call_expression": _Folder.call,
    "binary_expression": _Folder.binary,
    "unary_expression": _Folder.unary,
    "cast_expression": _Folder.cast,
    "conditional_expression": _Folder.conditional,
    "sizeof_expression": _Folder.size_of,
}


def _single(initialiser: Node) -> Node | None:
    """Return the value of `= v`, `(v)` or `{v}`."""
    if initialiser.type in ("argument_list", "initializer_list"):
        values = named(initialiser)
        return values[0] if len(values) == 1 else None
    return initialiser


def _enumerators(constants: Constants) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in walk(constants.syntax.root):
        if node.type != "enumerator_list":
            continue
        following: int | None = 0
        for entry in named(node):
            name, value = entry.child_by_field_name("name"), entry.child_by_field_name("value")
            if name is None:
                continue
            if value is not None:
                following = constants.value(value)
            if following is not None:
                found[constants.syntax.text_of(name)] = following
                following += 1
    return found
