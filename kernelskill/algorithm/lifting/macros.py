"""Expand uses of function-like macros, so that their text is read like the user's own."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.source.expansion import expand_macro, parse_expression
from kernelskill.source.preprocessor import MacroDef
from kernelskill.source.syntax import SyntaxTree, named, parse_syntax


def macro_of(machine: Machine, node: Node) -> MacroDef | None:
    """Return the function-like macro that a call uses."""
    function = node.child_by_field_name("function")
    macro = machine.macro(machine.text(function)) if function is not None else None
    return macro if macro is not None and macro.is_function_like else None


def expanded_text(machine: Machine, node: Node) -> str | None:
    """Return the text that a macro call stands for; None where it is no macro or can't be expanded."""
    macro, listed = macro_of(machine, node), node.child_by_field_name("arguments")
    if macro is None or macro.is_given or listed is None:
        return None
    return expand_macro(macro, [machine.text(argument) for argument in named(listed)])


def expand_call(machine: Machine, node: Node) -> tuple[SyntaxTree, Node] | None:
    """Return the expression that a macro call stands for, in a tree of its own."""
    text = expanded_text(machine, node)
    return parse_expression(f"({text})") if text is not None else None


def expand_statements(machine: Machine, node: Node) -> tuple[SyntaxTree, list[Node]] | None:
    """Return the statements that a macro call stands for, in a tree of their own."""
    text = expanded_text(machine, node)
    if text is None:
        return None
    syntax = parse_syntax(f"void expansion() {{ {text}; }}")
    if syntax.root.has_error or not named(syntax.root):
        return None
    body = named(syntax.root)[0].child_by_field_name("body")
    return (syntax, named(body)) if body is not None else None
