"""Expand one use of a function-like macro as the preprocessor would, to look at its structure."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.source.masking import lexemes
from kernelskill.source.preprocessor import MacroDef
from kernelskill.source.syntax import SyntaxTree, named, parse_syntax, walk


def expand_macro(macro: MacroDef, arguments: list[str]) -> str | None:
    """Return the replacement text with arguments put in; None for `#`, `##` and a wrong number."""
    parameters = macro.parameters or ()
    if len(parameters) != len(arguments) or "#" in macro.value:
        return None
    values = dict(zip(parameters, arguments, strict=True))
    data = macro.value.encode()
    parts: list[str] = []
    position = 0
    for token in lexemes(data):
        parts.append(data[position : token.start].decode())
        text = data[token.start : token.end].decode()
        parts.append(values.get(text, text) if token.kind == "word" else text)
        position = token.end
    return "".join(parts)


def parse_expression(text: str) -> tuple[SyntaxTree, Node] | None:
    """Parse text as an expression of its own; None where it is none."""
    syntax = parse_syntax(f"auto value = {text};")
    if syntax.root.has_error or len(named(syntax.root)) != 1:
        return None
    for node in walk(syntax.root):
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
            return (syntax, value) if value is not None else None
    return None
