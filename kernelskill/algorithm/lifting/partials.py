"""Parts of reductions that threads hold, and how a block or warp joins them to the whole.

A loop that threads share leaves each with a part: its upper bound is marked with the thread's index.
Joining parts over exactly all threads gives the reduction over the whole range; association changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Call, Expression, Loop, Num, Reduce, Select, Sym, walk
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.lifting.arithmetic import number
from kernelskill.algorithm.lifting.recurrences import neutral_of
from kernelskill.algorithm.rewriting import rebuild, substitute

SHARE = "%share"
"""Function that marks the upper bound of a loop whose iterations are spread over threads."""
LANE = "lane:"
"""First characters of loops over threads."""
FIRST_LANE = "%first"
"""Function that marks a value that only the first lane of each warp has."""
_OPERATIONS = {"fmaxf": "fmax", "fmax": "fmax", "fminf": "fmin", "fmin": "fmin", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Group:
    """A value joined over threads `thread + stride * u` for u below count."""

    part: Expression
    stride: int
    count: int


def marked(upper: Expression, names: tuple[str, ...]) -> Expression:
    """Return an upper bound that says which threads' iterations a loop has."""
    function = f"{SHARE}:{','.join(names)}"
    return Call(function, (upper, *(Sym(name, "unsigned") for name in names)), upper.type)


def share_of(loop: Loop) -> dict[str, Expression] | None:
    """Return whose iterations a loop has, by index; None for a loop of each thread."""
    if isinstance(loop.upper, Call) and loop.upper.function.startswith(SHARE):
        names = loop.upper.function.partition(":")[2].split(",")
        return dict(zip(names, loop.upper.arguments[1:], strict=True))
    return None


def unmarked(loop: Loop) -> Loop:
    """Return a loop over the iterations of all threads."""
    return replace(loop, upper=loop.upper.children[0]) if share_of(loop) is not None else loop


def operation(value: Expression) -> tuple[str, Expression, Expression] | None:
    """Return the reduction that an operation is a step of, with its operands."""
    if isinstance(value, Binary) and value.op in ("+", "*", "&", "|", "^", "&&", "||"):
        return value.op, value.left, value.right
    if isinstance(value, Call) and value.function in _OPERATIONS and len(value.arguments) == 2:
        return _OPERATIONS[value.function], value.arguments[0], value.arguments[1]
    return _ternary(value)


def _ternary(value: Expression) -> tuple[str, Expression, Expression] | None:
    """Read `b > a ? b : a` as a maximum."""
    if not isinstance(value, Select) or not isinstance(value.condition, Binary):
        return None
    test = value.condition
    if {value.first, value.second} != {test.left, test.right} or test.op not in ("<", "<=", ">", ">="):
        return None
    greater = (test.op[0] == ">") == (test.left == value.first)
    return ("max" if greater else "min"), value.second, value.first


def joined_pair(
    value: Expression, thread: Sym, distances: list[int], groups: dict[Expression, Group], lane: str
) -> Expression | None:
    """Read `v + (v of the thread some distance on)` as a reduction over threads; None for anything else."""
    parts = operation(value)
    if parts is None:
        return None
    op, *sides = parts
    for own, other in (sides, sides[::-1]):
        for distance in distances:
            if distance <= 0 or not own.depends_on(thread.name):
                continue
            moved = {thread.name: integers.add(thread, integers.constant(distance))}
            if substitute(own, moved) == other:
                return _joined(op, own, thread, distance, groups, lane)
    return None


def _joined(
    op: str, own: Expression, thread: Sym, distance: int, groups: dict[Expression, Group], lane: str
) -> Expression | None:
    before = groups.get(own, Group(own, 0, 1))
    if before.count == 1:
        group = Group(own, distance, 2)
    elif distance == before.count * before.stride:
        group = replace(before, count=2 * before.count)
    elif 2 * distance == before.stride:
        group = replace(before, stride=distance, count=2 * before.count)
    else:
        return None
    value = over_threads(op, group, thread, lane)
    if value is not None:
        groups[value] = group
    return value


def over_threads(op: str, group: Group, thread: Sym, lane: str) -> Expression | None:
    """Return the reduction that a group of threads makes of its parts."""
    kind = group.part.type
    start = neutral_of(op, kind)
    if start is None:
        return None
    loop = Loop(lane, integers.constant(0), integers.constant(group.count))
    place = integers.add(thread, integers.multiply(loop.symbol, integers.constant(group.stride)))
    return Reduce(op, (loop,), substitute(group.part, {thread.name: place}), start, kind)


def whole(expression: Expression, ranges: Ranges) -> Expression:
    """Replace reductions over all threads of their parts by the reduction itself."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Call) and node.function == FIRST_LANE:
            return node.arguments[0] if _is_multiple(node.arguments[1], 32) else None
        if isinstance(node, Reduce) and node.loops[0].name.startswith(LANE):
            return _whole(node, ranges)
        return None

    return rebuild(expression, change)


def _is_multiple(expression: Expression, divisor: int) -> bool:
    return all(factor % divisor == 0 for factor in integers.terms_of(expression).values())


def _whole(node: Reduce, ranges: Ranges) -> Expression | None:
    body = node.body
    names = {loop.name for loop in node.loops}
    if isinstance(body, Select):
        return _selected(node, body, ranges)
    if not isinstance(body, Reduce) or body.op != node.op or not _is_start(body.initial, node.op):
        return None
    if body.loops[0].name.startswith(LANE):
        flat = replace(node, loops=(*node.loops, *body.loops), body=body.body)
        return _whole(flat, ranges) or flat
    for position, loop in enumerate(body.loops):
        for name, place in (share_of(loop) or {}).items():
            if not place.symbols & names:
                continue
            if not _covers(place, node.loops, ranges.get(name)):
                return None
            loops = (*body.loops[:position], _without(loop, name), *body.loops[position + 1 :])
            joined = replace(body, loops=loops)
            return None if joined.depends_on(*names) else joined
    return None


def _without(loop: Loop, name: str) -> Loop:
    """Return a loop whose share no longer depends on one thread index."""
    share = share_of(loop) or {}
    rest = {key: place for key, place in share.items() if key != name}
    upper = loop.upper.children[0]
    if rest:
        upper = Call(f"{SHARE}:{','.join(rest)}", (upper, *rest.values()), upper.type)
    return replace(loop, upper=upper)


def _covers(place: Expression, loops: tuple[Loop, ...], wanted: tuple[Expression, Expression] | None) -> bool:
    """Whether loops give every thread index from 0 to the end exactly once: digits of a mixed radix."""
    expected = 1
    digits = []
    for loop in loops:
        factor = integers.coefficient(place, loop.name)
        known = integers.value_of(factor) if factor is not None else None
        extent = integers.value_of(integers.subtract(loop.upper, loop.lower))
        if known is None or extent is None or integers.value_of(loop.lower) != 0:
            return False
        digits.append((known, extent))
    if integers.value_of(integers.without(place, *(loop.name for loop in loops))) != 0:
        return False
    for step, count in sorted(digits):
        if step != expected:
            return False
        expected *= count
    return wanted is not None and integers.value_of(wanted[1]) == expected


def _selected(node: Reduce, body: Select, ranges: Ranges) -> Expression | None:
    """Take a condition out of a reduction over threads, or use it as the reduction's end."""
    names = [loop.name for loop in node.loops]
    if not body.condition.depends_on(*names):
        sides = [replace(node, body=side) for side in (body.first, body.second)]
        return integers.selected(body.condition, *(_whole(side, ranges) or side for side in sides))
    test, loop = body.condition, node.loops[-1]
    is_bound = isinstance(test, Binary) and test.op == "<" and test.left == loop.symbol
    limit = integers.value_of(test.right) if isinstance(test, Binary) else None
    if is_bound and limit is not None and _is_start(body.second, node.op):
        shorter = replace(loop, upper=integers.constant(limit))
        return _whole(replace(node, loops=(*node.loops[:-1], shorter), body=body.first), ranges)
    return None


def _is_start(value: Expression, op: str) -> bool:
    """Whether a part of a reduction may start from a value that every part starts from."""
    if op in ("max", "min", "fmax", "fmin", "&", "|", "&&", "||"):
        return True
    known = integers.value_of(value)
    wanted = 1 if op == "*" else 0
    if known is not None:
        return known == wanted
    if isinstance(value, Num):
        digits = value.text.lower().rstrip("f")
        try:
            return float(digits) == wanted
        except ValueError:
            return False
    return value == number(wanted, value.type)


def has_parts(expression: Expression) -> bool:
    """Whether a thread's part of something is left in an expression."""
    return any(isinstance(node, Call) and node.function.startswith("%") for node in walk(expression))
