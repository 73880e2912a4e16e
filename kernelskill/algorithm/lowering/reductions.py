"""Loops that accumulate: reductions and folds of one kernel, tiled, staged or shared by lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import (
    Expression,
    Fold,
    Load,
    Loop,
    Reduce,
    Select,
    Sym,
    walk,
)
from kernelskill.algorithm.integers import compared, value_of
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.fill import zero_of
from kernelskill.algorithm.lowering.hoisting import Accumulation, can_share, hoistable, ranges_of, renamed
from kernelskill.algorithm.lowering.holding import guarded, hold_load, hold_records, ordered, unheld_loads
from kernelskill.algorithm.lowering.invariants import hold_invariants
from kernelskill.algorithm.lowering.kept import serves, write_kept
from kernelskill.algorithm.lowering.lanes import (
    combine_lanes,
    combine_rows,
    has_start,
    neutral_of,
    pick_lanes,
)
from kernelskill.algorithm.lowering.loop_heads import is_short, open_loop
from kernelskill.algorithm.lowering.packs import Packs, Run, packs_of_loads, wide_steps
from kernelskill.algorithm.lowering.steps import Member, body_of, state_name, take_in
from kernelskill.algorithm.lowering.tile_loop import TileLoop
from kernelskill.algorithm.lowering.widths import widest
from kernelskill.algorithm.lowering.zeros import is_zero, vanishes
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.picks import as_pick
from kernelskill.algorithm.types import cuda_name


def lower_reductions(
    context: Context, expressions: Iterable[Expression], bound: frozenset[str] = frozenset()
) -> None:
    """Write the loops that compute every hoistable reduction; afterwards `context.values` holds their names.

    Reductions over equal ranges that do not need one another share their loops. Those that depend on
    `bound`, loops that are opened later, are left.
    """
    wanted = list(dict.fromkeys(r for each in expressions for r in hoistable(each, bound)))
    while True:
        missing = [r for r in wanted if r not in context.values]
        if not missing:
            return
        ready = [r for r in missing if all(q in context.values for q in hoistable(r) if q != r)]
        first = ready[0]
        group = [r for r in ready if ranges_of(r) == ranges_of(first) and can_share(first, r)]
        _Group(context, group).write()


class _Group:
    def __init__(self, context: Context, reductions: Sequence[Accumulation]) -> None:
        self._context = context
        first = reductions[0].loops
        self._loops = tuple(widest(e, (r.loops[n] for r in reductions)) for n, e in enumerate(first))
        self._members = [self._member(each) for each in self._unique(reductions)]
        self._accumulated = reductions
        self._starts: dict[str, str] = {}
        bounds = [bound for loop in self._loops for bound in (loop.lower, loop.upper)]
        if context.dims_of(*bounds):
            raise IllegalMove("the length of a loop differs from point to point of a thread")
        tiled = self._loops[0] if context.schedule.loop(self._loops[0].name).depth else None
        self._tiled: Loop | None = tiled
        self._tiles = [tile for tile in context.tiles if tiled is not None and tile.loop == tiled.name]

    def _unique(self, reductions: Sequence[Accumulation]) -> list[Accumulation]:
        """Return one fold of those that differ only in the state they are the value of."""
        kept: dict[Accumulation, None] = {}
        for each in reductions:
            kept[replace(each, index=0) if isinstance(each, Fold) else each] = None
        return list(kept)

    def _member(self, reduction: Accumulation) -> Member:
        table: dict[str, Expression] = {
            mine.name: Sym(loop.name) for mine, loop in zip(reduction.loops, self._loops, strict=True)
        }
        own = replace(renamed(reduction, table), loops=self._loops)
        hints = dict(self._context.algorithm.names)
        base = hints.get(
            reduction, "sum" if isinstance(reduction, Reduce) and reduction.op == "+" else "result"
        )
        if isinstance(reduction, Fold):
            base = reduction.states[0].name
        return Member(reduction, own, self._context.names.fresh(base), self._context.dims_of(own))

    def write(self) -> None:
        for member in self._members:
            self._declare(member)
        ends = self._ends()
        held = self._invariants()
        if self._tiled is not None:
            self._write_tiled(self._tiled)
        else:
            self._write_plain()
        for known in (*held, *ends):
            del self._context.values[known]
        for member in self._members:
            self._finish(member)
            self._publish(member)

    def _publish(self, member: Member) -> None:
        context = self._context
        if isinstance(member.original, Fold):
            for reduction in self._accumulated:
                if isinstance(reduction, Fold) and replace(reduction, index=0) == member.original:
                    context.values[reduction] = state_name(context, member, reduction.index)
            for number in range(len(member.original.states)):
                whole = replace(member.original, index=number)
                context.values.setdefault(whole, state_name(context, member, number))
        else:
            context.values[member.original] = member.name + member.subscript

    def _ends(self) -> list[Expression]:
        """Name where loops end that take one stretch of many: it is chosen, not known at once."""
        context = self._context
        held: list[Expression] = []
        for loop in self._loops:
            own = {each.name for each in self._loops} | {n.name for n in context.values if isinstance(n, Sym)}
            if not isinstance(loop.upper, Select) or loop.upper.depends_on(*own):
                continue
            if not any(isinstance(node, Load) for node in walk(loop.upper)):
                name = context.names.fresh(f"{loop.name}_end")
                context.out.line(f"const {context.index_type} {name} = {context.show(loop.upper)};")
                context.values[loop.upper] = name
                held.append(loop.upper)
        return held

    # accumulators

    def _declare(self, member: Member) -> None:
        reduction = member.renamed
        if isinstance(reduction, Fold):
            for number, (state, initial) in enumerate(zip(reduction.states, reduction.initials, strict=True)):
                self._declare_one(member, state_name(self._context, member, number), state.type, initial)
            return
        self._declare_one(member, member.name + member.subscript, reduction.kind, self._start(reduction))
        if self._context.shares_loops and has_start(reduction):
            # Read before any lane writes: the start may be the element that the first lane stores to.
            start = self._context.names.fresh("start") + member.subscript
            self._declare_one(member, start, reduction.kind, reduction.initial)
            self._starts[member.name] = start

    def _start(self, reduction: Reduce) -> Expression:
        """Return what an accumulator starts with: a lane of several must not count the start twice."""
        if not self._context.shares_loops:
            return reduction.initial
        return neutral_of(reduction)

    def _declare_one(self, member: Member, text: str, kind: str, initial: Expression) -> None:
        context, type_name = self._context, cuda_name(kind)
        name = text.partition("[")[0]
        if not member.dims:
            value = zero_of(kind) if is_zero(initial) else context.show(initial)
            if context.active and unheld_loads(context, [initial]):
                value = f"{context.active} ? {value} : {zero_of(kind)}"
            context.out.line(f"{type_name} {name} = {value};")
            return
        sizes = "".join(f"[{dim.points}]" for dim in member.dims)
        if is_zero(initial):
            context.out.line(f"{type_name} {name}{sizes} = {{}};")
            return
        certain = unheld_loads(context, [initial])
        # Lanes combine the values of all points, those out of range among them.
        context.out.line(f"{type_name} {name}{sizes}{' = {}' if certain and context.shares_loops else ''};")
        with (
            context.over_points(member.dims, [initial]),
            guarded(context, member.dims if certain else (), bool(certain), [initial]),
        ):
            context.out.line(f"{text} = {context.show(initial)};")

    # loops

    def _write_plain(self) -> None:
        context = self._context
        bodies = [body for member in self._members for body in body_of(member)]
        if serves(context, self._loops, bodies):
            write_kept(context, self._loops[0], bodies, self._step)
            with context.out.block("else"):
                self._write_shared()
            return
        self._write_shared()

    def _write_shared(self) -> None:
        context = self._context
        if context.shares_loops and context.schedule.lane_vector > 1 and self._write_wide():
            return
        with ExitStack() as stack:
            for number, loop in enumerate(self._loops):
                is_shared = context.shares_loops and number == len(self._loops) - 1
                unroll = context.schedule.loop(loop.name).unroll
                if unroll:
                    context.out.line(f"#pragma unroll {unroll}")
                elif is_shared and context.schedule.lanes_outer:
                    # Few threads walk along each column: they need several reads under way.
                    context.out.line("#pragma unroll 8")
                elif context.is_inner and is_short(loop):
                    # Neighbouring points of a thread read the same elements in different steps.
                    context.out.line("#pragma unroll")
                stack.enter_context(open_loop(context, loop, shared=is_shared))
            self._step()

    def _write_wide(self) -> bool:
        """Write the loops with lanes that take neighbouring steps together; False where nothing is wide."""
        context, loop = self._context, self._loops[-1]
        run = Run(loop.name, loop.lower, context.schedule.lane_vector)
        bodies = [body for member in self._members for body in body_of(member)]
        packs = Packs(run, read=packs_of_loads(context, bodies, run))
        if not packs.read or context.register_axes:
            return False
        packs.note_alignment(context)
        j = context.local("j")
        with ExitStack() as stack:
            for outer in self._loops[:-1]:
                stack.enter_context(open_loop(context, outer))
            with wide_steps(context, loop, run.width) as steps:
                head = f"for (int {j} = 0; {j} < {run.width}; ++{j})"
                with steps.whole(), packs.reading(context, steps.first), context.out.unrolled(head):
                    if loop.name in context.printed_symbols(bodies):
                        context.out.line(f"const {context.index_type} {loop.name} = {steps.first} + {j};")
                    self._step()
                with steps.single():
                    self._step()
        return True

    def _write_tiled(self, loop: Loop) -> None:
        """Write the loop over tiles of staged operands."""
        context = self._context
        depth = context.constant(
            f"k{loop.name[:1].upper()}{loop.name[1:]}Tile", context.schedule.loop(loop.name).depth
        )
        start = context.names.fresh(f"{loop.name}_start")
        pipeline = TileLoop(context, loop, self._tiles, start, depth)
        pipeline.write(lambda: self._tile_steps(loop, start, depth))

    def _tile_steps(self, loop: Loop, start: str, depth: str) -> None:
        """Write the steps within one tile."""
        context = self._context
        step = context.names.fresh(f"{loop.name}_i")
        context.step_names[loop.name] = step
        bodies = [body_of(member) for member in self._members]
        is_zero_filled = all(vanishes(context, member.renamed, self._tiles) for member in self._members)
        bound = depth
        if not is_zero_filled:
            bound = context.names.fresh("steps")
            end = context.show(loop.upper)
            context.out.line(f"const int {bound} = min({depth}, static_cast<int>({end} - {start}));")
        with ExitStack() as stack:
            head = f"for (int {step} = 0; {step} < {bound}; ++{step})"
            context.out.line("#pragma unroll" if is_zero_filled else "#pragma unroll 8")
            stack.enter_context(context.out.block(head))
            if loop.name in context.printed_symbols(e for body in bodies for e in body):
                context.out.line(f"const {context.index_type} {loop.name} = {start} + {step};")
            for inner in self._loops[1:]:
                context.step_names[inner.name] = f"({inner.name} - {context.show(inner.lower)})"
                if value_of(inner.lower) == 0:
                    context.step_names[inner.name] = inner.name
                stack.enter_context(open_loop(context, inner))
            self._step()

    # one step

    def _step(self) -> None:
        context = self._context
        for loop in self._loops:
            if loop is not self._tiled and loop.name not in context.step_names:
                low = context.show(loop.lower)
                context.step_names[loop.name] = loop.name if low == "0" else f"({loop.name} - {low})"
        held = self._fragments()
        for dims in dict.fromkeys(member.dims for member in self._members):
            self._accumulate(dims, [member for member in self._members if member.dims == dims])
        for load in held:
            del context.values[load]

    def _invariants(self) -> list[Expression]:
        """Write what the points read in every step into registers before the loops."""
        context = self._context
        bodies = [body for member in self._members for body in body_of(member)]
        if not context.register_axes:
            return hold_invariants(context, bodies, self._loops, sorted(self._states(bodies)))
        bound = {loop.name for loop in self._loops} | self._states(bodies)
        bound |= {loop.name for body in bodies for node in walk(body) for loop in getattr(node, "loops", ())}
        held: list[Expression] = []
        first = self._loops[0]
        runs = compared("<", first.lower, first.upper)
        tests = [] if value_of(runs) == 1 else [context.show(runs, 3)]
        for load in dict.fromkeys(load for body in bodies for load in ordered(certain_loads(body))):
            if load.depends_on(*bound) or context.leaf(load) is not None:
                continue
            dims = context.dims_of(load)
            name = context.names.fresh(f"{load.buffer}_own")
            hold_load(context, load, name, dims, tests)
            context.values[load] = name + "".join(f"[{dim.point}]" for dim in dims)
            held.append(load)
        return held

    def _states(self, bodies: Sequence[Expression]) -> set[str]:
        """Return what changes from step to step beside the loops: states of recurrences, each point's own."""
        every = [member.renamed for member in self._members]
        folds = [node for root in (*every, *bodies) for node in walk(root) if isinstance(node, Fold)]
        return {state.name for fold in folds for state in fold.states}

    def _fragments(self) -> list[Load]:
        """Write loads that several points share into registers, each element once."""
        context = self._context
        every = tuple(dict.fromkeys(dim for member in self._members for dim in member.dims))
        held: list[Load] = []
        bodies = [body for member in self._members for body in body_of(member)]
        bound = {loop.name for body in bodies for node in walk(body) for loop in getattr(node, "loops", ())}
        bound |= self._states(bodies)
        loads = dict.fromkeys(load for body in bodies for load in ordered(certain_loads(body)))
        shared = [each for each in loads if every and not each.depends_on(*bound)]
        held += hold_records(context, [each for each in shared if not context.dims_of(each)])
        for load in shared:
            dims = context.dims_of(load)
            if dims == every or load in context.values:
                continue
            name = context.names.fresh(f"{load.buffer}_value" if not dims else f"{load.buffer}_values")
            text = name + "".join(f"[{dim.point}]" for dim in dims)
            hold_load(context, load, name, dims)
            context.values[load] = text
            held.append(load)
        return held

    def _accumulate(self, dims: tuple[AxisText, ...], members: Sequence[Member]) -> None:
        context = self._context
        bodies = [body for member in members for body in body_of(member)]
        for member in members:
            if isinstance(member.renamed, Fold):
                for number, state in enumerate(member.renamed.states):
                    context.values[state] = state_name(context, member, number)
        needs_guard = bool(unheld_loads(context, bodies))
        with (
            context.over_points(dims, bodies),
            guarded(context, dims if needs_guard else (), needs_guard, bodies),
        ):
            before, around = dict(context.values), context.open_axes
            context.open_axes |= {dim.axis.name for dim in dims}
            context.depth += 1
            lower_reductions(context, bodies)
            context.depth -= 1
            context.open_axes = around
            take_in(context, members)
            context.values = before
        for member in members:
            if isinstance(member.renamed, Fold):
                for state in member.renamed.states:
                    context.values.pop(state, None)

    def _finish(self, member: Member) -> None:
        """Combine the partial results of lanes."""
        context, reduction = self._context, member.renamed
        if not context.shares_loops:
            return
        if isinstance(reduction, Fold):
            pick = as_pick(reduction)
            if pick is None or member.dims:
                raise IllegalMove("a loop carries more than one associative accumulator")
            pick_lanes(
                context,
                reduction,
                pick,
                [state_name(context, member, n) for n in range(len(reduction.states))],
            )
            return
        if len(member.dims) == 1 and combine_rows(context, reduction, member.name, member.dims[0].points):
            return
        with context.over_points(member.dims, [reduction.initial]):
            target = member.name + member.subscript
            start = self._starts.get(member.name) or context.show(reduction.initial, 9)
            combine_lanes(context, reduction, target, start)
