"""Lift a launch of a kernel to an algorithm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from kernelskill.algorithm.expression import Expression, Sym, walk
from kernelskill.algorithm.joining import with_joined_folds
from kernelskill.algorithm.lifting.axes import make_axes, promote_loops, tighten
from kernelskill.algorithm.lifting.digits import split_digits
from kernelskill.algorithm.lifting.draft import Draft
from kernelskill.algorithm.lifting.expressions import evaluate
from kernelskill.algorithm.lifting.host import follow
from kernelskill.algorithm.lifting.joining import join_threads
from kernelskill.algorithm.lifting.launch import Binding, bind, extra_parameter, is_host_symbol
from kernelskill.algorithm.lifting.legality import check_races, without_dead_stores
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.naming import Names, order_axes, readable_names, rename_all
from kernelskill.algorithm.lifting.statements import has_goto, run_body
from kernelskill.algorithm.lifting.templates import instantiate
from kernelskill.algorithm.lifting.types import TypeTable
from kernelskill.algorithm.model import Algorithm, CannotLift, Parameter
from kernelskill.algorithm.rewriting import substitute
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import LaunchSite
from kernelskill.source.unit import SourceUnit

_INTERNAL = re.compile(r"[%?#]?\b(\w+)@\d+")
"""How execution tells variables and loops of one name apart."""


@dataclass(frozen=True)
class Lifted:
    """A launch read as an algorithm, in terms of the kernel's parameters and a few more."""

    algorithm: Algorithm
    kernel: KernelDef
    launch: LaunchSite
    arguments: tuple[tuple[str, str], ...]
    """Every parameter of the algorithm, in order -> the text of its argument at the launch."""
    block: tuple[Expression, Expression, Expression]
    grid: tuple[Expression, Expression, Expression]
    """Sizes of the launch in the algorithm's parameters; host variables that are none of them keep their name."""
    values: tuple[tuple[str, Expression], ...] = field(default=(), compare=False)
    """Integer parameters -> their values in the launcher's terms, where these are known."""
    roots: tuple[tuple[str, tuple[str, Expression]], ...] = field(default=(), compare=False)
    """Pointer parameters -> the launcher's pointer that each is made from, and the distance from it."""

    @property
    def extra(self) -> tuple[str, ...]:
        """Parameters that the kernel does not have: sizes only the launcher knows."""
        own = {parameter.name for parameter in self.kernel.parameters}
        return tuple(name for name, _ in self.arguments if name not in own)


def lift_kernel(unit: SourceUnit, kernel: KernelDef, headers: Sequence[SourceUnit] = ()) -> Lifted:
    """Lift the one launch of a kernel.

    Args:
        unit: The file.
        kernel: A kernel of it.
        headers: Local headers that the file includes.

    Raises:
        CannotLift: It is never launched, or launches differ in what they mean, or as `lift` says.
    """
    launches = unit.launches_of(kernel)
    if not launches:
        raise CannotLift(f"{kernel.name!r} is not launched in this file")
    lifted = [lift(unit, launch, headers) for launch in launches]
    first = lifted[0]
    if any(
        (one.algorithm, one.block, one.grid) != (first.algorithm, first.block, first.grid) for one in lifted
    ):
        raise CannotLift(f"the {len(lifted)} launches of {kernel.name!r} differ in what the kernel computes")
    return first


def lift(unit: SourceUnit, launch: LaunchSite, headers: Sequence[SourceUnit] = ()) -> Lifted:
    """Read what a launch computes.

    Args:
        unit: The file.
        launch: A launch in it.
        headers: Local headers that the file includes.

    Raises:
        CannotLift: The kernel or its launch is outside what can be followed and proven, with the reason.
    """
    kernel = unit.kernel(launch.kernel)
    if kernel is None or kernel.body is None:
        raise CannotLift(f"the kernel {launch.kernel!r} is not defined in this file")
    if kernel.is_opaque:
        raise CannotLift(f"the text of {kernel.name!r} is not understood: {kernel.opaque_reason}")
    if has_goto(kernel.body):
        raise CannotLift("inline assembly, goto and exceptions are not understood")
    try:
        return _lift((unit, *headers), kernel, kernel.body, launch)
    except CannotLift as refused:
        raise CannotLift(_INTERNAL.sub(r"\1", refused.reason)) from None
    except RecursionError:
        raise CannotLift(f"{kernel.name!r} is nested too deeply") from None


def _lift(units: tuple[SourceUnit, ...], kernel: KernelDef, body: Node, launch: LaunchSite) -> Lifted:
    host = follow(_machine(units), units[0].function(launch.function), launch)
    machine = _machine(units)
    instantiate(machine, kernel, launch, host)
    binding = bind(machine, kernel, launch, host)
    machine.scopes.append({})
    run_body(machine, body)
    draft = Draft(machine.stores, {}, machine.named, machine.notes, machine.strided)
    try:
        join_threads(draft, machine.ranges)
        _settle(draft, binding)
    except CannotLift as refused:
        raise CannotLift(_in_user_names(refused.reason, draft)) from None
    return _result(units, kernel, launch, draft, binding)


def _machine(units: tuple[SourceUnit, ...]) -> Machine:
    types, syntax = TypeTable(units), units[0].syntax
    return Machine(units[0], types, {}, syntax, units[1:], evaluator=evaluate, runner=run_body)


def _in_user_names(reason: str, draft: Draft) -> str:
    """Return a reason with axes under the names of the user's variables."""
    for entry in draft.named:
        if isinstance(entry.expression, Sym) and entry.expression.name in draft.axes:
            reason = reason.replace(entry.expression.name, entry.name)
    return reason


def _settle(draft: Draft, binding: Binding) -> None:
    """Bring what one thread does to what all threads do."""
    if not draft.stores:
        raise CannotLift("the kernel stores nothing")
    without_dead_stores(draft)
    promote_loops(draft)
    make_axes(draft, binding)
    tighten(draft, binding)
    split_digits(draft, binding)
    _check_aliases(draft, binding)
    check_races(draft)
    order_axes(draft)


def _check_aliases(draft: Draft, binding: Binding) -> None:
    """Refuse launches that give one buffer under two names and write it."""
    written = {store.buffer for store in draft.stores}
    for name in written:
        root = binding.roots.get(name)
        twins = [other for other, base in binding.roots.items() if base == root and other != name]
        if root is not None and twins:
            raise CannotLift(
                f"the launch gives one buffer as {name!r} and as {twins[0]!r}, and the kernel writes it"
            )


def _result(
    units: tuple[SourceUnit, ...], kernel: KernelDef, launch: LaunchSite, draft: Draft, binding: Binding
) -> Lifted:
    names = {parameter.name for parameter in binding.parameters}
    reserved = names.union(*(_file_names(unit) for unit in units))
    extra, arguments, table = _extra(draft, binding, reserved)
    draft.substitute(table)
    rename_all(draft, reserved | {parameter.name for parameter in extra})
    separate = Algorithm(
        kernel=kernel.name,
        parameters=(*binding.parameters, *extra),
        axes=tuple(draft.axes.values()),
        stores=tuple(draft.stores),
        names=readable_names(draft),
        notes=tuple(dict.fromkeys(draft.notes)),
        joined=draft.joined,
        reorders=draft.reorders,
    )
    algorithm = with_joined_folds(separate)
    _check_symbols(algorithm)
    block, grid = (
        tuple(_with_host_names(substitute(part, table), binding) for part in parts)
        for parts in (binding.block, binding.grid)
    )
    inner = {symbol.name: Sym(name, symbol.kind) for name, symbol in table.items() if isinstance(symbol, Sym)}
    return Lifted(
        algorithm,
        kernel,
        launch,
        (*binding.arguments, *arguments),
        (block[0], block[1], block[2]),
        (grid[0], grid[1], grid[2]),
        (*binding.values.items(), *inner.items()),
        tuple(binding.roots.items()),
    )


def _with_host_names(size: Expression, binding: Binding) -> Expression:
    """Return a size of the launch with what only the launcher knows under the launcher's name."""
    table: dict[str, Expression] = {}
    for node in walk(size):
        if isinstance(node, Sym) and is_host_symbol(node.name):
            table[node.name] = Sym(binding.host.text_of(node) or node.name, node.kind)
    return substitute(size, table)


def _extra(
    draft: Draft, binding: Binding, taken: set[str]
) -> tuple[list[Parameter], list[tuple[str, str]], dict[str, Expression]]:
    """Return parameters to add for host values, their arguments, and what replaces the symbols."""
    names = Names(set(taken))
    parameters: list[Parameter] = []
    arguments: list[tuple[str, str]] = []
    table: dict[str, Expression] = {}
    for symbol in _host_symbols(draft):
        text = binding.host.text_of(symbol)
        if text is None:
            raise CannotLift(
                f"a size of the launch, {symbol.name.split(':')[1]!r}, is not known there any more"
            )
        name = names.give(text if text.isidentifier() else "size")
        parameters.append(extra_parameter(name, symbol))
        arguments.append((name, text))
        table[symbol.name] = Sym(name, symbol.kind)
    return parameters, arguments, table


def _host_symbols(draft: Draft) -> list[Sym]:
    bounds = [bound for axis in draft.axes.values() for bound in (axis.lower, axis.upper)]
    found: dict[str, Sym] = {}
    for expression in (*draft.expressions(), *bounds):
        for node in walk(expression):
            if isinstance(node, Sym) and is_host_symbol(node.name):
                found.setdefault(node.name, node)
    return list(found.values())


def _file_names(unit: SourceUnit) -> set[str]:
    """Return names of the file that no variable should take."""
    return (
        {macro.name for macro in unit.macros}
        | {function.name for function in unit.functions}
        | {variable.name for variable in unit.globals}
        | set(unit.constants.enumerators)
    )


def _check_symbols(algorithm: Algorithm) -> None:
    """Check that nothing of the execution is left over."""
    known = {parameter.name for parameter in algorithm.parameters if not parameter.is_pointer}
    known |= {axis.name for axis in algorithm.axes}
    bounds = [bound for axis in algorithm.axes for bound in (axis.lower, axis.upper)]
    for store in algorithm.stores:
        own = known | {loop.name for loop in store.loops}
        for expression in (*store.expressions, *bounds):
            for name in expression.symbols - own:
                what = name.lstrip("%?").split("@")[0]
                raise CannotLift(
                    f"{what!r} depends on the thread or an iteration in a way that is not understood"
                )
