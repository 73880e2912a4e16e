"""Follow pointers to what they point into: a parameter, an array, a file variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from tree_sitter import Node

from kernelskill.source.affine import IndexReader, index_reader
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.polynomial import Polynomial
from kernelskill.source.scopes import Declared
from kernelskill.source.syntax import named, strip_parentheses
from kernelskill.source.unit import SourceUnit

_DEPTH = 16
_CASTS = ("reinterpret_cast<", "const_cast<", "static_cast<")


class Space(StrEnum):
    """The memory that a pointer points into."""

    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    CONSTANT = "constant"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Target:
    """What a pointer expression points at."""

    root: Declared | None
    """The parameter or array it points into; None where that can't be told."""
    root_name: str
    """Name of the root; the expression itself where it is not a plain variable."""
    space: Space
    element_type: str
    """Type of what the pointer as used points at, without `const`; empty where unknown."""
    offset: Polynomial | None
    """Elements from the root's start; None where unknown or counted in another type."""
    row: tuple[Polynomial | None, ...] = ()
    """Elements of one step along each array dimension not yet indexed."""

    @property
    def is_known(self) -> bool:
        return self.root is not None


def _unknown(text: str) -> Target:
    return Target(None, text, Space.UNKNOWN, "", None)


@dataclass(frozen=True, eq=False)
class PointerReader:
    """Finds the targets of one function's pointer expressions."""

    unit: SourceUnit
    function: FunctionDef
    indices: IndexReader

    def read(self, node: Node, depth: int = 0) -> Target:
        """Return what a pointer or array expression points at."""
        node = strip_parentheses(node)
        handler = _HANDLERS.get(node.type)
        if handler is None or depth > _DEPTH:
            return _unknown(self.unit.text_of(node))
        return handler(self, node, depth + 1)

    def indexed(self, target: Target, index: Node) -> Target:
        """Return the target moved by an index, one array dimension down."""
        return self.moved(target, self.indices.read(index), subscript=True)

    def moved(self, target: Target, amount: Polynomial, *, subscript: bool = False) -> Target:
        """Return the target moved by a number of elements, or of rows where it is an array of arrays."""
        stride = target.row[0] if target.row else Polynomial.constant(1)
        offset = None
        if target.offset is not None and stride is not None:
            offset = target.offset + amount * stride
        row = target.row[1:] if subscript else target.row
        return Target(target.root, target.root_name, target.space, target.element_type, offset, row)

    def _name(self, node: Node, depth: int) -> Target:
        flow = self.indices.flow
        declared = flow.resolve(node)
        name = self.unit.text_of(node)
        if declared is None:
            return _unknown(name)
        if isinstance(declared, ParameterDef):
            return self.parameter(declared, node, depth)
        if declared.dimensions:
            return self.array(declared)
        if not declared.pointer_depth and declared.base_type != "auto":
            return Target(declared, name, Space.LOCAL, declared.base_type, Polynomial())
        write = flow.reaching(node, declared)
        if write is not None and write.value is not None:
            found = self.read(write.value, depth)
            kept = found.element_type in ("", _plain(declared.base_type)) or declared.base_type == "auto"
            offset = found.offset if kept else None
            element = found.element_type if declared.base_type == "auto" else _plain(declared.base_type)
            return Target(found.root, found.root_name, found.space, element, offset, found.row)
        return self._by_all_writes(declared, depth)

    def unknown(self, text: str) -> Target:
        """Return the target of a pointer that can't be followed."""
        return _unknown(text)

    def parameter(self, declared: ParameterDef, node: Node, depth: int = 0) -> Target:
        """Return what a parameter points at where `node` stands."""
        device = self.function.kind.value == "kernel"
        space = Space.GLOBAL if device else Space.UNKNOWN
        if not declared.is_pointer:
            space = Space.LOCAL
        element = _plain(declared.pointee_type)
        offset: Polynomial | None = Polynomial()
        writes = self.indices.flow.writes_to(declared)
        if writes and not self.indices.flow.is_entry_value(node, declared):
            offset = None
            for write in writes:
                if (
                    write.is_plain
                    and write.value is not None
                    and self.read(write.value, depth).root is not declared
                ):
                    return _unknown(declared.name)
                if write.operator in ("&", "asm", "lambda"):
                    return _unknown(declared.name)
        return Target(declared, declared.name, space, element, offset)

    def array(self, declared: VariableDef) -> Target:
        """Return an array as the target of its name."""
        strides: list[Polynomial | None] = [Polynomial.constant(1)]
        for size in reversed(declared.dimensions[1:]):
            inner = strides[0]
            extent = self.indices.read(size) if size is not None else None
            strides.insert(0, inner * extent if inner is not None and extent is not None else None)
        return Target(
            declared,
            declared.name,
            _SPACES.get(declared.storage, Space.UNKNOWN),
            _plain(declared.base_type),
            Polynomial(),
            tuple(strides),
        )

    def _by_all_writes(self, declared: VariableDef, depth: int) -> Target:
        """Follow a pointer that walks: every value it is given must point into one root."""
        roots: dict[int, Target] = {}
        for write in self.indices.flow.writes_to(declared):
            if write.operator in ("&", "asm", "lambda", "range"):
                return _unknown(declared.name)
            if write.is_plain and write.value is not None and not self._is_self(write.value, declared):
                found = self.read(write.value, depth)
                if found.root is None:
                    return _unknown(declared.name)
                roots[id(found.root)] = found
        if len(roots) != 1:
            return _unknown(declared.name)
        only = next(iter(roots.values()))
        return Target(only.root, only.root_name, only.space, _plain(declared.base_type), None)

    def _is_self(self, value: Node, declared: VariableDef) -> bool:
        """Whether a value is the pointer itself moved, as in `p = p + n`."""
        value = strip_parentheses(value)
        if value.type != "binary_expression" or self.unit.operator(value) not in ("+", "-"):
            return False
        left = value.child_by_field_name("left")
        return left is not None and left.type == "identifier" and self.indices.flow.resolve(left) is declared

    def _sum(self, node: Node, depth: int) -> Target:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        if left is None or right is None or operator not in ("+", "-"):
            return _unknown(self.unit.text_of(node))
        if not self._is_pointer(left) and operator == "+":
            left, right = right, left
        amount = self.indices.read(right)
        return self.moved(self.read(left, depth), -amount if operator == "-" else amount)

    def _is_pointer(self, node: Node) -> bool:
        """Whether an expression is a pointer, as far as names tell."""
        node = strip_parentheses(node)
        if node.type == "identifier":
            declared = self.indices.flow.resolve(node)
            if isinstance(declared, VariableDef):
                return bool(declared.pointer_depth or declared.dimensions or declared.base_type == "auto")
            return declared is not None and declared.is_pointer
        if node.type == "binary_expression":
            sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
            return any(side is not None and self._is_pointer(side) for side in sides)
        if node.type == "cast_expression":
            kind = node.child_by_field_name("type")
            return kind is not None and "*" in self.unit.text_of(kind)
        if node.type == "call_expression":
            return self.unit.text_of(node).startswith(_CASTS[:2])
        return node.type == "pointer_expression" and self.unit.operator(node) == "&"

    def _address(self, node: Node, depth: int) -> Target:
        argument = node.child_by_field_name("argument")
        if argument is None or self.unit.operator(node) != "&":
            return _unknown(self.unit.text_of(node))
        argument = strip_parentheses(argument)
        if argument.type == "subscript_expression":
            return self.element(argument, depth)
        if argument.type == "pointer_expression" and self.unit.operator(argument) == "*":
            inner = argument.child_by_field_name("argument")
            return self.read(inner, depth) if inner is not None else _unknown("")
        found = self.read(argument, depth)
        whole = argument.type == "identifier"
        return found if whole else Target(found.root, found.root_name, found.space, "", None)

    def element(self, node: Node, depth: int = 0) -> Target:
        """Return where an element named by a subscript lies."""
        base, listed = node.child_by_field_name("argument"), node.child_by_field_name("indices")
        if base is None or listed is None:
            return _unknown(self.unit.text_of(node))
        found = self.read(base, depth)
        for index in named(listed):
            found = self.indexed(found, index)
        return found

    def _subscript(self, node: Node, depth: int) -> Target:
        """Read `A[i]` as a pointer: a row of an array of arrays; a pointer loaded from memory is unknown."""
        found = self.element(node, depth)
        return found if found.row else _unknown(self.unit.text_of(node))

    def _cast(self, node: Node, depth: int) -> Target:
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if kind is None or value is None:
            return _unknown(self.unit.text_of(node))
        return self._retyped(self.read(value, depth), self.unit.text_of(kind))

    def _call(self, node: Node, depth: int) -> Target:
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        text = self.unit.text_of(function) if function is not None else ""
        if listed is None or not text.startswith(_CASTS) or len(named(listed)) != 1:
            return _unknown(self.unit.text_of(node))
        return self._retyped(self.read(named(listed)[0], depth), text.split("<", 1)[1].rsplit(">", 1)[0])

    def _retyped(self, found: Target, type_text: str) -> Target:
        element = _plain(type_text.replace("*", " ").replace("&", " "))
        same = element == found.element_type or (found.offset is not None and found.offset.is_zero)
        return Target(found.root, found.root_name, found.space, element, found.offset if same else None)

    def _choice(self, node: Node, depth: int) -> Target:
        sides = [node.child_by_field_name(name) for name in ("consequence", "alternative")]
        found = [self.read(side, depth) for side in sides if side is not None]
        if len(found) != 2 or found[0].root is None or found[0].root is not found[1].root:
            return _unknown(self.unit.text_of(node))
        first = found[0]
        offset = first.offset if first.offset == found[1].offset else None
        return Target(first.root, first.root_name, first.space, first.element_type, offset)

    def _field(self, node: Node, depth: int) -> Target:
        """Read a pointer in a struct: it points somewhere of its own, told apart by its text."""
        text = "".join(self.unit.text_of(node).split())
        return Target(None, text, Space.UNKNOWN, "", Polynomial())


_SPACES = {
    Storage.SHARED: Space.SHARED,
    Storage.DYNAMIC_SHARED: Space.SHARED,
    Storage.LOCAL: Space.LOCAL,
    Storage.CONSTANT: Space.CONSTANT,
    Storage.DEVICE: Space.GLOBAL,
}
_HANDLERS: dict[str, Callable[[PointerReader, Node, int], Target]] = {
    "identifier": PointerReader._name,
    "binary_expression": PointerReader._sum,
    "pointer_expression": PointerReader._address,
    "subscript_expression": PointerReader._subscript,
    "cast_expression": PointerReader._cast,
    "call_expression": PointerReader._call,
    "conditional_expression": PointerReader._choice,
    "field_expression": PointerReader._field,
}


def _plain(type_text: str) -> str:
    """Return a type without qualifiers."""
    drop = ("const", "volatile", "__restrict__", "__restrict", "typename", "struct")
    return " ".join(word for word in type_text.split() if word not in drop)


@lru_cache(maxsize=256)
def pointer_reader(unit: SourceUnit, function: FunctionDef) -> PointerReader:
    """Return the reader of a function's pointers."""
    return PointerReader(unit, function, index_reader(unit, function))
