"""Items: what stands at the top level of a file, the names it defines and the words it uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tree_sitter import Node

from kernelskill.source.masking import lexemes
from kernelskill.source.syntax import Span, SyntaxTree, named, span_of, walk
from kernelskill.source.unit import SourceUnit


class ItemKind(StrEnum):
    """What an item is."""

    FUNCTION = "function"
    PROTOTYPE = "prototype"
    VARIABLE = "variable"
    TYPE = "type"
    MACRO = "macro"
    INCLUDE = "include"
    OTHER = "other"
    """Namespaces, conditionals, using directives: nothing is known of what they define."""


_TYPES = frozenset({"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"})
_MACROS = frozenset({"preproc_def", "preproc_function_def"})
_NEUTRAL = frozenset({"comment", ";", "expression_statement"})


@dataclass(frozen=True, eq=False)
class Item:
    """One top-level declaration or directive."""

    kind: ItemKind
    text: str
    """As written, a type's semicolon included; without the `extern "C"` that holds it."""
    span: Span
    names: frozenset[str]
    words: frozenset[str]
    """Every identifier and keyword in it, its own names among them."""
    node: Node = field(repr=False)


def items_of(unit: SourceUnit) -> tuple[Item, ...]:
    """Return the items of a file in order. What stands in an `extern "C"` block is an item each."""
    return tuple(_items(unit, unit.root))


def words_of(data: bytes) -> frozenset[str]:
    """Return every identifier and keyword of a text; comments and strings hold none."""
    return frozenset(
        data[token.start : token.end].decode() for token in lexemes(data) if token.kind == "word"
    )


def _items(unit: SourceUnit, parent: Node) -> list[Item]:
    found: list[Item] = []
    for node in parent.children:
        if node.type in _NEUTRAL or (not node.is_named and node.type != ";"):
            continue
        if node.type == "linkage_specification":
            body = node.child_by_field_name("body")
            if body is None:
                continue
            found.extend(_items(unit, body) if body.type == "declaration_list" else [_item(unit, body)])
        else:
            found.append(_item(unit, node))
    return found


def _item(unit: SourceUnit, node: Node) -> Item:
    span = Span(unit.syntax.start_with_masks(node.start_byte), node.end_byte)
    kind, names = _kind_and_names(unit, node, span)
    text = unit.text_of(span)
    if kind is ItemKind.TYPE and not text.rstrip().endswith(";"):
        text += ";"
    return Item(kind, text.rstrip(), span, frozenset(names), words_of(text.encode()), node)


def _kind_and_names(unit: SourceUnit, node: Node, span: Span) -> tuple[ItemKind, list[str]]:
    if node.type in _MACROS:
        name = node.child_by_field_name("name")
        return ItemKind.MACRO, [unit.text_of(name)] if name is not None else []
    if node.type == "preproc_include":
        return ItemKind.INCLUDE, []
    if node.type in _TYPES or node.type in ("type_definition", "alias_declaration"):
        return ItemKind.TYPE, _type_names(unit.syntax, node)
    functions = [f for f in unit.all_functions if f.span == span]
    if node.type in ("function_definition", "template_declaration", "declaration") and functions:
        kind = ItemKind.FUNCTION if functions[0].body is not None else ItemKind.PROTOTYPE
        return kind, [functions[0].name]
    variables = [v.name for v in unit.globals if span_of(v.declaration) == span_of(node)]
    if node.type == "declaration" and variables:
        inner = node.child_by_field_name("type")
        typed = inner is not None and inner.type in _TYPES
        return ItemKind.VARIABLE, [*variables, *(_type_names(unit.syntax, inner) if typed and inner else [])]
    return ItemKind.OTHER, []


def _type_names(syntax: SyntaxTree, node: Node) -> list[str]:
    names = [
        syntax.text_of(found)
        for field_name in ("name", "declarator")
        if (found := node.child_by_field_name(field_name)) is not None and found.type == "type_identifier"
    ]
    inner = node.child_by_field_name("type")
    if node.type == "type_definition" and inner is not None and inner.type in _TYPES:
        names += _type_names(syntax, inner)
    enumerators = [child for child in walk(node) if child.type == "enumerator"]
    return names + [syntax.text_of(named(child)[0]) for child in enumerators]
