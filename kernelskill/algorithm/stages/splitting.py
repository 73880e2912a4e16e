"""Split an algorithm into stages: parts of its long reductions, their combination, what is made of the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kernelskill.algorithm.expression import Call, Expression, Load, Loop, Num, Reduce, Sym, walk
from kernelskill.algorithm.lowering.hoisting import ranges_of
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import Algorithm, Axis, IllegalMove, Parameter, Store
from kernelskill.algorithm.rewriting import replace_outermost
from kernelskill.algorithm.schedule import AxisPlan, Schedule
from kernelskill.algorithm.stages.groups import Group, count, groups_of, linear
from kernelskill.algorithm.stages.model import Stage, Stages, Temporary
from kernelskill.algorithm.stages.points import PointShape, point_stages
from kernelskill.algorithm.stages.sharing import SharedGroup, Width, cut_loops
from kernelskill.algorithm.types import cuda_name

_COMBINING = 128
"""Threads that combine the parts of one result."""
_MOST = 1024
"""Threads that combine those of neighbouring results."""


def split_over_blocks(algorithm: Algorithm, width: Width, shape: PointShape) -> Stages:
    """Return the stages that compute what an algorithm does, its long reductions shared by blocks.

    Raises:
        IllegalMove: It has none, or its stores would no longer follow what they need.
    """
    _check_stores(algorithm)
    return _Split(algorithm, width).stages(shape)


def _check_stores(algorithm: Algorithm) -> None:
    buffers = [store.buffer for store in algorithm.stores]
    if any(store.mode != "=" for store in algorithm.stores):
        raise IllegalMove("results are added to memory by atomics")
    if len(set(buffers)) != len(buffers):
        raise IllegalMove("a buffer is stored to in several places")


@dataclass
class _Shared:
    """What a result, or something computed from results alone, is called in memory."""

    load: Load
    value: Expression
    """In terms of loads of results."""
    group: int
    """The last group that it needs."""


@dataclass
class _Split:
    algorithm: Algorithm
    width: Width
    names: Names = field(init=False)
    groups: tuple[SharedGroup, ...] = field(init=False, default=())
    results: dict[Expression, Load] = field(init=False, default_factory=dict)
    """Reduction -> element that holds its result."""
    derived: dict[Expression, _Shared] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        algorithm = self.algorithm
        taken = {parameter.name for parameter in algorithm.parameters} | set(algorithm.ranges)
        taken |= {name for e in algorithm.expressions for node in walk(e) for name in _mentioned(node)}
        self.names = Names(taken)
        hints = dict(algorithm.names)
        known: dict[tuple[object, ...], SharedGroup] = {}
        shared = []
        for group in groups_of(algorithm):
            place = linear(group.axes)
            for each in group.originals:
                base = self.names.fresh(f"{hints.get(each, 'total')}_result")
                self.results[each] = Load(base, place, each.kind)
            shared.append(self._shared(group, known))
        self.groups = tuple(shared)

    def _shared(self, group: Group, known: dict[tuple[object, ...], SharedGroup]) -> SharedGroup:
        """Cut the loops of a group, as those of an earlier one with the same ranges; its memory serves again."""
        first = group.originals[0]
        kinds = tuple(each.kind for each in group.originals)
        key = (ranges_of(replace(first, loops=group.loops)), group.axes, group.by_columns)
        if (*key, kinds) in known:
            earlier = known[(*key, kinds)]
            return replace(earlier, group=group, loops=_renamed_loops(earlier, group))
        if key in known:
            earlier = known[key]
            partials = tuple(self.names.fresh("partial") for _ in kinds)
            return replace(earlier, group=group, loops=_renamed_loops(earlier, group), partials=partials)
        sharing, axes, loops = cut_loops(group, self.width, self.names)
        partials = tuple(self.names.fresh("partial") for _ in kinds)
        made = SharedGroup(group, sharing, axes, loops, partials, self.names.fresh("part"))
        known[key] = known[(*key, kinds)] = made
        return made

    # expressions

    def lowered(self, expression: Expression) -> Expression:
        """Return an expression with results read from memory."""
        return replace_outermost(expression, self.results.get)

    def _group_of(self, load: Load) -> int:
        buffers = {self.results[each].buffer for each in self.results}
        assert load.buffer in buffers
        return next(
            number
            for number, shared in enumerate(self.groups)
            if any(self.results[each] == load for each in shared.group.originals)
        )

    def consumed(self, expression: Expression) -> Expression:
        """Return an expression with what depends on results alone read from memory, computed once a result."""
        lowered = self.lowered(expression)
        return replace_outermost(lowered, self._derived)

    def _derived(self, node: Expression) -> Expression | None:
        if node.type not in ("float", "double") or isinstance(node, Load | Sym | Num | Reduce):
            return None
        loads = [each for each in walk(node) if isinstance(each, Load)]
        results = set(self.results.values())
        if not loads or any(load not in results for load in loads):
            return None
        groups = sorted({self._group_of(load) for load in loads})
        axes = self.groups[groups[-1]].group.axes
        moving = node.symbols & set(self.algorithm.ranges)
        if any(self.groups[each].group.axes != axes for each in groups) or moving - {a.name for a in axes}:
            return None
        if node not in self.derived:
            hints = {self.lowered(expression): name for expression, name in self.algorithm.names}
            name = self.names.fresh(f"{hints.get(node, 'value')}_result")
            self.derived[node] = _Shared(Load(name, linear(axes), node.type), node, groups[-1])
        return self.derived[node].load

    # stages

    def stages(self, shape: PointShape) -> Stages:
        """Return all stages."""
        bodies = [self._members(shared) for shared in self.groups]
        alone, rest = self._by_place()
        points = [self._consuming(store) for store in rest]
        finals = point_stages(self._algorithm("apply", self.algorithm.axes, points), shape)
        read = {load.buffer for root in _roots(bodies, finals) for load in _loads(root)}
        made: list[Stage] = []
        for number, (shared, members) in enumerate(zip(self.groups, bodies, strict=True)):
            made.append(self._parts(number, shared, members))
            needed = read | {load.buffer for each in self._later(number, alone) for load in _loads(each)}
            absorbed = alone if number == len(self.groups) - 1 else ()
            made.append(self._combination(number, members, needed, absorbed))
        sharings = tuple(dict.fromkeys(shared.sharing for shared in self.groups))
        stages = tuple(self._finished(stage) for stage in (*made, *finals))
        return Stages(stages, sharings, self._temporaries(stages))

    def _members(self, shared: SharedGroup) -> tuple[Reduce, ...]:
        """Return the reductions of a group over its own loops, what they need read from memory."""
        group = shared.group
        return tuple(
            replace(each, loops=group.loops, body=self.consumed(body), initial=self.lowered(each.initial))
            for each, body in zip(group.originals, group.bodies, strict=True)
        )

    def _by_place(self) -> tuple[tuple[Store, ...], tuple[Store, ...]]:
        """Return the stores that the last combination makes, and the others."""
        last = self.groups[-1].group
        stores = self.algorithm.stores
        if {axis.name for axis in last.axes} != {axis.name for axis in self.algorithm.axes}:
            return (), stores
        alone = [store for store in stores if not store.loops]
        rest = tuple(store for store in stores if store.loops)
        read = {load.buffer for store in rest for e in store.expressions for load in _loads(self.lowered(e))}
        if any(store.buffer in read for store in alone):
            return (), stores
        return tuple(alone), rest

    def _consuming(self, store: Store) -> Store:
        return replace(
            store,
            index=self.consumed(store.index),
            value=self.consumed(store.value),
            guard=tuple(self.consumed(each) for each in store.guard),
        )

    def _parts(self, number: int, shared: SharedGroup, members: Sequence[Reduce]) -> Stage:
        stores = shared.part_stores(members)
        algorithm = self._algorithm(f"parts{_suffix(number)}", shared.axes, stores)
        lanes = self.width.lanes(shared.group)
        if shared.group.by_columns:
            last = shared.axes[-1].name
            plans = tuple(AxisPlan(a.name, self.width.columns if a.name == last else 1) for a in shared.axes)
            schedule = Schedule(axes=plans, lanes=lanes, lanes_outer=True)
        else:
            plans = tuple(AxisPlan(axis.name) for axis in shared.axes)
            schedule = Schedule(axes=plans, lanes=lanes, lane_vector=4)
        return Stage(algorithm, schedule, "partial results, several blocks for each")

    def _combination(
        self,
        number: int,
        members: Sequence[Reduce],
        needed: set[str],
        absorbed: Sequence[Store],
    ) -> Stage:
        shared = self.groups[number]
        own: dict[Expression, Expression] = {
            self.results[each]: shared.combined(position, member)
            for position, (each, member) in enumerate(zip(shared.group.originals, members, strict=True))
        }

        known = {each.value: each.load for each in self.derived.values() if each.group < number}

        def combine(expression: Expression) -> Expression:
            return replace_outermost(self.lowered(expression), lambda node: own.get(node, known.get(node)))

        stores = [
            Store(load.buffer, load.index, own[load], kind=load.kind)
            for load in (self.results[each] for each in shared.group.originals)
            if load.buffer in needed
        ]
        stores += [
            Store(each.load.buffer, each.load.index, combine(each.value), kind=each.load.kind)
            for each in self.derived.values()
            if each.group == number
        ]
        stores += [
            replace(s, index=combine(s.index), value=combine(s.value), guard=tuple(map(combine, s.guard)))
            for s in absorbed
        ]
        axes = shared.group.axes
        algorithm = self._algorithm(f"combine{_suffix(number)}", axes, stores)
        if shared.group.by_columns:
            columns, lanes = self.width.columns, _MOST // self.width.columns
            plans = tuple(AxisPlan(a.name, columns if a == axes[-1] else 1) for a in axes)
            schedule = Schedule(axes=plans, lanes=lanes, lanes_outer=True)
        else:
            schedule = Schedule(axes=tuple(AxisPlan(axis.name) for axis in axes), lanes=_COMBINING)
        return Stage(algorithm, schedule, "parts combined, always in the same order")

    def _later(self, number: int, alone: Sequence[Store]) -> Iterator[Expression]:
        """Yield what later combinations compute from results of earlier groups."""
        for each in self.derived.values():
            if each.group > number:
                yield each.value
        known = {each.value: each.load for each in self.derived.values()}
        last = len(self.groups) - 1
        if number < last:
            for shared in self.groups[number + 1 :]:
                yield from (self.lowered(each.initial) for each in shared.group.originals)
            for store in alone:
                for expression in store.expressions:
                    yield replace_outermost(self.lowered(expression), known.get)

    def _algorithm(self, name: str, axes: Sequence[Axis], stores: Iterable[Store]) -> Algorithm:
        hints = tuple((self.lowered(expression), given) for expression, given in self.algorithm.names)
        return replace(
            self.algorithm,
            kernel=f"{self.algorithm.kernel}_{name}",
            axes=tuple(axes),
            stores=tuple(stores),
            names=hints,
            notes=(),
            joined=False,
        )

    def _finished(self, stage: Stage) -> Stage:
        """Return a stage whose algorithm has the parameters that it uses, what the launcher makes among them."""
        algorithm = stage.algorithm
        used = _used(algorithm)
        own = [parameter for parameter in algorithm.parameters if parameter.name in used]
        written = {store.buffer for store in algorithm.stores}
        for name, kind in self._buffers().items():
            if name in used:
                const = "" if name in written else "const "
                own.append(
                    Parameter(f"{const}{cuda_name(kind)} *{name}", name, kind, True, name not in written)
                )
        for symbol in self._counts():
            if symbol.name in used:
                own.append(
                    Parameter(f"{cuda_name(symbol.kind)} {symbol.name}", symbol.name, symbol.kind, False)
                )
        return replace(stage, algorithm=replace(algorithm, parameters=tuple(own)))

    def _buffers(self) -> dict[str, str]:
        found = {
            buffer: each.kind
            for shared in self.groups
            for buffer, each in zip(shared.partials, shared.group.originals, strict=True)
        }
        found |= {load.buffer: load.kind for load in self.results.values()}
        return found | {each.load.buffer: each.load.kind for each in self.derived.values()}

    def _counts(self) -> tuple[Sym, ...]:
        """Return the parts and lengths of stretches, as the loops of parts name them."""
        found: dict[str, Sym] = {}
        for shared in self.groups:
            named = {name for cut in shared.sharing.cuts for name in (cut.parts, cut.steps)}
            bounds = [b for loop in shared.loops for b in (loop.lower, loop.upper)]
            bounds += [axis.upper for axis in shared.part_axes]
            for node in (node for bound in bounds for node in walk(bound)):
                if isinstance(node, Sym) and node.name in named:
                    found.setdefault(node.name, node)
        return tuple(found.values())

    def _temporaries(self, stages: Sequence[Stage]) -> tuple[Temporary, ...]:
        sizes: dict[str, tuple[str, Expression]] = {}
        for shared in self.groups:
            for buffer, each in zip(shared.partials, shared.group.originals, strict=True):
                sizes[buffer] = (each.kind, shared.size)
            for each in shared.group.originals:
                sizes[self.results[each].buffer] = (each.kind, count(shared.group.axes))
        for made in self.derived.values():
            sizes[made.load.buffer] = (made.load.kind, count(self.groups[made.group].group.axes))
        used = set().union(*(_used(stage.algorithm) for stage in stages))
        return tuple(Temporary(name, kind, size) for name, (kind, size) in sizes.items() if name in used)


def _renamed_loops(earlier: SharedGroup, group: Group) -> tuple[Loop, ...]:
    return tuple(
        replace(loop, name=own.name, kind=own.kind)
        for loop, own in zip(earlier.loops, group.loops, strict=True)
    )


def _suffix(number: int) -> str:
    return f"_{number + 1}" if number else ""


def _mentioned(node: Expression) -> tuple[str, ...]:
    """Return the names that the text of a node holds beside its symbols."""
    if isinstance(node, Call):
        return (node.function,)
    return tuple(re.findall(r"[A-Za-z_]\w*", node.text)) if isinstance(node, Num) else ()


def _loads(expression: Expression) -> Iterator[Load]:
    return (node for node in walk(expression) if isinstance(node, Load))


def _roots(bodies: Iterable[Sequence[Reduce]], finals: Iterable[Stage]) -> Iterator[Expression]:
    for members in bodies:
        yield from members
    for stage in finals:
        yield from stage.algorithm.expressions


def _used(algorithm: Algorithm) -> set[str]:
    """Return the names of parameters that an algorithm needs."""
    bounds = [bound for axis in algorithm.axes for bound in (axis.lower, axis.upper)]
    nodes = [node for root in (*algorithm.expressions, *bounds) for node in walk(root)]
    found = {node.name for node in nodes if isinstance(node, Sym)}
    found |= {node.buffer for node in nodes if isinstance(node, Load)}
    return found | {store.buffer for store in algorithm.stores}
