"""Follow a launcher to one launch: what its variables are worth there, as far as that is known."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.casts import dim3_of
from kernelskill.algorithm.lifting.declaring import declare
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.statements import effect
from kernelskill.algorithm.lifting.values import Dim3, Layout, Pointer, Poison, Value, Variable, scalar
from kernelskill.algorithm.model import CannotLift
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import is_known
from kernelskill.source.declarations import read_variables
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.intrinsics import takes_values
from kernelskill.source.launches import LaunchSite
from kernelskill.source.scopes import LOOPS
from kernelskill.source.syntax import ancestors, named, strip_parentheses, walk

HOST = "host:"
"""First characters of symbols that are known to the launcher only."""
_CONTROL = LOOPS | {"if_statement", "switch_statement", "try_statement"}


@dataclass(frozen=True)
class HostState:
    """A launcher just before a launch."""

    machine: Machine
    texts: dict[str, str]
    """Symbol -> host text, for those that stand for an expression rather than a variable."""

    def value(self, node: Node, kind: str) -> Value:
        """Return the value of an argument; a symbol of its own where it can't be followed."""
        try:
            return self.machine.value(node)
        except CannotLift:
            return self.opaque(self.machine.text(node), kind)

    def opaque(self, text: str, kind: str) -> Sym:
        """Return a symbol for a host expression."""
        name = self.machine.fresh(f"{HOST}({text})")
        self.texts[name] = text
        return Sym(name, kind)

    def text_of(self, expression: Expression) -> str | None:
        """Return host text that has a value at the launch; None where no visible variable helps."""
        missing: list[str] = []

        def leaf(node: Expression) -> str | None:
            found = self._variable(node)
            if found is None and isinstance(node, Sym):
                found = self.texts.get(node.name)
                if found is None:
                    missing.append(node.name)
            return found

        text = show(expression, leaf)
        return None if missing else text

    def _variable(self, node: Expression) -> str | None:
        for scope in reversed(self.machine.scopes):
            for name, number in scope.items():
                if self.machine.slots[number] == node and self.machine.find(name) == number:
                    return name
        return None

    def dimensions(self, node: Node) -> tuple[Expression, Expression, Expression]:
        """Return the three sizes of a grid or block."""
        node = strip_parentheses(node)
        one = integers.constant(1, "unsigned")
        try:
            if node.type in ("initializer_list", "compound_literal_expression"):
                listed = node.child_by_field_name("value") or node
                return dim3_of(self.machine, named(listed)).parts
            value = self.machine.value(node)
        except CannotLift:
            value = Poison("")
        if isinstance(value, Dim3):
            return value.parts
        if isinstance(value, Expression):
            return (convert(value, "unsigned"), one, one)
        text = self.machine.text(node)
        x, y, z = (self.opaque(f"dim3({text}).{axis}", "unsigned") for axis in "xyz")
        return (x, y, z)


def follow(machine: Machine, function: FunctionDef | None, launch: LaunchSite) -> HostState:
    """Execute a launcher's straight-line code on the way to a launch.

    Variables that branches or loops write, and calls may write, become symbols of their own.
    """
    state = HostState(machine, {})
    if function is None or function.body is None:
        return state
    for parameter in function.parameters:
        layout = machine.types.layout(parameter.pointee_type)
        value = _parameter_value(parameter.name, layout, parameter.pointer_depth)
        machine.declare(Variable(parameter.name, layout or scalar("auto"), parameter.is_pointer), value)
    below = launch.node
    way = [below]
    for parent in ancestors(launch.node):
        way.append(parent)
        if parent == function.body:
            break
    for node, target in zip(reversed(way), reversed(way[:-1]), strict=False):
        _enter(machine, node, target)
    return state


def _parameter_value(name: str, layout: Layout | None, depth: int) -> Value:
    if layout is None or depth > 1:
        return Poison(f"the launcher's parameter {name!r} is not followed")
    if depth == 1:
        return Pointer(f"{HOST}{name}", integers.constant(0, "long long"), layout)
    return Sym(f"{HOST}{name}", layout.kind) if layout.is_scalar else Poison(f"{name!r} is a struct")


def _enter(machine: Machine, node: Node, target: Node) -> None:
    """Execute what comes before a child on the way to it."""
    if node.type == "compound_statement":
        machine.scopes = [*machine.scopes, {}]
        for child in named(node):
            if child == target:
                return
            _statement(machine, child)
    elif node.type in LOOPS:
        machine.scopes = [*machine.scopes, {}]
        initialiser = node.child_by_field_name("initializer")
        if initialiser is not None:
            _statement(machine, initialiser)
        _forget(machine, node)


def _statement(machine: Machine, node: Node) -> None:
    before = machine.snapshot()
    if node.type in _CONTROL or node.type == "compound_statement":
        _forget(machine, node)
        return
    try:
        if node.type == "declaration":
            declare(machine, node)
        elif node.type == "expression_statement":
            for child in named(node):
                if not any(entry.type == "kernel_call_syntax" for entry in walk(child)):
                    effect(machine, child)
        elif node.type in ("assignment_expression", "update_expression", "comma_expression"):
            effect(machine, node)
    except CannotLift:
        machine.restore(before)
        _declare_unknown(machine, node)
        _forget(machine, node)


def _declare_unknown(machine: Machine, node: Node) -> None:
    if node.type != "declaration":
        return
    for variable in read_variables(machine.syntax, node, in_device_code=False):
        layout = machine.types.layout(variable.base_type)
        declared = Variable(variable.name, layout or scalar("auto"), variable.pointer_depth > 0)
        number = machine.declare(declared, None)
        machine.slots[number] = _unknown(machine, declared)


def _unknown(machine: Machine, variable: Variable) -> Value:
    layout = variable.layout
    if variable.is_pointer or not layout.is_scalar or not is_known(layout.kind):
        return Poison(f"the launcher's variable {variable.name!r} is not followed")
    return Sym(machine.fresh(f"{HOST}{variable.name}"), layout.kind)


def _forget(machine: Machine, node: Node) -> None:
    """Make every variable unknown that a statement may write."""
    for entry in walk(node):
        if entry.type == "call_expression":
            _forget_arguments(machine, entry)
        target: Node | None = None
        if entry.type == "assignment_expression":
            target = entry.child_by_field_name("left")
        elif entry.type == "update_expression" or (
            entry.type == "pointer_expression" and machine.text(entry).startswith("&")
        ):
            target = entry.child_by_field_name("argument")
        if target is None:
            continue
        while target.type in ("field_expression", "subscript_expression", "parenthesized_expression"):
            inner = target.child_by_field_name("argument") or named(target)[0]
            target = inner
        _forget_name(machine, target)


def _forget_name(machine: Machine, target: Node) -> None:
    number = machine.find(machine.text(target))
    if number is not None:
        machine.slots[number] = _unknown(machine, machine.variables[number])


def _forget_arguments(machine: Machine, call: Node) -> None:
    """Forget variables that a function may take by reference."""
    function, listed = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or listed is None or any(c.type == "kernel_call_syntax" for c in call.children):
        return
    name = machine.text(function).split("<")[0].split("::")[-1]
    known = [f for _, f in machine.functions() if f.name == name]
    if not known and takes_values(name):
        return
    for position, argument in enumerate(named(listed)):
        by_value = bool(known) and all(
            position < len(f.parameters) and not f.parameters[position].is_reference for f in known
        )
        if argument.type == "identifier" and not by_value:
            _forget_name(machine, argument)
