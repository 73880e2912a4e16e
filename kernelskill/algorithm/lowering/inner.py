"""Two paths through one kernel: without tests where a thread's windows lie inside, point by point elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import Expression, Load, Reduce, Sym, loads, reductions
from kernelskill.algorithm.integers import constant, poly, subtract, terms_of, typed, value_of
from kernelskill.algorithm.interior import Span, interior_of
from kernelskill.algorithm.lowering.border import lower_border
from kernelskill.algorithm.lowering.branchless import without_jumps
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.halves import lower_halves
from kernelskill.algorithm.lowering.holding import hold_load, unheld_loads
from kernelskill.algorithm.lowering.reductions import lower_reductions
from kernelskill.algorithm.lowering.stores import lower_stores
from kernelskill.algorithm.lowering.values import print_values
from kernelskill.algorithm.lowering.window_fill import fill_window
from kernelskill.algorithm.lowering.window_plans import plan_windows
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import cuda_name

_MOST_TAPS = 64
"""Steps of loops that are looked at one by one."""


def lower_points(context: Context) -> None:
    """Write all stores, on two paths where the schedule wants it.

    Raises:
        IllegalMove: No access is guarded, clamped or wrapped at a border, or threads share loops or tiles.
    """
    if not context.schedule.interior:
        lower_stores(context)
        return
    if context.tiles or context.shares_loops or context.schedule.tensor:
        raise IllegalMove("threads that take different paths share no tiles or loops")
    inside = interior_of(context.algorithm, {name: _span(text) for name, text in context.axes.items()})
    context.out.line("// Threads whose windows lie inside of all bounds need no tests.")
    _declare_firsts(context)
    tests = [*([context.active] if context.active else []), *(_test(context, t) for t in inside.tests)]
    if not context.schedule.shares_border:
        with context.out.block(f"if ({' && '.join(tests)})"):
            _inside(context, inside.algorithm)
        with context.out.block("else"):
            lower_stores(context)
        return
    flag = context.names.fresh("inside")
    context.out.line(f"const bool {flag} = {' && '.join(tests)};")
    with context.out.block(f"if ({flag})"):
        _inside(context, inside.algorithm)
    lower_border(context, flag)


def _span(text: AxisText) -> Span:
    plan = text.plan
    if plan.points == 1:
        return Span(Sym(text.axis.name), 0)
    return Span(
        Sym(f"{text.axis.name}@first"),
        (plan.points // plan.vector - 1) * plan.threads * plan.vector + plan.vector - 1,
    )


def _declare_firsts(context: Context) -> None:
    """Declare the thread's first point along every axis of which it has several."""
    for text in context.register_axes:
        name = context.names.fresh(f"{text.axis.name}_first")
        place = text.thread if text.plan.threads > 1 else "0"
        if text.plan.vector > 1 and text.plan.threads > 1:
            place = f"{place} * {text.plan.vector}"
        start = text.start if place == "0" else f"{text.start} + {place}"
        context.out.line(f"const {context.index_type} {name} = {start};")
        context.values[Sym(f"{text.axis.name}@first")] = name


def _test(context: Context, value: Expression) -> str:
    """Return the text of the test that a value is not negative."""
    terms = terms_of(value)
    sides = [{m: abs(f) for m, f in terms.items() if (f < 0) == below} for below in (False, True)]

    def leaf(node: Expression) -> str | None:
        known = context.leaf(node)
        if known is None and isinstance(node, Sym) and node.kind.startswith("unsigned"):
            return f"static_cast<{context.index_type}>({node.name})"
        return known

    more, less = (show(typed(poly(side), context.index_type), leaf, 8) for side in sides)
    return f"{more} >= {less}"


def _inside(context: Context, algorithm: Algorithm) -> None:
    """Write the stores of inner points."""
    before = context.algorithm, dict(context.values), context.active
    context.algorithm, context.active, context.is_inner = algorithm, "", True
    if context.schedule.halves:
        lower_halves(context, algorithm.stores)
    else:
        if context.register_axes and not any(store.guard or store.loops for store in algorithm.stores):
            _hold_values(context)
        lower_stores(context)
    context.algorithm, context.values, context.active = before
    context.is_inner = False


def _hold_values(context: Context) -> None:
    """Compute the values of all points before any is stored: what neighbouring points read is read once."""
    values = list(dict.fromkeys(store.value for store in context.algorithm.stores))
    _hold_windows(context, values)
    lower_reductions(context, values)
    axes = context.register_axes
    subscript = "".join(f"[{text.point}]" for text in axes)
    for load in _surrounded(context, values):
        name = context.names.fresh(f"{load.buffer}_own")
        hold_load(context, load, name, axes)
        context.values[load] = name + subscript
    values = [each for each in values if each not in context.values and loads(each)]
    if values:
        _declare_values(context, values)
    context.windows.clear()


def _declare_values(context: Context, values: Sequence[Expression]) -> None:
    """Compute values into registers, one for each point."""
    axes = context.register_axes
    subscript = "".join(f"[{text.point}]" for text in axes)
    names = [context.names.fresh("value") for _ in values]
    for name, value in zip(names, values, strict=True):
        sizes = "".join(f"[{text.points}]" for text in axes)
        context.out.line(f"{cuda_name(value.type)} {name}{sizes};")
    with context.over_points(axes, values):
        printed = print_values(context, [without_jumps(context, value) for value in values])
        context.out.lines(printed.declarations)
        for name, text in zip(names, printed.texts, strict=True):
            context.out.line(f"{name}{subscript} = {text};")
    context.values |= {value: name + subscript for name, value in zip(names, values, strict=True)}


def _hold_windows(context: Context, values: Sequence[Expression]) -> None:
    """Read the windows of all points into registers, where that takes wide accesses."""
    windows = plan_windows(context, values)
    if not windows or not context.aligned_flag:
        return
    firsts = {
        name: Sym(f"{name}@first" if text.plan.points > 1 else name) for name, text in context.axes.items()
    }
    for window in windows:
        named = replace(window, name=context.names.fresh(f"{window.buffer}_window"))
        fill_window(context, named, firsts)
        context.windows.append(named)


def _surrounded(context: Context, values: Sequence[Expression]) -> list[Load]:
    """Return the loads under conditions that lie between two elements of an array which are read in any case."""
    certain = [load for value in values for load in certain_loads(value) | _certain_taps(value)]
    found: dict[Load, None] = {}
    for value in values:
        for load in unheld_loads(context, [value]):
            others = [
                value_of(subtract(load.index, each.index)) for each in certain if each.buffer == load.buffer
            ]
            known = [each for each in others if each is not None]
            if load not in certain and min(known, default=1) <= 0 <= max(known, default=-1):
                found[load] = None
    return list(found)


def _certain_taps(value: Expression) -> frozenset[Load]:
    """Return the loads that loops of a few steps make in any case."""
    found: set[Load] = set()
    for node in reductions(value):
        ranges = [(value_of(loop.lower), value_of(loop.upper)) for loop in node.loops]
        steps = [range(low, high) for low, high in ranges if low is not None and high is not None]
        if len(steps) < len(ranges) or prod(len(each) for each in steps) > _MOST_TAPS:
            continue
        for place in product(*steps):
            at: dict[str, Expression] = {
                loop.name: constant(number) for loop, number in zip(node.loops, place, strict=True)
            }
            bodies = (node.body,) if isinstance(node, Reduce) else node.updates
            for body in bodies:
                found |= certain_loads(substitute(body, at))
    return frozenset(found)
