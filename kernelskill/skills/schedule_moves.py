"""Moves on the schedule of a lifted kernel, offered as skills.

A step on a kernel that was emitted before puts the user's text back, lifts it, makes the earlier moves
again and then its own. So moves compose however they were found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from kernelskill.algorithm.emission import restored, rewrite_kernel
from kernelskill.algorithm.expression import Load, walk
from kernelskill.algorithm.extents import extent_of
from kernelskill.algorithm.lifting import Lifted, lift_kernel
from kernelskill.algorithm.lifting.host import HOST
from kernelskill.algorithm.lifting.iteration import ACCUMULATED
from kernelskill.algorithm.model import CannotLift, IllegalMove, Parameter
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES, REORDERING
from kernelskill.algorithm.schedule import Schedule
from kernelskill.algorithm.usual import with_usual
from kernelskill.schema.candidate import Edit, Replacement, Scheduled, ScheduleMove
from kernelskill.schema.proposal import SkillParameter, needs
from kernelskill.schema.task import Promise
from kernelskill.skills.parsed_files import parsed
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.signature import restricted_parameters
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class LiftedState:
    """A kernel as it was lifted, with the moves made since."""

    unit: SourceUnit
    """The file with the user's own kernel."""
    lifted: Lifted
    moves: tuple[ScheduleMove, ...]
    replacements: tuple[Replacement, ...]
    """What stands in the candidate instead of the user's text; empty before the first move."""
    plan: Plan


Sites = Callable[[SourceUnit, KernelDef, SkillContext], list[Site]]
Rewriting = Callable[[SourceUnit, Site, Mapping[str, str], SkillContext], Rewrite]


def move_skill(move: str) -> tuple[Sites, Rewriting]:
    """Return the two functions of a `transform.py` that makes one move.

    Raises:
        KeyError: There is no such move.
    """
    if move not in MOVES:
        raise KeyError(move)
    return partial(move_sites, move), partial(move_rewrite, move)


def move_sites(move: str, unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Return the one site of a move on a kernel.

    Raises:
        SkillRefused: The kernel cannot be lifted, or the move does not apply.
    """
    state = lifted_state(unit, kernel, context)
    if any(earlier.move == move for earlier in state.moves):
        raise SkillRefused("the move was made already")
    _check_order(state, move)
    _to_hold_apart(state, context)
    try:
        options = MOVES[move].options(state.plan)
    except IllegalMove as refused:
        raise SkillRefused(refused.reason) from refused
    parameters = tuple(SkillParameter(name=o.name, values=o.values, meaning=o.meaning) for o in options)
    made = ", ".join(earlier.move for earlier in state.moves)
    reason = f"the kernel is read as an algorithm{f' (scheduled so far: {made})' if made else ''}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=parameters)]


def move_rewrite(
    move: str, unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext
) -> Rewrite:
    """Return the edits that emit the kernel with one more move.

    Raises:
        SkillRefused: The move does not apply with these values.
    """
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    state = lifted_state(unit, kernel, context)
    _check_order(state, move)
    apart = _to_hold_apart(state, context)
    step = ScheduleMove(move=move, values=tuple(sorted(parameters.items())))
    try:
        plan = MOVES[move].apply(state.plan, parameters)
        rewritten = rewrite_kernel(state.unit, state.lifted, plan, apart)
    except IllegalMove as refused:
        raise SkillRefused(refused.reason) from refused
    edits = _edits(unit, state, rewritten.replacements)
    if plan.stages is not None:
        # The kernels of the stages are kernels like any others: each is read and scheduled by itself.
        return Rewrite(edits=edits, notes=plan.algorithm.notes)
    scheduled = Scheduled(
        path=unit.path,
        kernel=site.kernel,
        moves=(*state.moves, step),
        replacements=rewritten.replacements,
    )
    return Rewrite(edits=edits, notes=plan.algorithm.notes, scheduled=scheduled)


def _check_order(state: LiftedState, move: str) -> None:
    """Refuse an exact move on a kernel that cannot be read without reordering its sums."""
    if state.lifted.algorithm.reorders and not state.moves and move not in REORDERING:
        raise SkillRefused("reading the kernel takes sums of floats in another order")


def _to_hold_apart(state: LiftedState, context: SkillContext) -> tuple[tuple[str, str], ...]:
    """Return the pairs of arrays that the launcher has to find apart before it runs what is emitted.

    A point that reads, computes and writes one element may overlap others only in a race. One that
    writes several, or whose threads wait for one another, has an order of its own: there what is written
    must not overlap what is read, by a promise, `__restrict__`, the types or a test.

    Raises:
        SkillRefused: Some may overlap, and it is not known how far the accesses to them reach.
    """
    algorithm = state.lifted.algorithm
    plain = len(algorithm.stores) == 1 and not algorithm.stores[0].loops
    in_memory = any(note.endswith(ACCUMULATED) for note in algorithm.notes)
    if (plain and not algorithm.joined and not in_memory) or context.promises(Promise.NO_ALIAS):
        return ()
    read = {node.buffer for e in algorithm.expressions for node in walk(e) if isinstance(node, Load)}
    promised = restricted_parameters(state.unit, state.lifted.launch.function)
    free = {name for name, argument in state.lifted.arguments if argument.strip() not in promised}
    pairs = {
        (store.buffer, buffer): None
        for store in algorithm.stores
        for buffer in sorted(read - {store.buffer})
        if {store.buffer, buffer} <= free
        and _may_overlap(algorithm.parameter(buffer), algorithm.parameter(store.buffer))
    }
    for written, buffer in pairs:
        try:
            extent_of(algorithm, written)
            extent_of(algorithm, buffer)
        except IllegalMove as unknown:
            raise SkillRefused(
                f"{written} may overlap {buffer}, which is read again after a part was written;"
                f" {needs(Promise.NO_ALIAS)} or __restrict__ (no test at the launch: {unknown.reason})"
            ) from unknown
    return tuple(pairs)


def _may_overlap(first: Parameter, second: Parameter) -> bool:
    if first.is_restrict or second.is_restrict:
        return False
    bytes_of_anything = ("char", "unsigned char")
    return first.kind == second.kind or first.kind in bytes_of_anything or second.kind in bytes_of_anything


def _edits(unit: SourceUnit, state: LiftedState, fresh: Sequence[Replacement]) -> tuple[Edit, ...]:
    """Return the edits from what stands in the file now to what was emitted."""
    present = [r.emitted for r in state.replacements] or [r.original for r in fresh]
    edits, position = [], 0
    for old, new in zip(present, fresh, strict=True):
        start = unit.data.index(old.encode(), position)
        position = start + len(old.encode())
        edits.append(Edit(path=unit.path, start=start, end=position, text=new.emitted))
    return tuple(edits)


def lifted_state(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> LiftedState:
    """Lift a kernel, or find out how it was scheduled before.

    Raises:
        SkillRefused: It cannot be lifted, or was edited after it was scheduled.
    """
    earlier = next((s for s in context.scheduled if (s.path, s.kernel) == (unit.path, kernel.name)), None)
    flags, sizes = context.task.flags if context.task is not None else (), _usual_sizes(context)
    try:
        if earlier is None:
            return _lifted(unit.text, unit.path, flags, kernel.name, sizes)
        text = restored(unit.text, earlier.replacements)
        state = _lifted(text, unit.path, flags, kernel.name, sizes)
        plan = state.plan
        for step in earlier.moves:
            plan = MOVES[step.move].apply(plan, dict(step.values))
    except (CannotLift, IllegalMove) as refused:
        raise SkillRefused(refused.reason) from refused
    return replace(state, moves=earlier.moves, replacements=earlier.replacements, plan=plan)


Sizes = tuple[tuple[str, int], ...]
"""What lifting calls scalars of the launcher -> their values in a timed case."""


def _usual_sizes(context: SkillContext) -> Sizes:
    """Return the sizes that are timed, as far as the first timed case names the launcher's scalars."""
    if context.task is None:
        return ()
    arguments = context.task.timed_cases[0].arguments
    return tuple((f"{HOST}{name}", value) for name, value in arguments.items() if type(value) is int)


def _lifted(text: str, path: str, flags: tuple[str, ...], kernel: str, sizes: Sizes) -> LiftedState:
    answer = _answer(text, path, flags, kernel, sizes)
    if isinstance(answer, str):
        raise CannotLift(answer)
    return answer


@lru_cache(maxsize=64)
def _answer(text: str, path: str, flags: tuple[str, ...], kernel: str, sizes: Sizes) -> LiftedState | str:
    """Return a lifted kernel, or why it cannot be lifted: every skill of a schedule asks."""
    unit = parsed(text, path, flags)
    found = unit.kernel(kernel)
    if found is None:
        return f"kernel {kernel!r} is gone"
    try:
        lifted = lift_kernel(unit, found)
    except CannotLift as refused:
        return refused.reason
    algorithm = with_usual(lifted.algorithm, lifted.values, dict(sizes))
    return LiftedState(unit, lifted, (), (), Plan(algorithm, Schedule()))
