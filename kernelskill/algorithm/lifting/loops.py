"""Execute loops: one symbolic iteration closed over the loop's range, or all of a few known ones."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.lifting.arithmetic import condition, is_plain_index, recurrent_symbols
from kernelskill.algorithm.lifting.declaring import declare
from kernelskill.algorithm.lifting.iteration import Iteration
from kernelskill.algorithm.lifting.loop_headers import (
    PROBE,
    Header,
    Parts,
    find_variable,
    parts_of,
    read_header,
)
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.values import at_position, position_of
from kernelskill.algorithm.model import CannotLift
from kernelskill.algorithm.types import is_integer

_MOST_UNROLLED = 32
_MOST_ROUNDS = 24
RunBody = Callable[[Machine, Node], None]


def run_loop(machine: Machine, node: Node, run_body: RunBody) -> None:
    """Execute a loop.

    Raises:
        CannotLift: It can't be followed, with the reason.
    """
    scopes = machine.scopes
    machine.scopes = [*scopes, {}]
    initialiser = node.child_by_field_name("initializer")
    if initialiser is not None and initialiser.type == "declaration":
        declare(machine, initialiser)
    elif initialiser is not None:
        machine.value(initialiser)
    parts = parts_of(machine, node)
    if parts.is_do:
        # What runs before the condition is asked for the first time; from then on it is a while loop.
        run_body(machine, parts.body)
        machine.exited = False
    start = machine.snapshot()
    try:
        _symbolic(machine, node, parts, run_body)
    except CannotLift as reason:
        machine.restore(start)
        if not _concrete(machine, parts, run_body):
            raise reason from None
    machine.scopes = scopes
    machine.exited = False


def _concrete(machine: Machine, parts: Parts, run_body: RunBody) -> bool:
    """Execute every iteration of a loop whose conditions are all known; False where they are not."""
    if parts.test is None:
        return False
    start, fresh = machine.snapshot(), dict(machine.fresh_names)
    for _ in range(_MOST_UNROLLED + 1):
        try:
            known = integers.value_of(condition(machine.number(parts.test)))
        except CannotLift:
            known = None
        if known is None:
            break
        if not known:
            return True
        run_body(machine, parts.body)
        machine.exited = False
        if parts.update is not None:
            machine.value(parts.update)
    machine.restore(start)
    machine.fresh_names = fresh
    return False


def _symbolic(machine: Machine, node: Node, parts: Parts, run_body: RunBody) -> None:
    start = machine.snapshot()
    variable = find_variable(machine, node, parts)
    header = _header(machine, node, parts, variable, run_body)
    machine.ranges[header.loop.name] = (header.loop.lower, header.loop.upper)
    iteration = Iteration(machine, node, start, header)
    for _ in range(_MOST_ROUNDS):
        iteration.begin()
        if parts.test is not None:
            machine.number(parts.test)
        run_body(machine, parts.body)
        machine.exited = False
        if parts.update is not None:
            machine.value(parts.update)
        if not iteration.learn():
            iteration.finish()
            return
    raise machine.refuse(node, "what the loop carries is not understood")


def _header(machine: Machine, node: Node, parts: Parts, variable: int, run_body: RunBody) -> Header:
    """Return what a loop counts; the machine is left as it was."""
    start, reads = machine.snapshot(), len(machine.reads)
    step = _step(machine, node, parts, variable, run_body)
    machine.restore(start)
    _set_probe(machine, variable)
    test = condition(machine.number(parts.test)) if parts.test is not None else integers.constant(1)
    machine.restore(start)
    del machine.reads[reads:]
    return read_header(machine, node, variable, step, test)


def _step(machine: Machine, node: Node, parts: Parts, variable: int, run_body: RunBody) -> Expression:
    """Return what one iteration adds to the loop's variable."""
    probe = _set_probe(machine, variable)
    if parts.update is not None:
        machine.value(parts.update)
    if position_of(machine.slots[variable]) == probe and parts.test is not None:
        machine.value(parts.test)
    if position_of(machine.slots[variable]) == probe:
        run_body(machine, parts.body)
        machine.exited = False
    end = position_of(machine.slots[variable])
    if end is not None and is_integer(end.type):
        step = integers.subtract(end, probe)
        if not step.depends_on(PROBE) and not recurrent_symbols(step) and is_plain_index(step):
            return step
    raise machine.refuse(node, "a loop whose variable does not move by a fixed step is not understood")


def _set_probe(machine: Machine, variable: int) -> Sym:
    """Make a loop's variable a symbol."""
    declared = machine.variables[variable]
    probe = Sym(PROBE, "long long" if declared.is_pointer else declared.layout.kind)
    machine.slots[variable] = at_position(machine.slots[variable], probe)
    return probe
