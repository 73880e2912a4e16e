"""Rows in registers: what several loops of a lane read is read once, where the row is short enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import Expression, Fold, Load, Loop, Sym, loads, walk
from kernelskill.algorithm.integers import constant, value_of
from kernelskill.algorithm.lowering.context import Context, KeptRows, step_symbol
from kernelskill.algorithm.lowering.hoisting import Accumulation, hoistable
from kernelskill.algorithm.lowering.packs import Packs, Run, packs_of_loads, place_in_pack
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import cuda_name, size_of

_MOST_BYTES = 512
"""Bytes of a thread's registers that hold rows: half of what a thread can have."""


@dataclass(frozen=True)
class _Pass:
    """One run along a row."""

    loop: Loop
    values: tuple[Expression, ...]
    turn: int
    """Passes of one turn may share a loop; those of a later turn need what an earlier one computes."""
    reads: frozenset[Load]
    """Loads that every step makes."""


def declare_kept(context: Context) -> None:
    """Write the registers and read the rows into them.

    Raises:
        IllegalMove: No element is read by several loops, or the registers are too many.
    """
    schedule = context.schedule
    if schedule.lanes == 1 or schedule.lanes_outer or schedule.splits or context.register_axes:
        raise IllegalMove("loops are not shared by neighbouring lanes")
    upper, found = _repeated(context)
    size = sum(size_of(load.kind) for load in found) * schedule.keep * schedule.lane_vector
    if size > _MOST_BYTES:
        raise IllegalMove(f"the rows need {size} bytes of a thread's registers, {_MOST_BYTES} are allowed")
    flag = context.names.fresh("kept")
    chunks, lanes = context.constant("kChunks", schedule.keep), context.constant("kLanes", schedule.lanes)
    width = schedule.lane_vector
    most = f"{chunks} * {lanes} * {width}" if width > 1 else f"{chunks} * {lanes}"
    tests = [f"{context.show(upper, 8)} <= {most}"]
    if width > 1:
        tests = [context.aligned_flag, f"{context.show(upper, 10)} % {width} == 0", *tests]
    arrays = tuple((load, context.names.fresh(f"{load.buffer}_row")) for load in found)
    context.out.line("// Rows that are short enough are read once and stay in registers from loop to loop.")
    context.out.line(f"const bool {flag} = {' && '.join(tests)};")
    for load, name in arrays:
        context.out.line(f"{_type(context, load)} {name}[{chunks}];")
    context.kept = KeptRows(flag, upper, arrays)
    step = context.names.fresh("step")
    with context.out.block(f"if ({flag})"), _chunks(context, Loop(step, constant(0), upper)) as first:
        for load, name in arrays:
            _fetch(context, load, f"{name}[{context.local('c')}]", first)


def _type(context: Context, load: Load) -> str:
    kind, width = cuda_name(load.kind), context.schedule.lane_vector
    return f"{context.pack}<{kind}, {width}>" if width > 1 else kind


def _fetch(context: Context, load: Load, target: str, first: str) -> None:
    placed = substitute(load, {step_symbol().name: Sym(first)})
    if context.schedule.lane_vector == 1:
        context.out.line(f"{target} = {context.show(placed)};")
        return
    run = Run(step_symbol().name, constant(0), context.schedule.lane_vector)
    place = place_in_pack(context, load.buffer, load.kind, load.index, run)
    assert place is not None
    packs = Packs(run, read={load: place})
    packs.note_alignment(context)
    pack = _type(context, load)
    element = packs.place_of(context, place[0], first)
    context.out.line(f"{target} = *reinterpret_cast<const {pack}*>(&{element});")


def _repeated(context: Context) -> tuple[Expression, list[Load]]:
    """Return the end of the loops and the loads, by step, that loops of different turns make.

    Raises:
        IllegalMove: There are none.
    """
    turns: dict[tuple[Expression, Load], set[int]] = {}
    certain: set[tuple[Expression, Load]] = set()
    axes = {axis.name for axis in context.algorithm.axes}
    for each in _passes(context.algorithm):
        upper = each.loop.upper
        fixed = not upper.depends_on(*axes) and not any(isinstance(node, Load) for node in walk(upper))
        if value_of(each.loop.lower) != 0 or not fixed:
            continue
        for load in dict.fromkeys(load for value in each.values for load in loads(value)):
            plain = _by_step(load, each.loop)
            if plain is None or not _fits(context, plain):
                continue
            turns.setdefault((upper, plain), set()).add(each.turn)
            if load in each.reads:
                certain.add((upper, plain))
    found = [key for key, seen in turns.items() if len(seen) > 1 and key in certain]
    if not found:
        raise IllegalMove("no two loops in sequence read the same row of a length that all rows share")
    first = found[0][0]
    return first, [load for upper, load in found if upper == first]


def _by_step(load: Load, loop: Loop) -> Load | None:
    """Return a load with the loop variable's place taken by the step; None where it doesn't move along."""
    if not load.index.depends_on(loop.name):
        return None
    changed = substitute(load, {loop.name: step_symbol()})
    return changed if isinstance(changed, Load) else None


def _fits(context: Context, load: Load) -> bool:
    """Whether a lane can read its elements: nothing moves but the step, and groups are neighbours."""
    axes = {axis.name for axis in context.algorithm.axes}
    known = axes | {p.name for p in context.algorithm.parameters} | {step_symbol().name}
    if load.symbols - known or any(isinstance(node, Load) for node in walk(load.index)):
        return False
    if context.schedule.lane_vector == 1:
        return True
    run = Run(step_symbol().name, constant(0), context.schedule.lane_vector)
    place = place_in_pack(context, load.buffer, load.kind, load.index, run)
    return place is not None and place[0].step == 1


def _passes(algorithm: Algorithm) -> Iterator[_Pass]:
    turns: dict[Accumulation, int] = {}
    for store in algorithm.stores:
        opened = frozenset(loop.name for loop in store.loops)
        for expression in store.expressions:
            for each in hoistable(expression, opened):
                inner = [turns[q] for q in hoistable(each) if q != each and q in turns]
                turns[each] = max(inner, default=-1) + 1
    for each, turn in turns.items():
        if len(each.loops) == 1:
            values = each.updates if isinstance(each, Fold) else (each.body,)
            reads = frozenset().union(*(certain_loads(value) for value in values))
            yield _Pass(each.loops[0], values, turn, reads)
    last = max(turns.values(), default=0) + 1
    for store in algorithm.stores:
        if len(store.loops) == 1:
            certain = certain_loads(store.value) if not store.guard else frozenset[Load]()
            yield _Pass(store.loops[0], (store.value,), last, certain)


def serves(context: Context, loops: Sequence[Loop], values: Sequence[Expression]) -> bool:
    """Whether a loop that is written now can take elements from registers."""
    kept = context.kept
    if kept is None or not context.shares_loops or len(loops) != 1:
        return False
    (loop,) = loops
    if value_of(loop.lower) != 0 or loop.upper != kept.upper:
        return False
    held = {load for load, _ in kept.arrays}
    return any(_by_step(load, loop) in held for value in values for load in loads(value))


@contextmanager
def kept_chunks(context: Context, loop: Loop) -> Iterator[str]:
    """Write the head of a loop over a lane's groups of steps; inside, kept loads are registers.

    Gives the name of the first step of a group. The point is known to be active inside.
    """
    kept = context.kept
    assert kept is not None
    before, active = dict(context.values), context.active
    with context.out.block(f"if ({kept.flag})"), _chunks(context, loop) as first:
        element = f".at[{context.local('j')}]" if context.schedule.lane_vector > 1 else ""
        for load, name in kept.arrays:
            own = substitute(load, {step_symbol().name: loop.symbol})
            context.values[own] = f"{name}[{context.local('c')}]{element}"
        context.active = ""
        yield first
        context.active = active
    context.values = before


@contextmanager
def _chunks(context: Context, loop: Loop) -> Iterator[str]:
    schedule, c = context.schedule, context.local("c")
    chunks, lanes = context.constant("kChunks", schedule.keep), context.constant("kLanes", schedule.lanes)
    with context.out.unrolled(f"for (int {c} = 0; {c} < {chunks}; ++{c})"):
        place = f"{c} * {lanes} + {context.lane}"
        wide = schedule.lane_vector > 1
        first = context.names.fresh(f"{loop.name}_first") if wide else loop.name
        text = f"({place}) * {schedule.lane_vector}" if wide else place
        context.out.line(f"const {context.index_type} {first} = {text};")
        tests = [*([context.active] if context.active else []), f"{first} < {context.show(loop.upper, 8)}"]
        with context.out.block(f"if ({' && '.join(tests)})"):
            yield first


def write_kept(
    context: Context,
    loop: Loop,
    values: Sequence[Expression],
    step: Callable[[], None],
    certain: Sequence[Expression] | None = None,
) -> None:
    """Write a loop whose steps take what they can from registers.

    Args:
        context: The lowering.
        loop: The loop.
        values: Everything that a step evaluates.
        step: Writes one step.
        certain: What every step evaluates, whatever its guards say; by default everything.
    """
    width, j = context.schedule.lane_vector, context.local("j")
    with kept_chunks(context, loop) as first:
        if width == 1:
            step()
            return
        run = Run(loop.name, loop.lower, width)
        packs = Packs(run, read=packs_of_loads(context, values if certain is None else certain, run))
        packs.note_alignment(context)
        head = f"for (int {j} = 0; {j} < {width}; ++{j})"
        with packs.reading(context, first), context.out.unrolled(head):
            if loop.name in context.printed_symbols(values):
                context.out.line(f"const {context.index_type} {loop.name} = {first} + {j};")
            step()
