"""Kernels of one element a thread whose loop takes another number of turns for every element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.coverage import Cover
from kernelskill.skills.element_loop import read_elements
from kernelskill.skills.expression_types import PURE_FUNCTIONS, called_name
from kernelskill.skills.global_index import Guard, joined_tests, read_guarded
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import AccessMode, find_accesses
from kernelskill.source.definitions import KernelDef
from kernelskill.source.influence import influences
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.scopes import LOOPS, Flow, flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, walk
from kernelskill.source.unit import SourceUnit

_SHORT = 16
"""Turns up to which a loop beside the uneven one is as good as straight code."""
_THREAD = "threadIdx.x"


@dataclass(frozen=True)
class UnevenKernel:
    """What a thread does for its element: statements before a loop, the loop, statements after it."""

    entries: list[KernelLaunch]
    covers: list[Cover]
    guard: Guard
    before: tuple[Node, ...]
    """From the declaration of the index on, without the test of the index."""
    loop: Loop
    after: tuple[Node, ...]
    test: Node
    """The statement that tests the index; it holds all the rest where `is_wrapped`."""
    is_wrapped: bool

    @property
    def turn(self) -> Span:
        """The range from the declaration of the index to the last statement."""
        last = self.test if self.is_wrapped else self.after[-1] if self.after else self.loop.node
        return Span(self.guard.variable.span.start, last.end_byte)


def read_uneven(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> UnevenKernel:
    """Return the parts of a kernel whose lanes wait for the longest of their loops.

    Raises:
        SkillRefused: It is another kind of kernel, its loop is as long for every element, or what a thread does
            can't be told.
    """
    entries, covers, guard = read_elements(unit, kernel, context)
    guarded = read_guarded(unit, kernel)
    body = named(kernel.body) if kernel.body is not None else []
    wrapper = guarded.wrapper
    test = wrapper if wrapper is not None else guarded.prologue[-1]
    condition = test.child_by_field_name("condition")
    if condition is None or len(joined_tests(unit, condition, "&&")) + _alternatives(unit, condition) != 1:
        raise SkillRefused("it tests more than its index before its work")
    start = guard.variable.declaration.start_byte
    before = [s for s in body if start <= s.start_byte and s.end_byte <= test.start_byte]
    if any(statement.type != "declaration" for statement in before):
        raise SkillRefused("it has another test before that of its index")
    loop = _uneven_loop(unit, kernel, guarded.work)
    place = next(index for index, one in enumerate(guarded.work) if one == loop.node)
    found = UnevenKernel(
        entries=entries,
        covers=covers,
        guard=guard,
        before=(*before, *guarded.work[:place]),
        loop=loop,
        after=guarded.work[place + 1 :],
        test=test,
        is_wrapped=wrapper is not None,
    )
    _check(unit, kernel, found, context)
    return found


def _alternatives(unit: SourceUnit, condition: Node) -> int:
    return len(joined_tests(unit, condition, "||")) - 1


def _uneven_loop(unit: SourceUnit, kernel: KernelDef, work: tuple[Node, ...]) -> Loop:
    """Return the loop that is another one in every lane.

    Raises:
        SkillRefused: There is none or more than one, another loop stands beside it, or it can't be taken apart.
    """
    known = {loop.node.id: loop for loop in find_loops(unit, kernel)}
    top = [known[statement.id] for statement in work if statement.id in known]
    uneven = [loop for loop in top if _is_uneven(unit, kernel, loop)]
    if not uneven:
        raise SkillRefused("it has no loop whose number of turns depends on the element")
    loop = uneven[0]
    for statement in work:
        for node in walk(statement):
            other = known.get(node.id)
            if other is None or loop.span.contains(other.span):
                continue
            if other.trip_count is None or other.trip_count > _SHORT:
                raise SkillRefused(f"another loop, on line {other.line}, would run for a few lanes at a time")
    if loop.kind is LoopKind.RANGE:
        raise SkillRefused(f"the loop on line {loop.line} walks over a range")
    condition = loop.node.child_by_field_name("condition")
    if condition is not None and any(node.type == "declaration" for node in walk(condition)):
        raise SkillRefused(f"the loop on line {loop.line} declares a variable in its condition")
    return loop


def _is_uneven(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> bool:
    """Whether loops of neighbouring threads end after numbers of turns that have little to do with one another.

    A loop that counts between bounds made of the thread's index alone is about as long for the next thread.
    """
    flow = flow_of(unit, kernel)
    conditions = list(ending_conditions(loop))
    if loop.is_counted and len(conditions) == 1:
        parts = [part for part in (loop.start, loop.bound, loop.step) if part is not None]
        if not any(_is_loaded(flow, part, set()) for part in parts):
            return False
    return any(_THREAD in influences(flow, condition, unit.syntax, condition) for condition in conditions)


def _is_loaded(flow: Flow, node: Node, seen: set[int]) -> bool:
    """Whether a value may come from memory, by whatever way."""
    for entry in walk(node):
        if entry.type in ("subscript_expression", "pointer_expression"):
            return True
        if entry.type == "call_expression" and called_name(flow.unit, entry) not in PURE_FUNCTIONS:
            return True
        declared = flow.resolve(entry) if entry.type == "identifier" else None
        if declared is not None and id(declared) not in seen:
            seen.add(id(declared))
            if any(_is_loaded(flow, write.node, seen) for write in flow.writes_to(declared)):
                return True
    return False


def ending_conditions(loop: Loop) -> Iterator[Node]:
    """Yield the condition of a loop and those under which it is broken out of."""
    own = loop.node.child_by_field_name("condition")
    if own is not None:
        yield own
    for node in walk(loop.body):
        if node.type != "break_statement":
            continue
        conditions: list[Node] = []
        for parent in ancestors(node):
            if parent == loop.node:
                yield from conditions
                break
            if parent.type in LOOPS or parent.type == "switch_statement":
                break
            condition = parent.child_by_field_name("condition")
            if condition is not None:
                conditions.append(condition)


def _check(unit: SourceUnit, kernel: KernelDef, found: UnevenKernel, context: SkillContext) -> None:
    for node in (*found.before, found.loop.node, *found.after):
        refuse_unclear(unit, kernel, node, context)
        if any(entry.type == "return_statement" for entry in walk(node)):
            raise SkillRefused("it returns before all of its work is done")
    for access in find_accesses(unit, kernel):
        if access.mode is AccessMode.ATOMIC and found.loop.span.contains(access.span):
            statement = access.node.parent
            if statement is None or statement.type != "expression_statement":
                raise SkillRefused(f"line {access.line}: the loop may wait for what another thread does")
    for entry, cover in zip(found.entries, found.covers, strict=True):
        if cover.block % 32:
            raise SkillRefused(f"the blocks on line {entry.launch.line} are not made of whole warps")
