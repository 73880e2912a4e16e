"""Read what a loop counts: its variable, range and step."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Loop, Sym
from kernelskill.algorithm.lifting.arithmetic import binary, condition, convert
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.values import position_of
from kernelskill.algorithm.types import is_integer
from kernelskill.source.syntax import strip_parentheses, walk

PROBE = "?i"
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "==": "=="}


@dataclass(frozen=True)
class Parts:
    """The pieces of a loop of any kind."""

    test: Node | None
    update: Node | None
    body: Node
    is_do: bool = False


@dataclass(frozen=True)
class Header:
    """A counted loop: in iteration `loop.symbol` the variable holds `value`."""

    variable: int
    loop: Loop
    value: Expression
    final: Expression
    """What the variable holds afterwards."""
    step: Expression
    shared: tuple[str, ...] = ()
    """The builtin indices that spread the iterations over threads; empty for a loop of each thread."""


def parts_of(machine: Machine, node: Node) -> Parts:
    """Return the pieces of a loop.

    Raises:
        CannotLift: It has no condition or body.
    """
    body = node.child_by_field_name("body")
    test = node.child_by_field_name("condition")
    if test is not None:
        test = strip_parentheses(test)
    if body is None:
        raise machine.refuse(node, "this form of loop is not understood")
    return Parts(test, node.child_by_field_name("update"), body, node.type == "do_statement")


def assigned_names(machine: Machine, node: Node | None) -> set[str]:
    """Return the names that are assigned or stepped below a node."""
    found: set[str] = set()
    for entry in walk(node) if node is not None else ():
        target: Node | None = None
        if entry.type == "assignment_expression":
            target = entry.child_by_field_name("left")
        elif entry.type == "update_expression":
            target = entry.child_by_field_name("argument")
        if target is not None and strip_parentheses(target).type == "identifier":
            found.add(machine.text(strip_parentheses(target)))
    return found


def find_variable(machine: Machine, node: Node, parts: Parts) -> int:
    """Return the number of the variable that a loop counts.

    Raises:
        CannotLift: There is none, or several could be it.
    """
    if parts.test is None:
        raise machine.refuse(node, "a loop without a condition is not understood")
    mentioned = {machine.text(entry) for entry in walk(parts.test) if entry.type == "identifier"}
    for place in (parts.update, parts.test, parts.body):
        names = mentioned & assigned_names(machine, place)
        numbers = {number for number in map(machine.find, names) if number is not None}
        if len(numbers) == 1:
            number = numbers.pop()
            value = position_of(machine.slots[number])
            if value is not None and is_integer(value.type):
                return number
    raise machine.refuse(node, "a loop that does not count an integer up or down is not understood")


def read_header(machine: Machine, node: Node, variable: int, step: Expression, test: Expression) -> Header:
    """Return what a loop counts.

    Args:
        machine: The state before the loop.
        node: The loop.
        variable: The number of its variable.
        step: What one iteration adds to it.
        test: The condition with the variable as the symbol `PROBE`.

    Raises:
        CannotLift: Condition and step are no count.
    """
    start = position_of(machine.slots[variable])
    is_pointer = machine.variables[variable].is_pointer
    kind = "long long" if is_pointer else machine.variables[variable].layout.kind
    if start is None:
        raise machine.refuse(node, "the loop's start is not understood")
    operator, bound = _bound(machine, node, test)
    name = machine.variables[variable].name
    shared = _shared(machine, start, step)
    if shared is not None and operator in ("<", "<="):
        return _shared_loop(machine, node, variable, (operator, bound, step), shared)
    amount = integers.value_of(step)
    if amount == 1 and operator in ("<", "<=", "!=") and not is_pointer:
        upper = _after(bound) if operator == "<=" else bound
        loop = Loop(machine.fresh(name), start, upper, kind)
        return Header(variable, loop, loop.symbol, _final(machine, start, upper), step)
    trips = _trips(machine, node, start, (operator, bound), step)
    label = "i" if is_pointer else name if amount is None or amount > 0 else f"{name}_step"
    loop = Loop(machine.fresh(label), _zero(), trips, kind)
    moved = integers.multiply(step, loop.symbol)
    value = integers.typed(integers.add(start, moved), kind)
    total = _extent(machine, trips)
    final = integers.typed(integers.add(start, integers.multiply(step, total)), kind)
    return Header(variable, loop, value, final, step)


def _zero() -> Expression:
    return integers.constant(0)


def _after(bound: Expression) -> Expression:
    return integers.add(bound, integers.constant(1))


def _bound(machine: Machine, node: Node, test: Expression) -> tuple[str, Expression]:
    """Bring a condition to the form `variable op bound`."""
    if not isinstance(test, Binary) or test.op not in _FLIPPED or test.op == "==":
        raise machine.refuse(node, "the loop's condition is not understood")
    for left, right, operator in (
        (test.left, test.right, test.op),
        (test.right, test.left, _FLIPPED[test.op]),
    ):
        factor = integers.coefficient(left, PROBE)
        if factor is None or right.depends_on(PROBE) or not is_integer(right.type):
            continue
        if integers.value_of(factor) == 1:
            rest = integers.without(left, PROBE)
            return operator, integers.subtract(right, rest) if rest.children or rest != _zero() else right
    raise machine.refuse(node, "the loop's condition is not understood")


def _trips(
    machine: Machine, node: Node, start: Expression, test: tuple[str, Expression], step: Expression
) -> Expression:
    """Return how often a loop runs whose step is not one."""
    operator, bound = test
    amount = integers.value_of(step)
    if operator == "!=" and amount in (1, -1):
        return integers.multiply(integers.subtract(bound, start), integers.constant(amount))
    downwards = amount is not None and amount < 0
    if amount == 0 or operator not in ((">", ">=") if downwards else ("<", "<=")):
        raise machine.refuse(node, "the loop's condition and step do not fit")
    distance = integers.subtract(start, bound) if downwards else integers.subtract(bound, start)
    if operator in ("<=", ">="):
        distance = _after(distance)
    size = integers.multiply(step, integers.constant(-1)) if downwards else step
    if integers.value_of(size) == 1:
        return distance
    total = integers.add(distance, integers.add(size, integers.constant(1), -1))
    return binary(
        "/", integers.typed(total, _signed(total.type)), convert(size, _signed(size.type)), machine.ranges
    )


def _signed(kind: str) -> str:
    return {"unsigned": "int", "unsigned long long": "long long"}.get(kind, kind)


def _extent(machine: Machine, trips: Expression) -> Expression:
    known = integers.value_of(trips)
    if known is not None:
        return integers.constant(max(known, 0))
    return integers.selected(condition(binary(">", trips, _zero(), machine.ranges)), trips, _zero())


def _final(machine: Machine, start: Expression, upper: Expression) -> Expression:
    """Return the variable after a loop in steps of one."""
    difference = integers.value_of(integers.subtract(upper, start))
    if difference is not None:
        return upper if difference > 0 else start
    return integers.selected(integers.compared("<", start, upper), upper, start)


def _shared(
    machine: Machine, start: Expression, step: Expression
) -> tuple[tuple[str, ...], Expression] | None:
    """Return the indices over which the iterations of a strided loop are spread, and where the loop starts."""
    for dimension in "xyz":
        names = [f"{base}.{dimension}" for base in ("blockIdx", "threadIdx", "blockDim", "gridDim")]
        if not all(name in machine.builtins for name in names):
            continue
        block, thread, threads, blocks = (machine.builtins[name] for name in names)
        whole = integers.add(integers.multiply(block, threads), thread)
        forms = (
            (whole, integers.multiply(threads, blocks), (names[0], names[1])),
            (block, blocks, (names[0],)),
            (thread, threads, (names[1],)),
        )
        for own, stride, used in forms:
            first = integers.subtract(start, own)
            free = not first.depends_on(*used) and integers.value_of(own) != 0
            if step == stride and free and start.depends_on(*(s for s in own.symbols)):
                return tuple(name for name in used if own.depends_on(name)), first
    return None


def _shared_loop(
    machine: Machine,
    node: Node,
    variable: int,
    count: tuple[str, Expression, Expression],
    shared: tuple[tuple[str, ...], Expression],
) -> Header:
    operator, bound, step = count
    used, first = shared
    if any(test.depends_on(*used) for test in machine.path):
        raise machine.refuse(node, "only some threads reach a loop that all threads share")
    if any(set(used) & set(machine.strided.get(loop.name, ())) for loop in machine.loops):
        raise machine.refuse(node, "a loop that threads share stands inside another over the same threads")
    kind = machine.variables[variable].layout.kind
    upper = _after(bound) if operator == "<=" else bound
    if first.depends_on(*used) or upper.depends_on(*used):
        raise machine.refuse(node, "the range of a loop that threads share differs between them")
    loop = Loop(machine.fresh(machine.variables[variable].name), first, upper, kind)
    machine.strided[loop.name] = used
    return Header(variable, loop, loop.symbol, Sym("%after", kind), step, used)
