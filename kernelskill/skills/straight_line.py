"""Code that runs from top to bottom: its blocks, and what of a statement is evaluated whenever it is reached."""

from __future__ import annotations

from collections.abc import Iterator

from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import Node, ancestors, span_of, walk
from kernelskill.source.unit import SourceUnit

_WHOLE = frozenset({"expression_statement", "declaration", "return_statement"})
_UNEVALUATED = frozenset({"lambda_expression", "sizeof_expression", "decltype", "alignof_expression"})
_CONDITIONS = frozenset({"if_statement", "while_statement", "switch_statement"})


def blocks_of(body: Node) -> Iterator[Node]:
    """Yield every block of a body, outer ones first."""
    for node in walk(body):
        if node.type == "compound_statement":
            yield node


def is_evaluated(unit: SourceUnit, statement: Node, node: Node) -> bool:
    """Whether a statement that is reached certainly evaluates a node below it, at least once."""
    child, parent = node, node.parent
    while parent is not None and child != statement:
        if parent.type in _UNEVALUATED or child.type in _UNEVALUATED:
            return False
        if parent.type == "conditional_expression" and parent.child_by_field_name("condition") != child:
            return False
        short = parent.type == "binary_expression" and unit.operator(parent) in ("&&", "||")
        if short and parent.child_by_field_name("left") != child:
            return False
        if parent == statement:
            return _is_part_evaluated(statement, child)
        if parent.type.endswith("_statement"):
            return False
        child, parent = parent, parent.parent
    return False


def _is_part_evaluated(statement: Node, part: Node) -> bool:
    """Whether a direct part of a statement is evaluated whenever the statement is reached."""
    if statement.type in _WHOLE:
        return True
    if statement.type in _CONDITIONS:
        return part == statement.child_by_field_name("condition")
    if statement.type == "for_statement":
        return part in (
            statement.child_by_field_name("initializer"),
            statement.child_by_field_name("condition"),
        )
    return False


def outermost_loop(block: Node, node: Node) -> Node | None:
    """Return the outermost loop inside a block that holds a node; None where none does.

    What the initialiser of a `for` evaluates is evaluated once, and not held by it.
    """
    found = None
    below = node
    for parent in ancestors(node):
        if parent == block:
            break
        if parent.type in LOOPS:
            first = parent.child_by_field_name("initializer")
            if first is None or not span_of(first).contains(span_of(below)):
                found = parent
        below = parent
    return found


def child_of(block: Node, node: Node) -> Node:
    """Return the direct child of a block that holds a node."""
    child = node
    for parent in ancestors(node):
        if parent == block:
            break
        child = parent
    return child
