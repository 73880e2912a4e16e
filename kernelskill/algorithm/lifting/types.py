"""Types of a source as lifting sees them: scalars, vectors and plain structs, typedefs and template types."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from kernelskill.algorithm.lifting.values import Layout, scalar
from kernelskill.algorithm.types import canonical, is_known
from kernelskill.source.declarations import read_declarator
from kernelskill.source.masking import lexemes
from kernelskill.source.syntax import named, walk
from kernelskill.source.unit import SourceUnit

_VECTOR_BASES = {
    "float": "float",
    "double": "double",
    "int": "int",
    "uint": "unsigned",
    "char": "char",
    "uchar": "unsigned char",
    "short": "short",
    "ushort": "unsigned short",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
}
VECTORS = {
    f"{name}{width}": Layout(f"{name}{width}", kind, tuple("xyzw"[:width]))
    for name, kind in _VECTOR_BASES.items()
    for width in (2, 3, 4)
} | {
    "half2": Layout("half2", "half", ("x", "y")),
    "__half2": Layout("__half2", "half", ("x", "y")),
    "__nv_bfloat162": Layout("__nv_bfloat162", "bfloat16", ("x", "y")),
}
_CHAIN = 8
_QUALIFIERS = frozenset({"const", "volatile", "static", "constexpr", "register", "struct", "typename"})


@dataclass(frozen=True)
class Field:
    """A field of a plain struct."""

    name: str
    type_text: str
    is_pointer: bool = False
    is_const: bool = False


@dataclass(frozen=True)
class TypeTable:
    """What type names mean."""

    units: tuple[SourceUnit, ...] = field(repr=False)
    """The file and its headers."""
    given: dict[str, str] = field(default_factory=dict)
    """Template parameters that are types -> the type of the instantiation."""

    def resolve(self, text: str) -> str:
        """Return the spelling behind typedefs, template parameters and macros, without qualifiers."""
        words = without_comments(text).replace("&", " ").split()
        plain = " ".join(word for word in words if word not in _QUALIFIERS)
        for _ in range(_CHAIN):
            following = self.given.get(plain) or self._alias(plain) or self._macro(plain)
            if following is None or following == plain:
                break
            plain = " ".join(word for word in following.split() if word not in _QUALIFIERS)
        return plain

    def _alias(self, name: str) -> str | None:
        return next((found for unit in self.units if (found := aliases(unit).get(name))), None)

    def _macro(self, name: str) -> str | None:
        macros = [unit.macro(name) for unit in self.units] if name.isidentifier() else []
        macro = next((entry for entry in macros if entry is not None), None)
        if macro is None or macro.is_function_like or macro.is_given or not macro.value:
            return None
        return macro.value

    def layout(self, text: str) -> Layout | None:
        """Return the layout of a type without pointers; None for one that can't be followed."""
        plain = self.resolve(text)
        kind = canonical(plain)
        if is_known(kind):
            return scalar(kind)
        if plain in VECTORS:
            return VECTORS[plain]
        return self._struct(plain)

    def fields(self, name: str) -> tuple[Field, ...]:
        """Return the fields of a struct; empty for what is none or is not plain."""
        return next((found for unit in self.units if (found := structs(unit).get(name))), ())

    def _struct(self, name: str) -> Layout | None:
        fields = self.fields(name)
        if not fields:
            return None
        kinds = {canonical(self.resolve(entry.type_text)) for entry in fields}
        is_plain = len(kinds) == 1 and is_known(next(iter(kinds)))
        if not is_plain or any(entry.is_pointer for entry in fields):
            return None
        return Layout(name, next(iter(kinds)), tuple(entry.name for entry in fields))


def without_comments(text: str) -> str:
    """Return a type's text without the comments inside it."""
    if "/" not in text:
        return text
    data = text.encode()
    return " ".join(data[e.start : e.end].decode() for e in lexemes(data) if e.kind != "comment")


@lru_cache(maxsize=64)
def aliases(unit: SourceUnit) -> dict[str, str]:
    """Return typedefs and `using` aliases of a file that name a type without pointers."""
    found: dict[str, str] = {}
    for node in walk(unit.root):
        if node.type == "type_definition":
            kind, name = node.child_by_field_name("type"), node.child_by_field_name("declarator")
        elif node.type == "alias_declaration":
            kind, name = node.child_by_field_name("type"), node.child_by_field_name("name")
        else:
            continue
        if kind is None or name is None or name.type != "type_identifier":
            continue
        label = unit.text_of(name)
        inner = kind.child_by_field_name("name") if kind.type == "struct_specifier" else None
        if kind.type == "struct_specifier" and inner is None:
            continue
        found[label] = unit.text_of(inner if inner is not None else kind)
    return found


@lru_cache(maxsize=64)
def structs(unit: SourceUnit) -> dict[str, tuple[Field, ...]]:
    """Return the fields of structs made of scalars and pointers; empty for other structs."""
    found: dict[str, tuple[Field, ...]] = {}
    for node in walk(unit.root):
        if node.type != "struct_specifier":
            continue
        body = node.child_by_field_name("body")
        if body is None:
            continue
        name = node.child_by_field_name("name")
        label = unit.text_of(name) if name is not None else _typedef_name(unit, node)
        if label:
            found[label] = _fields(unit, body)
    return found


def _typedef_name(unit: SourceUnit, node: Node) -> str:
    parent = node.parent
    if parent is None or parent.type != "type_definition":
        return ""
    name = parent.child_by_field_name("declarator")
    return unit.text_of(name) if name is not None and name.type == "type_identifier" else ""


def _fields(unit: SourceUnit, body: Node) -> tuple[Field, ...]:
    found: list[Field] = []
    for entry in named(body):
        kind = entry.child_by_field_name("type")
        declarators = entry.children_by_field_name("declarator")
        has_default = entry.child_by_field_name("default_value") is not None
        if entry.type != "field_declaration" or kind is None or not declarators or has_default:
            return ()
        words = {unit.text_of(child) for child in entry.children if child.type == "type_qualifier"}
        for node in declarators:
            declared = read_declarator(unit.syntax, node)
            if (
                declared.name is None
                or declared.pointer_depth > 1
                or declared.dimensions
                or declared.is_function
            ):
                return ()
            name, is_pointer = unit.text_of(declared.name), declared.pointer_depth == 1
            found.append(Field(name, unit.text_of(kind), is_pointer, "const" in words))
    return tuple(found)
