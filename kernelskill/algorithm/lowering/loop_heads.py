"""Heads of loops, and what a step does to an accumulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernelskill.algorithm.expression import Expression, Load, Loop, walk
from kernelskill.algorithm.integers import subtract, value_of
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.widths import counts_in_int, prints_wide
from kernelskill.algorithm.types import cuda_name

_MOST_UNROLLED = 16


@contextmanager
def open_loop(context: Context, loop: Loop, *, shared: bool = False) -> Iterator[None]:
    """Put a plain loop round what is written inside; `shared`: the block's lanes take its steps in turn."""
    before = context.narrow
    # Lanes step beyond the end by up to their number.
    plain = not shared and context.index_type == "long long"
    narrow = plain and counts_in_int(loop, context.parameter_kinds)
    head = _head(context, loop, "int" if narrow else context.index_type, shared=shared)
    context.narrow = before | {loop.name} if narrow else before - {loop.name}
    with context.out.block(head):
        yield
    context.narrow = before


def _head(context: Context, loop: Loop, kind: str, *, shared: bool) -> str:
    low, high = (_bound(context, bound, kind) for bound in (loop.lower, loop.upper))
    name = loop.name
    if not shared:
        return f"for ({kind} {name} = {low}; {name} < {high}; ++{name})"
    start = context.lane_start
    if kind == "long long" and context.split:
        start = f"static_cast<long long>({context.split}) * {context.constant('kLanes', context.schedule.lanes)} + {context.lane}"
    first = start if low == "0" else f"{low} + {start}"
    return f"for ({kind} {name} = {first}; {name} < {high}; {name} += {context.lane_stride})"


def is_short(loop: Loop) -> bool:
    """Whether a loop runs a few times, as often for everyone."""
    length = value_of(subtract(loop.upper, loop.lower))
    return length is not None and length <= _MOST_UNROLLED


def _bound(context: Context, expression: Expression, kind: str) -> str:
    """Return the text of a bound of a loop; one that is read from memory only where the point exists."""
    text = context.show(expression, 8)
    if kind == "int" and context.index_type != "int" and prints_wide(expression, context.is_wide_name):
        text = f"static_cast<int>({text})"
    if context.active and any(isinstance(node, Load) for node in walk(expression)):
        return f"({context.active} ? {text} : 0)"
    return text


def accumulate(context: Context, op: str, kind: str, target: str, text: str) -> str:
    """Return the statement that takes a value into an accumulator."""
    if op in ("+", "*", "&", "|", "^"):
        return f"{target} {op}= {text};"
    if op in ("&&", "||"):
        return f"{target} = {target} {op} ({text});"
    if op in ("fmax", "fmin"):
        function = {"double": op, "float": f"{op}f"}.get(kind, op[1:])
        return f"{target} = {function}({target}, {text});"
    sign = ">" if op == "max" else "<"
    if not text.isidentifier():
        name = context.names.fresh("value")
        context.out.line(f"const {cuda_name(kind)} {name} = {text};")
        text = name
    return f"{target} = {text} {sign} {target} ? {text} : {target};"
