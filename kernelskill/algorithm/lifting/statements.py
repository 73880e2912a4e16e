"""Execute statements of one thread symbolically.

Statements run from a list of work: an `if` one of whose branches may leave (by `return` or `continue`)
runs the rest of the list inside both branches, so that leaving is nothing special.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.calls import call
from kernelskill.algorithm.lifting.cooperation import statement_call
from kernelskill.algorithm.lifting.declaring import declare
from kernelskill.algorithm.lifting.expressions import evaluate, test_value
from kernelskill.algorithm.lifting.loops import run_loop
from kernelskill.algorithm.lifting.machine import RETURNED, Machine, Snapshot, select
from kernelskill.algorithm.lifting.macros import expand_statements, macro_of
from kernelskill.algorithm.lifting.switches import matches, switch_groups, test_selector
from kernelskill.algorithm.lifting.values import Value
from kernelskill.algorithm.model import Store
from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import SyntaxTree, named, strip_parentheses, walk


@dataclass(frozen=True)
class Task:
    """A statement to execute; without a node, the end of a block."""

    syntax: SyntaxTree
    node: Node | None


Work = tuple[Task, ...]
_IGNORED = frozenset(
    {
        "comment",
        ";",
        "empty_statement",
        "type_definition",
        "alias_declaration",
        "static_assert_declaration",
        "using_declaration",
        "attributed_statement",
    }
)


def run_body(machine: Machine, node: Node) -> None:
    """Execute a statement or block in a scope of its own; `machine.exited` says whether it left early."""
    scopes = machine.scopes
    machine.scopes = [*scopes, {}]
    machine.exited = False
    children = named(node) if node.type == "compound_statement" else [node]
    run(machine, tuple(Task(machine.syntax, child) for child in children))
    machine.scopes = scopes


def run(machine: Machine, work: Work) -> None:
    """Execute a list of work to its end or until it leaves.

    Raises:
        CannotLift: A statement can't be followed, with the reason.
    """
    while work and not machine.exited:
        task, work = work[0], work[1:]
        if task.node is None:
            machine.scopes = machine.scopes[:-1]
            continue
        with machine.reading(task.syntax):
            node = task.node
            if node.type == "compound_statement":
                machine.scopes = [*machine.scopes, {}]
                work = (*_tasks(machine, named(node)), Task(task.syntax, None), *work)
            elif node.type == "if_statement":
                work = _if(machine, node, work)
            elif node.type == "switch_statement":
                _switch(machine, node, work)
                work = ()
            else:
                work = (*_expansion(machine, node), *work)


def _tasks(machine: Machine, nodes: list[Node]) -> Work:
    return tuple(Task(machine.syntax, node) for node in nodes)


def _expansion(machine: Machine, node: Node) -> Work:
    """Execute one statement; the statements of a macro are returned to be executed next."""
    inner = named(node)
    if node.type == "expression_statement" and len(inner) == 1 and inner[0].type == "call_expression":
        expanded = expand_statements(machine, inner[0]) if macro_of(machine, inner[0]) is not None else None
        if expanded is not None:
            return tuple(Task(expanded[0], entry) for entry in expanded[1])
    _statement(machine, node)
    return ()


def _statement(machine: Machine, node: Node) -> None:
    if node.type in _IGNORED:
        return
    if node.type == "declaration":
        declare(machine, node)
    elif node.type in ("for_statement", "while_statement", "do_statement"):
        run_loop(machine, node, run_body)
    elif node.type == "return_statement":
        _return(machine, node)
    elif node.type == "continue_statement":
        machine.exited = True
    elif node.type == "expression_statement":
        for entry in named(node):
            effect(machine, entry)
    elif node.type in ("assignment_expression", "update_expression", "comma_expression", "call_expression"):
        effect(machine, node)
    elif node.type == "break_statement":
        raise machine.refuse(node, "a loop that ends early, by break, is not understood")
    else:
        what = node.type.replace("_", " ").replace(" statement", "")
        raise machine.refuse(node, f"{what} is not understood: {machine.text(node)[:50]!r}")


def effect(machine: Machine, node: Node) -> None:
    """Execute an expression for what it does."""
    node = strip_parentheses(node)
    if node.type == "comma_expression":
        for child in named(node):
            effect(machine, child)
    elif node.type == "call_expression":
        if not statement_call(machine, node):
            call(machine, node)
    elif node.type == "cast_expression" and machine.text(node).lstrip("(").startswith("void"):
        return
    else:
        evaluate(machine, node)


def _return(machine: Machine, node: Node) -> None:
    if machine.loops and not machine.calls:
        raise machine.refuse(node, "a return inside a loop is not understood")
    if machine.calls and len(machine.loops) > machine.loops_at_call:
        raise machine.refuse(node, "a return inside a loop is not understood")
    values = named(node)
    if values and machine.calls:
        value = evaluate(machine, values[0])
        number = machine.find(RETURNED)
        if number is not None:
            kind = machine.variables[number].layout.kind
            machine.slots[number] = _as_result(value, kind)
    machine.exited = True


def _as_result(value: Value, kind: str) -> Value:
    return convert(value, kind) if isinstance(value, Expression) and kind != "auto" else value


def may_leave(node: Node, *, in_loop: bool = False) -> bool:
    """Whether a statement may end the block that it stands in."""
    if node.type == "return_statement":
        return True
    if node.type in ("continue_statement", "break_statement"):
        return not in_loop
    inner = in_loop or node.type in LOOPS
    return node.type != "lambda_expression" and any(may_leave(child, in_loop=inner) for child in named(node))


def _if(machine: Machine, node: Node, rest: Work) -> Work:
    """Execute an `if`; returns what is left to do."""
    head, first = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if head is None or first is None or any(child.type == "init_statement" for child in named(head)):
        raise machine.refuse(node, "this form of if is not understood")
    other = node.child_by_field_name("alternative")
    test = test_value(machine, head)
    branches = _tasks(machine, [first]), _tasks(machine, named(other) if other is not None else [])
    known = integers.value_of(test)
    if known is not None:
        return (*branches[0 if known else 1], *rest)
    if may_leave(node):
        whole = (*branches[0], *rest), (*branches[1], *rest)
        _branch(machine, test, lambda: run(machine, whole[0]), lambda: run(machine, whole[1]))
        machine.exited = True
        return ()
    _branch(machine, test, lambda: run(machine, branches[0]), lambda: run(machine, branches[1]))
    return rest


def _switch(machine: Machine, node: Node, rest: Work) -> None:
    """Execute a `switch` whose cases don't fall through, and what follows it."""
    selector = test_selector(machine, node)
    groups = switch_groups(machine, node)
    leaves = any(may_leave(statement) for _, statements in groups for statement in statements)

    def chain(position: int) -> None:
        if position == len(groups):
            run(machine, rest if leaves else ())
            return
        labels, statements = groups[position]
        work = (*_tasks(machine, statements), *(rest if leaves else ()))
        test = matches(machine, selector, labels)
        known = integers.value_of(test)
        if known is not None:
            run(machine, work) if known else chain(position + 1)
        else:
            _branch(machine, test, lambda: run(machine, work), lambda: chain(position + 1))

    scopes = machine.scopes
    machine.scopes = [*scopes, {}]
    chain(0)
    machine.scopes = scopes
    if leaves:
        machine.exited = True
    else:
        run(machine, rest)


def _branch(
    machine: Machine, test: Expression, first: Callable[[], None], second: Callable[[], None]
) -> None:
    """Execute two things under a condition and its opposite, and join what they leave."""
    before, count = machine.snapshot(), len(machine.stores)
    machine.path = _narrowed(before.path, test)
    first()
    one = machine.snapshot()
    machine.restore(before)
    machine.exited = False
    machine.path = _narrowed(before.path, integers.negated(test))
    second()
    two = machine.snapshot()
    machine.restore(before)
    machine.exited = False
    machine.stores = [*before.stores, *_joined_stores(test, one.stores[count:], two.stores[count:])]
    machine.named = [*one.named, *(entry for entry in two.named if entry not in one.named)]
    _join_slots(machine, test, one, two)


def _narrowed(path: tuple[Expression, ...], test: Expression) -> tuple[Expression, ...]:
    """Return a path with one more condition; `x == 2` makes `x != 1` say nothing."""
    if isinstance(test, Binary) and test.op == "==" and integers.value_of(test.right) is not None:
        path = tuple(
            old
            for old in path
            if not (
                isinstance(old, Binary)
                and (old.op, old.left) == ("!=", test.left)
                and integers.value_of(old.right) not in (None, integers.value_of(test.right))
            )
        )
    return (*path, *integers.conjuncts(test))


def _join_slots(machine: Machine, test: Expression, one: Snapshot, two: Snapshot) -> None:
    for number in machine.slots:
        machine.slots[number] = machine.choose(test, one.slots.get(number), two.slots.get(number))


def _joined_stores(test: Expression, first: tuple[Store, ...], second: tuple[Store, ...]) -> list[Store]:
    """Return the stores of two branches; a store both make to one cell becomes one store of a selection."""
    joined: list[Store] = []
    for entry in first:
        guard = _without_test(entry, test)
        twins = [s for s in second if _is_twin(entry, s) and _without_test(s, test) == guard]
        alone = [s for s in (*first, *second) if s.buffer == entry.buffer]
        if len(twins) == 1 and len(alone) == 2:
            value = select(test, entry.value, twins[0].value)
            joined.append(replace(entry, value=value, guard=guard))
            second = tuple(s for s in second if s is not twins[0])
        else:
            joined.append(entry)
    return [*joined, *second]


def _is_twin(first: Store, second: Store) -> bool:
    same = (first.buffer, first.index, first.loops) == (second.buffer, second.index, second.loops)
    return same and first.mode == "=" and second.mode == "="


def _without_test(entry: Store, test: Expression) -> tuple[Expression, ...]:
    own = {*integers.conjuncts(test), *integers.conjuncts(integers.negated(test))}
    return tuple(part for part in entry.guard if part not in own)


def has_goto(node: Node) -> bool:
    """Whether a body jumps, or holds inline assembly."""
    kinds = ("goto_statement", "gnu_asm_expression", "labeled_statement", "try_statement")
    return any(entry.type in kinds for entry in walk(node))
