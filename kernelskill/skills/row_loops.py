"""Loops of a row whose turns several threads may share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelskill.skills.device_code import words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import is_unsigned, is_wide, plain_type
from kernelskill.skills.global_index import read_guarded
from kernelskill.skills.memory_runs import Order, Run, run_of
from kernelskill.skills.row_accumulators import Accumulator, read_accumulators
from kernelskill.skills.row_scans import Scan, places_of, read_scan, refuse_wide_head, takes_places
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.affine import index_reader
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.pointers import Space
from kernelskill.source.polynomial import Polynomial
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, span_of, walk
from kernelskill.source.unit import SourceUnit

_CHANGING = frozenset({"assignment_expression", "update_expression", "lambda_expression"})


@dataclass(frozen=True)
class Overlap:
    """Two runs of memory that threads may only share a loop over if they don't meet."""

    first: Run
    second: Run
    is_in_place: bool
    """Whether they may also be the same elements turn by turn."""
    takes_places: bool = False
    """Whether a store goes to places that turns take one by one: a row may reach what belongs to another."""
    nodes: tuple[Node, ...] = field(default=(), compare=False, repr=False)
    """The two accesses."""


@dataclass(frozen=True, eq=False)
class SharedLoop:
    """A loop whose turns can be done in any order by several threads."""

    loop: Loop = field(repr=False)
    step: int
    accumulators: tuple[Accumulator, ...]
    overlaps: tuple[Overlap, ...]
    assumptions: tuple[str, ...]
    scan: Scan | None = None
    """The running sum that turns read, where there is one."""


def read_shared_loop(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> SharedLoop:
    """Return a loop as one that threads can share.

    Raises:
        SkillRefused: A turn may depend on another.
    """
    step = _read_header(unit, kernel, loop)
    scan = _scan_of(unit, kernel, loop)
    accumulators = read_accumulators(unit, kernel, loop, scan.declared if scan is not None else None)
    accesses = tuple(a for a in find_accesses(unit, kernel) if loop.span.contains(a.span))
    overlaps: list[Overlap] = []
    assumptions: list[str] = []
    for write in accesses:
        if not write.mode.writes:
            continue
        if not _is_own(write, loop):
            _refuse_write(unit, kernel, loop, write, scan)
        for other in accesses:
            if other is not write and not _is_own(write, loop):
                overlap, assumption = _meeting(unit, kernel, loop, write, other, context, scan)
                overlaps += [overlap] if overlap is not None else []
                assumptions += [assumption] if assumption else []
    return SharedLoop(
        loop=loop,
        step=step,
        accumulators=accumulators,
        overlaps=tuple(dict.fromkeys(overlaps)),
        assumptions=tuple(dict.fromkeys(assumptions)),
        scan=scan,
    )


def _scan_of(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> Scan | None:
    try:
        scan = read_scan(unit, kernel, loop)
    except SkillRefused:
        return None
    refuse_wide_head(unit, loop)
    return scan


def _read_header(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> int:
    """Return the step of a loop that counts from a start to a bound that stays.

    Raises:
        SkillRefused: It is another kind of loop.
    """
    where = f"the loop on line {loop.line}"
    if loop.kind is not LoopKind.FOR or loop.start is None or loop.bound is None or loop.declared is None:
        raise SkillRefused(f"{where} does not count")
    if loop.has_break or loop.has_return or any(n.type == "goto_statement" for n in walk(loop.node)):
        raise SkillRefused(f"{where} may end early")
    step = loop.signed_step
    kind = plain_type(loop.declared.base_type) if isinstance(loop.declared, VariableDef) else ""
    rises = step is not None and step > 0 and (loop.comparison in ("<", "<=") or _hits(loop, step))
    falls = step is not None and step < 0 and loop.comparison in (">", ">=") and not is_unsigned(kind)
    if step is None or not (rises or falls):
        raise SkillRefused(f"where {where} goes can't be told")
    if kind != "auto" and not (kind == "int" or is_unsigned(kind) or is_wide(kind)):
        raise SkillRefused(f"{where} counts in {kind!r}")
    update = loop.node.child_by_field_name("update")
    statement = loop.step_statement
    if update is None or statement is None or not span_of(update).contains(span_of(statement)):
        raise SkillRefused(f"{where} does not step in its head")
    if not _is_initialised_where_used(unit, kernel, loop):
        raise SkillRefused(f"{loop.variable!r} is used outside the loop on line {loop.line}")
    if not loop.is_counted and not _bound_stays(unit, kernel, loop):
        raise SkillRefused(f"the end of {where} may change")
    if "static" in words_in(unit, loop.node):
        raise SkillRefused(f"{where} has a static variable")
    return step


def _hits(loop: Loop, step: int) -> bool:
    return loop.comparison == "!=" and step == 1 and loop.start_value == 0 and loop.bound_value is not None


def _is_initialised_where_used(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> bool:
    """Whether every use of the variable lies in a loop that sets it first."""
    flow = flow_of(unit, kernel)
    own = [one.span for one in find_loops(unit, kernel) if one.declared is loop.declared and _sets(one)]
    for node in walk(kernel.body) if kernel.body is not None else ():
        is_use = node.type == "identifier" and unit.text_of(node) == loop.variable
        if is_use and flow.resolve(node) is loop.declared and not any(s.contains(span_of(node)) for s in own):
            declared = loop.declared
            if declared is None or node.start_byte != declared.name_span.start:
                return False
    return any(span == loop.span for span in own)


def _sets(loop: Loop) -> bool:
    initialiser = loop.node.child_by_field_name("initializer")
    start = loop.start
    return initialiser is not None and start is not None and span_of(initialiser).contains(span_of(start))


def _bound_stays(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> bool:
    """Whether a bound that is loaded from memory stays, because the loop stores nothing."""
    assert loop.bound is not None
    flow = flow_of(unit, kernel)
    if any(node.type in _CHANGING for node in walk(loop.bound)):
        return False
    initialiser = loop.node.child_by_field_name("initializer")
    own = {id(flow.resolve(name)) for name in walk(loop.bound) if name.type == "identifier"}
    if id(loop.declared) in own:
        return False
    for write in flow.writes:
        in_head = initialiser is not None and span_of(initialiser).contains(span_of(write.node))
        matters = write.declared is loop.declared or id(write.declared) in own
        if not matters or in_head or not loop.span.contains(span_of(write.node)):
            continue
        if write.node != loop.step_statement:
            return False
    accesses = [a for a in find_accesses(unit, kernel) if loop.span.contains(a.span)]
    return not any(access.mode.writes and not _is_own(access, loop) for access in accesses)


def _is_own(access: Access, loop: Loop) -> bool:
    """Whether an access is to an array that each turn has for itself."""
    root = access.root
    is_local = access.space is Space.LOCAL and isinstance(root, VariableDef)
    return is_local and root is not None and loop.body_span.contains(root.name_span)


def _refuse_write(unit: SourceUnit, kernel: KernelDef, loop: Loop, write: Access, scan: Scan | None) -> None:
    """Decline a store that two turns may do to one element.

    Raises:
        SkillRefused: They may.
    """
    text = unit.text_of(write.node)
    if not write.is_global or write.root is None:
        raise SkillRefused(f"line {write.line} stores to {text}, which all turns share")
    if write.mode is AccessMode.ATOMIC:
        call = next((n for n in _parents(write.node) if n.type == "call_expression"), None)
        is_statement = (
            call is not None and call.parent is not None and call.parent.type == "expression_statement"
        )
        if not is_statement:
            raise SkillRefused(f"line {write.line} uses what an atomic returns")
        return
    if scan is not None and takes_places(unit, kernel, loop, scan, write.node):
        return
    atom = index_reader(unit, kernel).loop_atom(loop)
    factor = write.index.coefficient(atom) if write.index is not None else None
    if write.index is None or factor is None or not _is_apart(unit, kernel, loop, write.index, factor):
        raise SkillRefused(f"several turns of the loop on line {loop.line} may store to {text}")


def _is_apart(unit: SourceUnit, kernel: KernelDef, loop: Loop, index: Polynomial, factor: Polynomial) -> bool:
    """Whether turns of a loop reach different elements by an index that moves by `factor` a turn."""
    inner = [one for one in find_loops(unit, kernel) if loop.body_span.contains(one.span)]
    spread = 0
    reader = index_reader(unit, kernel)
    for one in inner:
        atom = reader.loop_atom(one)
        if not index.depends_on(atom) and not index.depends_on(one.variable):
            continue
        each = index.coefficient(atom)
        if each is None or each.value is None or one.trip_count is None or one.step_value is None:
            return False
        spread += abs(each.value) * one.step_value * max(one.trip_count - 1, 0)
    changing = _changing_names(unit, kernel, loop)
    if any(name in changing for atom in index.atoms for name in atom.depends if name != loop.variable):
        return False
    if factor.value is not None:
        return abs(factor.value) * abs(loop.signed_step or 1) > spread
    return spread == 0 and _is_positive(unit, kernel, factor)


def _changing_names(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> set[str]:
    """Return the variables but its own that a loop changes, those of loops inside it left out."""
    inner = [one.declared for one in find_loops(unit, kernel) if loop.body_span.contains(one.span)]
    return {
        write.declared.name
        for write in flow_of(unit, kernel).writes
        if loop.span.contains(span_of(write.node))
        and write.declared is not loop.declared
        and write.declared not in inner
        and not (write.operator == "init" and write.value is not None)
    }


def _is_positive(unit: SourceUnit, kernel: KernelDef, factor: Polynomial) -> bool:
    """Whether a symbolic factor is a size that some tested index is below, so that it can't be 0."""
    if len(factor.terms) != 1 or len(factor.terms[0][0]) != 1 or factor.terms[0][1] <= 0:
        return False
    name = factor.terms[0][0][0].text
    return name in positive_sizes(unit, kernel)


def positive_sizes(unit: SourceUnit, kernel: KernelDef) -> frozenset[str]:
    """Return the plain sizes that the kernel's first tests hold an index below."""
    guarded = read_guarded(unit, kernel)
    return frozenset(unit.text_of(guard.bound) for guard in guarded.guards)


def _meeting(
    unit: SourceUnit,
    kernel: KernelDef,
    loop: Loop,
    write: Access,
    other: Access,
    context: SkillContext,
    scan: Scan | None,
) -> tuple[Overlap | None, str]:
    """Return what must be tested before turns are shared, or the assumption that makes it needless.

    Raises:
        SkillRefused: The access may meet the store of another turn, and no test can tell.
    """
    where = f"line {other.line}: {unit.text_of(other.node)}"
    both = (write.mode, other.mode)
    same = write.index is not None and other.index is not None and (write.index - other.index).is_zero
    same = same and write.element_type == other.element_type
    packed = scan is not None and any(
        takes_places(unit, kernel, loop, scan, each.node) for each in (write, other)
    )
    # What a turn adds is read before its body runs: not if the body has stored there by then.
    late = scan is not None and write.span.start < other.span.start
    late = late and scan is not None and any(span.contains(other.span) for span in scan.reads)
    same = same and not packed and not late
    if other.root is not None and other.root is write.root:
        if both == (AccessMode.ATOMIC, AccessMode.ATOMIC) or (same and AccessMode.ATOMIC not in both):
            return None, ""
        raise SkillRefused(f"{where} may be what another turn of the loop on line {loop.line} stores")
    answer = separate(unit, kernel, write, other, context)
    if answer.disjoint:
        return None, answer.assumption
    if other.root is None or AccessMode.ATOMIC in both:
        raise SkillRefused(f"{where} may be what another turn of the loop on line {loop.line} stores")
    runs = tuple(
        places_of(unit, kernel, loop, scan, each)
        if scan is not None and takes_places(unit, kernel, loop, scan, each.node)
        else run_of(unit, kernel, loop, each)
        for each in (write, other)
    )
    if any(run.order is Order.EITHER for run in runs):
        raise SkillRefused(f"which way {unit.text_of(write.node)} moves is known at run time only")
    return Overlap(
        runs[0], runs[1], is_in_place=same, takes_places=packed, nodes=(write.node, other.node)
    ), ""


def _parents(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
