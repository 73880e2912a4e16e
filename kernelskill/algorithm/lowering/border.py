"""Points beside a border: a few lanes of a warp have them, and all lanes share them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from kernelskill.algorithm.expression import Sym
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.stores import lower_stores
from kernelskill.algorithm.model import IllegalMove

_WARP = 32


def lower_border(context: Context, inside: str) -> None:
    """Write the stores of all points of threads for which `inside`, the name of a flag, does not hold.

    The first point of each thread is declared.

    Raises:
        IllegalMove: Blocks are not made of whole warps.
    """
    if context.schedule.threads % _WARP:
        raise IllegalMove("blocks are not made of whole warps")
    out, fresh = context.out, context.names.fresh
    outside, item, owner = fresh("outside"), fresh("item"), fresh("owner")
    tid = context.step_names["tid"]
    points = context.constant("kPoints", prod(text.plan.points for text in context.register_axes))
    out.line("// Few threads lie at a border: all lanes of a warp share their points.")
    without = " && ".join([f"!{inside}", *_has_points(context)])
    out.line(f"const unsigned {outside} = __ballot_sync(0xffffffffu, {without});")
    head = f"for (int {item} = {tid} % {_WARP}; {item} < __popc({outside}) * {points}; {item} += {_WARP})"
    with out.block(head):
        left, skipped = fresh("left"), fresh("n")
        out.line(f"unsigned {left} = {outside};")
        with out.block(f"for (int {skipped} = {item} / {points}; {skipped} > 0; --{skipped})"):
            out.line(f"{left} &= {left} - 1;")
        out.line(f"const int {owner} = {tid} / {_WARP} * {_WARP} + __ffs({left}) - 1;")
        with (
            _point_of(context, owner, f"{item} % {points}") as tests,
            out.block(f"if ({' && '.join(tests)})"),
        ):
            lower_stores(context)


def _has_points(context: Context) -> list[str]:
    """Return the tests that the thread's first point lies in range."""
    tests = []
    for text in context.axes.values():
        if text.plan.tile > 1:
            first = context.values.get(Sym(f"{text.axis.name}@first"), text.axis.name)
            tests.append(f"{first} < {context.show(text.axis.upper, 8)}")
    return tests


@contextmanager
def _point_of(context: Context, owner: str, number: str) -> Iterator[list[str]]:
    """Declare the coordinates of one point of another thread; gives the tests that it lies in range."""
    before = context.axes, dict(context.values), context.active
    moving = context.register_axes
    context.axes = _threads_of(context, owner)
    _declare_numbers(context, moving, number)
    tests = []
    for text in context.axes.values():
        name = text.axis.name
        if text.plan.points > 1:
            context.declare_point(text)
        elif text.plan.threads > 1:
            name = context.names.fresh(f"{name}_there")
            context.out.line(f"const {context.index_type} {name} = {text.start} + {text.thread};")
            context.values[Sym(text.axis.name)] = name
        if text.plan.tile > 1:
            tests.append(f"{name} < {context.show(text.axis.upper, 8)}")
    context.one_point, context.active = True, ""
    yield tests
    context.one_point = False
    context.axes, context.values, context.active = before


def _threads_of(context: Context, owner: str) -> dict[str, AxisText]:
    """Take the number of a thread apart; return the axes with its numbers along them."""
    texts, rest = dict(context.axes), owner
    shared = [text for text in context.axes.values() if text.plan.threads > 1]
    for number, text in enumerate(reversed(shared)):
        name = context.names.fresh(f"{text.axis.name}_owner")
        is_last = number == len(shared) - 1
        context.out.line(f"const int {name} = {rest}{'' if is_last else f' % {text.threads}'};")
        rest = f"{rest} / {text.threads}"
        texts[text.axis.name] = replace(text, thread=name)
    return texts


def _declare_numbers(context: Context, moving: Sequence[AxisText], number: str) -> None:
    """Take the number of a point within its thread apart."""
    rest = number
    for position, text in enumerate(reversed(moving)):
        is_last = position == len(moving) - 1
        context.out.line(f"const int {text.point} = {rest}{'' if is_last else f' % {text.points}'};")
        rest = f"{rest} / {text.points}"
