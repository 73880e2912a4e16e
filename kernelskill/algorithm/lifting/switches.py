"""Read `switch` statements as chains of conditions."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.arithmetic import binary
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import named

Group = tuple[tuple[Node | None, ...], list[Node]]
"""Labels, None for `default`, and the statements they lead to."""


def test_selector(machine: Machine, node: Node) -> Expression:
    """Return what a `switch` looks at."""
    head = node.child_by_field_name("condition")
    if head is None:
        raise machine.refuse(node, "this form of switch is not understood")
    return machine.number(head)


def switch_groups(machine: Machine, node: Node) -> list[Group]:
    """Return the cases of a `switch`, `default` last.

    Raises:
        CannotLift: A case runs into the next one.
    """
    body = node.child_by_field_name("body")
    cases = named(body) if body is not None else []
    groups: list[Group] = []
    labels: list[Node | None] = []
    for position, case in enumerate(cases):
        if case.type != "case_statement":
            raise machine.refuse(case, "this form of switch is not understood")
        value = case.child_by_field_name("value")
        labels.append(value)
        statements = [child for child in named(case) if value is None or child != value]
        if len(statements) == 1 and statements[0].type == "compound_statement":
            statements = named(statements[0])
        if not statements and position + 1 < len(cases):
            continue
        is_last = position + 1 == len(cases)
        ends = bool(statements) and statements[-1].type in (
            "break_statement",
            "return_statement",
            "continue_statement",
        )
        if not ends and not is_last:
            raise machine.refuse(case, "a case that runs into the next one is not understood")
        if statements and statements[-1].type == "break_statement":
            statements = statements[:-1]
        if any(_breaks(statement) for statement in statements):
            raise machine.refuse(case, "a break inside a case is not understood")
        groups.append((tuple(labels), statements))
        labels = []
    return sorted(groups, key=lambda group: None in group[0])


def _breaks(node: Node) -> bool:
    if node.type == "break_statement":
        return True
    if node.type in LOOPS or node.type == "switch_statement":
        return False
    return any(_breaks(child) for child in named(node))


def matches(machine: Machine, selector: Expression, labels: tuple[Node | None, ...]) -> Expression:
    """Return the condition under which a group of labels is taken, those before it being left out."""
    if None in labels:
        return integers.constant(1, "bool")
    result: Expression | None = None
    for label in labels:
        if label is not None:
            test = binary("==", selector, machine.number(label), machine.ranges)
            result = test if result is None else binary("||", result, test, machine.ranges)
    return integers.constant(0, "bool") if result is None else result
