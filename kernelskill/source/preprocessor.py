"""Find macros, includes and conditionals; nothing is expanded."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.source.syntax import Span, SyntaxTree, ancestors, named, span_of, walk

_CONDITIONALS = frozenset({"preproc_if", "preproc_ifdef"})
_ALTERNATIVES = frozenset({"preproc_else", "preproc_elif", "preproc_elifdef"})


@dataclass(frozen=True)
class MacroDef:
    """One `#define`."""

    name: str
    parameters: tuple[str, ...] | None
    """None for an object-like macro."""
    value: str
    """The replacement text without comments, line continuations joined."""
    span: Span
    value_span: Span | None

    @property
    def is_function_like(self) -> bool:
        return self.parameters is not None


@dataclass(frozen=True)
class IncludeDef:
    """One `#include`."""

    path: str
    """As written, without quotes or brackets."""
    is_local: bool
    """Whether it is in quotes."""
    span: Span


@dataclass(frozen=True)
class ConditionalDef:
    """One `#if`, `#ifdef` or `#ifndef` with all its branches."""

    condition: str
    """The text after `#if`; `defined(X)` for `#ifdef X`."""
    has_alternative: bool
    span: Span
    node: Node


def find_macros(syntax: SyntaxTree) -> tuple[MacroDef, ...]:
    """Return every `#define` in the order of the text."""
    return tuple(
        _read_macro(syntax, node)
        for node in walk(syntax.root)
        if node.type in ("preproc_def", "preproc_function_def")
    )


def _read_macro(syntax: SyntaxTree, node: Node) -> MacroDef:
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    listed = node.child_by_field_name("parameters")
    parameters: tuple[str, ...] | None = None
    if listed is not None:
        parameters = tuple(syntax.text_of(child) for child in named(listed))
    return MacroDef(
        name=syntax.text_of(name) if name is not None else "",
        parameters=parameters,
        value=_value_text(syntax.text_of(value)) if value is not None else "",
        span=span_of(node),
        value_span=span_of(value) if value is not None else None,
    )


def _value_text(text: str) -> str:
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ")
    return joined.split("//")[0].strip()


def find_includes(syntax: SyntaxTree) -> tuple[IncludeDef, ...]:
    """Return every `#include` in the order of the text."""
    found = []
    for node in walk(syntax.root):
        path = node.child_by_field_name("path") if node.type == "preproc_include" else None
        if path is not None:
            local = path.type == "string_literal"
            text = syntax.text_of(path).strip('"<>')
            found.append(IncludeDef(text, local, span_of(node)))
    return tuple(found)


def find_conditionals(syntax: SyntaxTree) -> tuple[ConditionalDef, ...]:
    """Return every conditional, outer ones first."""
    return tuple(_read_conditional(syntax, node) for node in walk(syntax.root) if node.type in _CONDITIONALS)


def _read_conditional(syntax: SyntaxTree, node: Node) -> ConditionalDef:
    condition, name = node.child_by_field_name("condition"), node.child_by_field_name("name")
    if condition is not None:
        text = syntax.text_of(condition).strip()
    else:
        negated = any(child.type == "#ifndef" for child in node.children)
        text = f"{'!' if negated else ''}defined({syntax.text_of(name) if name is not None else ''})"
    return ConditionalDef(text, any(c.type in _ALTERNATIVES for c in node.children), span_of(node), node)


def is_disabled(syntax: SyntaxTree, node: Node) -> bool:
    """Whether a node stands in the first branch of `#if 0`."""
    below = node
    for parent in ancestors(node):
        if parent.type == "preproc_if":
            condition = parent.child_by_field_name("condition")
            if condition is not None and syntax.text_of(condition).strip() == "0":
                return below.type not in _ALTERNATIVES
        below = parent
    return False
