"""Find macros, includes and conditionals; nothing is expanded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from kernelskill.source.syntax import Span, SyntaxTree, ancestors, named, span_of, walk

_CONDITIONALS = frozenset({"preproc_if", "preproc_ifdef"})
_ALTERNATIVES = frozenset({"preproc_else", "preproc_elif", "preproc_elifdef"})
_OPTIONS = ("-D", "--define-macro", "-U", "--undefine-macro")
_GIVEN = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*(?:\([^)]*\))?)(?:=((?:[^,]|,(?!\s*[A-Za-z_]\w*(?:=|,|$)))*))?")
_INNER = re.compile(r"-[DU]\s*([A-Za-z_]\w*)(?:=(\S*))?")


@dataclass(frozen=True)
class MacroDef:
    """One `#define`."""

    name: str
    parameters: tuple[str, ...] | None
    """None for an object-like macro."""
    value: str
    """The replacement text without comments, line continuations joined; empty where `is_given`."""
    span: Span
    """Empty at the start of the file where only the compiler's flags define it."""
    value_span: Span | None
    is_given: bool = False
    """Whether the compiler's flags define it: then its value is not known."""
    given: str = ""
    """Every replacement text that a macro given by flags may have."""

    @property
    def possible(self) -> str:
        """What the macro may stand for, for looking at its words; never for its value."""
        return self.given if self.is_given else self.value

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


def given_macros(flags: tuple[str, ...]) -> dict[str, str]:
    """Return the macros that compiler flags define or undefine, with their texts.

    A name's text is empty where the flag gives none. Options for another compiler are looked into.
    """
    found: dict[str, str] = {}
    for position, flag in enumerate(flags):
        before = flags[position - 1] if position else ""
        option = next((entry for entry in _OPTIONS if flag.startswith(entry)), "")
        listed = flag if before in _OPTIONS else flag.removeprefix(option).removeprefix("=") if option else ""
        pairs = _GIVEN.findall(listed) if listed else _INNER.findall(flag)
        for name, value in pairs:
            bare, text = name.partition("(")[0], value.strip("\"'")
            found[bare] = f"{found[bare]} {text}" if bare in found else text
            if "(" in name:
                found[bare] += " ()"
    return found


def with_given(macros: tuple[MacroDef, ...], given: Mapping[str, str]) -> tuple[MacroDef, ...]:
    """Return macros with those that the compiler's flags define marked, and added where the file has none."""
    marked = tuple(
        replace(macro, value="", is_given=True, given=f"{macro.value} {given[macro.name]}".strip())
        if macro.name in given
        else macro
        for macro in macros
    )
    known = {macro.name for macro in macros}
    added = (
        MacroDef(
            name=name,
            parameters=() if text.endswith(" ()") else None,
            value="",
            span=Span(0, 0),
            value_span=None,
            is_given=True,
            given=text,
        )
        for name, text in given.items()
        if name not in known
    )
    return (*marked, *added)


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
