"""Index expressions as polynomials over thread indices, loop variables, parameters and opaque atoms.

Values are taken as mathematical integers: wrap-around of narrow and unsigned types is not modelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.expansion import expand_macro, parse_expression
from kernelskill.source.influence import BUILTINS, influences
from kernelskill.source.literals import read_integer
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.polynomial import Atom, Polynomial, operation
from kernelskill.source.scopes import Declared, Flow, flow_of, names_in, resolve
from kernelskill.source.syntax import SyntaxTree, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

INTEGER_TYPES = frozenset(
    {
        *("int", "unsigned", "unsigned int", "long", "unsigned long", "long long", "unsigned long long"),
        *("size_t", "ssize_t", "ptrdiff_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "short", "char"),
        *("unsigned short", "unsigned char", "int16_t", "uint16_t", "int8_t", "uint8_t", "auto", "bool"),
        *("std::size_t", "std::int64_t", "long int", "long long int", "signed int", "uint", "ulong", "dim3"),
        *("unsigned long int", "unsigned long long int", "std::ptrdiff_t", "std::int32_t", "std::uint32_t"),
    }
)
_DEPTH = 24
_WORD = re.compile(r"\b[A-Za-z_]")
_THREAD_TEXTS = frozenset(f"{name}.{axis}" for name in ("threadIdx", "blockIdx") for axis in "xyz")


@dataclass(frozen=True)
class _Place:
    """Where an expression stands: its tree, the node that tells what names mean, bound parameters."""

    syntax: SyntaxTree
    at: Node | None = None
    bindings: Mapping[str, Polynomial] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class IndexReader:
    """Turns the integer expressions of one function into polynomials."""

    unit: SourceUnit = field(repr=False)
    function: FunctionDef
    flow: Flow = field(repr=False)
    loops: tuple[Loop, ...] = field(repr=False)

    def read(self, node: Node) -> Polynomial:
        """Return the polynomial of an expression; what can't be read becomes an opaque atom."""
        place = _Place(self.unit.syntax)
        return self._read(node, place, 0) or Polynomial.of(self._opaque(node, place))

    def read_at(self, node: Node, syntax: SyntaxTree, at: Node) -> Polynomial:
        """Return the polynomial of an expression of another tree, its names meant where `at` stands."""
        place = _Place(syntax, at)
        return self._read(node, place, 0) or Polynomial.of(self._opaque(node, place))

    def loop_atom(self, loop: Loop) -> str:
        """Return the text under which a loop shows in polynomials.

        The variable's name where it counts from a value that is the same for all threads; else the
        loop's key, which then counts iterations.
        """
        return loop.key if self._starts_by_thread(loop) else loop.variable

    def _read(self, node: Node, place: _Place, depth: int) -> Polynomial | None:
        """Return None for what is not an integer expression at all."""
        node = strip_parentheses(node)
        handler = _HANDLERS.get(node.type)
        if handler is None or depth > _DEPTH:
            return Polynomial.of(self._opaque(node, place))
        return handler(self, node, place, depth + 1)

    def _opaque(self, node: Node, place: _Place) -> Atom:
        text = " ".join(place.syntax.text_of(node).split())
        at = place.at if place.at is not None else node
        depends = influences(self.flow, node, place.syntax, at)
        for name, value in place.bindings.items():
            depends |= value.depends if name in text else frozenset()
        fixed = not place.bindings and self._is_fixed(node, place, at)
        return Atom(text if fixed else f"{text}@{at.start_byte}", text, depends | {text})

    def _is_fixed(self, node: Node, place: _Place, at: Node) -> bool:
        """Whether an expression has one value all through the function."""
        for entry in walk(node):
            if entry.type in ("subscript_expression", "pointer_expression", "call_expression"):
                return False
            if entry.type != "identifier":
                continue
            name = place.syntax.text_of(entry)
            declared = self._declared(name, at)
            if declared is None and name not in BUILTINS:
                return False
            if isinstance(declared, VariableDef) or (declared and self.flow.writes_to(declared)):
                return False
        return True

    def _declared(self, name: str, at: Node) -> Declared | None:
        return resolve_text(self.unit, self.function, name, at)

    def _number(self, node: Node, place: _Place, _depth: int) -> Polynomial | None:
        value = read_integer(place.syntax.text_of(node))
        return Polynomial.constant(value) if value is not None else None

    def _name(self, node: Node, place: _Place, depth: int) -> Polynomial | None:
        name = place.syntax.text_of(node)
        if name in place.bindings:
            return place.bindings[name]
        at = place.at if place.at is not None else node
        declared = self._declared(name, at)
        if declared is None:
            return self._unbound(name, node, place, at)
        kind = declared.pointee_type if isinstance(declared, ParameterDef) else declared.base_type
        if declared.pointer_depth or kind in _FLOATING:
            return None
        return self._variable(declared, at, place, depth)

    def _unbound(self, name: str, node: Node, place: _Place, at: Node) -> Polynomial | None:
        """Read a macro, a template parameter or an unknown name."""
        value = self.unit.constants.value(node, syntax=place.syntax)
        if value is not None:
            return Polynomial.constant(value)
        macro = self.unit.macro(name)
        if macro is not None and not macro.is_function_like:
            if macro.is_given and not _WORD.search(macro.possible):
                return Polynomial.of(Atom.named(name))
            parsed = parse_expression(f"({macro.value})") if macro.value else None
            return self._read(parsed[1], _Place(parsed[0], at), _DEPTH // 2) if parsed else None
        return Polynomial.of(Atom.named(name))

    def _variable(self, declared: Declared, at: Node, place: _Place, depth: int) -> Polynomial | None:
        if isinstance(declared, VariableDef) and declared.scope.type in (
            "translation_unit",
            "declaration_list",
        ):
            value = self.unit.constants.value(declared.initialiser) if declared.is_const else None
            atom = Atom.named(declared.name) if declared.is_const else self._mutable(declared, at)
            return Polynomial.constant(value) if value is not None else Polynomial.of(atom)
        write = self.flow.reaching(at, declared)
        if write is not None and write.value is not None:
            return self._read(write.value, _Place(self.unit.syntax), depth)
        loop = self._loop_of(declared, at)
        if loop is not None:
            return self._loop_value(loop, depth)
        if self.flow.is_entry_value(at, declared):
            return Polynomial.of(Atom.named(declared.name))
        return Polynomial.of(self._mutable(declared, at))

    def _mutable(self, declared: Declared, at: Node) -> Atom:
        key = f"{declared.name}@{declared.name_span.start}:{at.start_byte}"
        return Atom(key, declared.name, influences(self.flow, at, self.unit.syntax, at) | {declared.name})

    def _loop_of(self, declared: Declared, at: Node) -> Loop | None:
        inside = [
            loop
            for loop in self.loops
            if loop.declared is declared and loop.is_counted and self._sees_variable(loop, at)
        ]
        return inside[-1] if inside else None

    def _sees_variable(self, loop: Loop, at: Node) -> bool:
        """Whether a use in a body comes before the step, where the variable has the iteration's value."""
        if not loop.body_span.contains(span_of(at)):
            return False
        step = loop.step_statement
        in_body = step is not None and loop.body_span.contains(span_of(step))
        return not in_body or (step is not None and at.end_byte <= step.start_byte)

    def _starts_by_thread(self, loop: Loop) -> bool:
        if loop.start is None or loop.step_operator not in ("+", "-"):
            return False
        depends = influences(self.flow, loop.start, self.unit.syntax, loop.start)
        return bool(depends & _THREAD_TEXTS)

    def _loop_value(self, loop: Loop, depth: int) -> Polynomial | None:
        start = None
        if loop.start is not None:
            start = self._read(loop.start, _Place(self.unit.syntax), depth)
        if not self._starts_by_thread(loop) or start is None:
            depends = frozenset({loop.variable, loop.key})
            depends |= start.depends if start is not None else self._write_influences(loop)
            key = f"{loop.variable}@{loop.span.start}"
            return Polynomial.of(Atom(key, loop.variable, depends))
        step = Polynomial.constant(1)
        if loop.step is not None:
            amount = self._read(loop.step, _Place(self.unit.syntax), depth)
            step = amount if amount is not None else Polynomial.of(Atom.named(f"step of {loop.key}"))
        step = -step if loop.step_operator == "-" else step
        counter = Atom(loop.key, loop.key, frozenset({loop.key, loop.variable}))
        return start + step * Polynomial.of(counter)

    def _write_influences(self, loop: Loop) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for write in self.flow.writes_to(loop.declared) if loop.declared is not None else ():
            found |= influences(self.flow, write.node, self.unit.syntax, write.node)
        return found

    def _field(self, node: Node, place: _Place, _depth: int) -> Polynomial | None:
        text = "".join(place.syntax.text_of(node).split())
        base = text.split(".")[0]
        at = place.at if place.at is not None else node
        if base in BUILTINS and self._declared(base, at) is None:
            return Polynomial.of(Atom.named(text))
        return Polynomial.of(self._opaque(node, place))

    def _binary(self, node: Node, place: _Place, depth: int) -> Polynomial | None:
        left_node, right_node = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left_node is None or right_node is None:
            return None
        left, right = self._read(left_node, place, depth), self._read(right_node, place, depth)
        if left is None or right is None:
            return None
        operator = place.syntax.operator(node)
        if operator in ("+", "-", "*"):
            return {"+": left + right, "-": left - right, "*": left * right}[operator]
        if operator == "<<" and right.value is not None and 0 <= right.value < 63:
            return left * Polynomial.constant(1 << right.value)
        if operator in ("/", "%", ">>", "&"):
            return operation(operator, left, right)
        return Polynomial.of(self._opaque(node, place))

    def _unary(self, node: Node, place: _Place, depth: int) -> Polynomial | None:
        argument = node.child_by_field_name("argument")
        operator = place.syntax.operator(node)
        value = self._read(argument, place, depth) if argument is not None else None
        if value is None or operator not in ("-", "+"):
            return None if value is None else Polynomial.of(self._opaque(node, place))
        return -value if operator == "-" else value

    def _cast(self, node: Node, place: _Place, depth: int) -> Polynomial | None:
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if kind is None or value is None or place.syntax.text_of(kind).strip() in _FLOATING:
            return None
        return self._read(value, place, depth) or Polynomial.of(self._opaque(value, place))

    def _call(self, node: Node, place: _Place, depth: int) -> Polynomial | None:
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or listed is None:
            return None
        name = place.syntax.text_of(function)
        arguments = named(listed)
        target = name.removeprefix("static_cast<").removesuffix(">").strip()
        if len(arguments) == 1 and target in INTEGER_TYPES:
            return self._read(arguments[0], place, depth) or Polynomial.of(self._opaque(node, place))
        macro = self.unit.macro(name)
        if macro is not None and macro.is_function_like:
            text = expand_macro(macro, [place.syntax.text_of(argument) for argument in arguments])
            parsed = parse_expression(f"({text})") if text is not None else None
            if parsed is not None:
                at = place.at if place.at is not None else node
                return self._read(parsed[1], _Place(parsed[0], at, place.bindings), depth)
        inlined = self._inlined(name, arguments, place, depth)
        return inlined if inlined is not None else Polynomial.of(self._opaque(node, place))

    def _inlined(self, name: str, arguments: list[Node], place: _Place, depth: int) -> Polynomial | None:
        """Read a call of a function of this file that does nothing but return an expression."""
        target = self.unit.function(name)
        value = single_return(target) if target is not None else None
        if (
            target is None
            or value is None
            or len(arguments) != len(target.parameters)
            or target is self.function
        ):
            return None
        free = set(names_in(self.unit, value)) - {parameter.name for parameter in target.parameters}
        if any(self.function.local(entry) or self.function.parameter(entry) for entry in free):
            return None
        bindings: dict[str, Polynomial] = {}
        for parameter, argument in zip(target.parameters, arguments, strict=True):
            bound = self._read(argument, place, depth)
            if bound is None or parameter.is_pointer:
                return None
            bindings[parameter.name] = bound
        at = place.at if place.at is not None else argument_at(arguments)
        return self._read(value, _Place(self.unit.syntax, at, bindings), depth) if at is not None else None


_FLOATING = frozenset(
    {"float", "double", "half", "__half", "__nv_bfloat16", "long double", "float2", "float4"}
)
_HANDLERS: dict[str, Callable[[IndexReader, Node, _Place, int], Polynomial | None]] = {
    "number_literal": IndexReader._number,
    "identifier": IndexReader._name,
    "field_expression": IndexReader._field,
    "binary_expression": IndexReader._binary,
    "unary_expression": IndexReader._unary,
    "cast_expression": IndexReader._cast,
    "call_expression": IndexReader._call,
}


def argument_at(arguments: list[Node]) -> Node | None:
    """Return the node that tells where a call stands."""
    return arguments[0] if arguments else None


def single_return(function: FunctionDef) -> Node | None:
    """Return the value of a function whose body is one `return`."""
    statements = named(function.body) if function.body is not None else []
    if len(statements) != 1 or statements[0].type != "return_statement":
        return None
    values = named(statements[0])
    return values[0] if len(values) == 1 else None


def resolve_text(unit: SourceUnit, function: FunctionDef, name: str, at: Node) -> Declared | None:
    """Return what a name means at a place."""
    if unit.text_of(at) == name:
        return resolve(unit, function, at)
    span = span_of(at)
    visible = [
        v
        for v in function.locals
        if v.name == name and v.name_span.start <= span.start and v.scope_span.contains(span)
    ]
    if visible:
        return min(visible, key=lambda v: (v.scope_span.end - v.scope_span.start, -v.name_span.start))
    parameter = function.parameter(name)
    return parameter or next((v for v in unit.globals if v.name == name), None)


@lru_cache(maxsize=256)
def index_reader(unit: SourceUnit, function: FunctionDef) -> IndexReader:
    """Return the reader of a function's index expressions."""
    return IndexReader(unit, function, flow_of(unit, function), find_loops(unit, function))


def index_polynomial(unit: SourceUnit, function: FunctionDef, node: Node) -> Polynomial:
    """Return the polynomial of an integer expression of a function."""
    return index_reader(unit, function).read(node)


def coefficient(index: Polynomial, atom: str) -> Polynomial | None:
    """Return the factor of an atom such as `threadIdx.x`, `k` or `n`; None where it is not linear in it."""
    return index.coefficient(atom)
