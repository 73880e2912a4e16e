"""Answer questions about who writes and reads what: yes, no, or unknown with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tree_sitter import Node

from kernelskill.source.accesses import Access, find_accesses, intrinsic_mode
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.loops import BARRIERS, Loop
from kernelskill.source.pointers import pointer_reader
from kernelskill.source.purity import called_name, is_pure_call
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Span, span_of, walk
from kernelskill.source.unit import SourceUnit


class Certainty(StrEnum):
    """A three-valued truth."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """A three-valued answer with the reason."""

    certainty: Certainty
    reason: str

    @property
    def is_yes(self) -> bool:
        return self.certainty is Certainty.YES

    @property
    def is_no(self) -> bool:
        return self.certainty is Certainty.NO

    @property
    def is_unknown(self) -> bool:
        return self.certainty is Certainty.UNKNOWN

    def __bool__(self) -> bool:
        raise TypeError("an Answer has three values; ask is_yes, is_no or is_unknown")


def yes(reason: str) -> Answer:
    """Return a certain yes."""
    return Answer(Certainty.YES, reason)


def no(reason: str) -> Answer:
    """Return a certain no."""
    return Answer(Certainty.NO, reason)


def unknown(reason: str) -> Answer:
    """Return that nothing can be told."""
    return Answer(Certainty.UNKNOWN, reason)


@dataclass(frozen=True)
class Effects:
    """What a range of a function reads and writes."""

    variables_read: frozenset[str]
    variables_written: frozenset[str]
    """Variables themselves; what lies behind pointers is in `accesses`."""
    declared: frozenset[str]
    accesses: tuple[Access, ...]
    calls: tuple[str, ...]
    has_barrier: bool
    has_inline_asm: bool
    unknown_calls: tuple[str, ...]
    """Called functions that may do anything."""

    @property
    def memory_reads(self) -> tuple[Access, ...]:
        return tuple(access for access in self.accesses if access.mode.reads)

    @property
    def memory_writes(self) -> tuple[Access, ...]:
        return tuple(access for access in self.accesses if access.mode.writes)


def effects(unit: SourceUnit, function: FunctionDef, span: Span) -> Effects:
    """Return what the code inside a range reads and writes."""
    flow = flow_of(unit, function)
    read: set[str] = set()
    calls: dict[str, None] = {}
    doubtful: dict[str, None] = {}
    asm = False
    for node in walk(function.body) if function.body is not None else ():
        if not span.contains(span_of(node)):
            continue
        asm = asm or node.type == "gnu_asm_expression"
        if node.type == "identifier":
            read.add(unit.text_of(node))
        elif node.type == "call_expression":
            calls[called_name(unit, node)] = None
            if not is_pure_call(unit, node) and intrinsic_mode(called_name(unit, node)) is None:
                doubtful[called_name(unit, node)] = None
    written = {w.declared.name for w in flow.writes if span.contains(span_of(w.node))}
    return Effects(
        variables_read=frozenset(read),
        variables_written=frozenset(written),
        declared=frozenset(v.name for v in function.locals if span.contains(v.name_span)),
        accesses=tuple(a for a in find_accesses(unit, function) if span.contains(a.span)),
        calls=tuple(calls),
        has_barrier=any(_last_part(call) in BARRIERS for call in calls),
        has_inline_asm=asm,
        unknown_calls=tuple(call for call in doubtful if _last_part(call) not in BARRIERS),
    )


def _last_part(call: str) -> str:
    return call.split(".")[-1].split("->")[-1].split("::")[-1]


def variables_modified(unit: SourceUnit, function: FunctionDef, span: Span) -> frozenset[str]:
    """Return the variables that code inside a range may change, those it declares left out."""
    found = effects(unit, function, span)
    return found.variables_written - found.declared


def has_side_effects(unit: SourceUnit, node: Node) -> Answer:
    """Whether evaluating an expression does more than give a value."""
    for entry in walk(node):
        if entry.type in ("assignment_expression", "update_expression"):
            return yes(f"it assigns: {unit.text_of(entry)!r}")
        if entry.type == "gnu_asm_expression":
            return unknown("it holds inline assembly")
        if entry.type == "call_expression" and not is_pure_call(unit, entry):
            return unknown(f"it calls {called_name(unit, entry)!r}")
        if entry.type in ("new_expression", "delete_expression"):
            return yes("it allocates")
    return no("it assigns nothing and calls only pure functions")


def may_alias(unit: SourceUnit, function: FunctionDef, first: str, second: str) -> Answer:
    """Whether what two pointers or arrays name can share an element; both by name."""
    if first == second:
        return yes("they are the same")
    pair = [_root_of(function, unit, name) for name in (first, second)]
    if pair[0] is None or pair[1] is None:
        missing = first if pair[0] is None else second
        return unknown(f"{missing!r} is neither a parameter nor an array of the kernel")
    return roots_alias(pair[0], pair[1])


def roots_alias(first: Declared, second: Declared) -> Answer:
    """Whether two parameters or arrays can share an element."""
    if first is second:
        return yes("they are the same")
    arrays = [entry for entry in (first, second) if isinstance(entry, VariableDef) and entry.dimensions]
    dynamic = [entry for entry in arrays if entry.storage is Storage.DYNAMIC_SHARED]
    if len(dynamic) == 2:
        return yes("all dynamic shared arrays start at one address")
    if len(arrays) == 2:
        return no("they are distinct arrays")
    if len(arrays) == 1:
        if arrays[0].storage in (Storage.DEVICE, Storage.CONSTANT):
            return unknown(f"a pointer could point at {arrays[0].name!r}")
        return no(f"{arrays[0].name!r} is an array of the kernel's own")
    for entry in (first, second):
        if isinstance(entry, ParameterDef) and entry.is_restrict:
            return no(f"{entry.name!r} is declared __restrict__")
    return unknown("the caller may pass overlapping pointers")


def _root_of(function: FunctionDef, unit: SourceUnit, name: str) -> Declared | None:
    declared: Declared | None = function.parameter(name) or function.local(name)
    if declared is None:
        declared = next((v for v in unit.globals if v.name == name), None)
    if isinstance(declared, VariableDef) and declared.pointer_depth and function.body is not None:
        for node in walk(function.body):
            if node.type == "identifier" and unit.text_of(node) == name and node.parent is not None:
                found = pointer_reader(unit, function).read(node)
                if found.root is not None and found.root is not declared:
                    return found.root
        return None
    return declared


def is_loop_invariant(unit: SourceUnit, function: FunctionDef, node: Node, loop: Loop) -> Answer:
    """Whether an expression has one value in all iterations of a loop."""
    effect = has_side_effects(unit, node)
    if not effect.is_no:
        return unknown(effect.reason)
    flow = flow_of(unit, function)
    for entry in walk(node):
        if entry.type != "identifier":
            continue
        declared = flow.resolve(entry)
        if declared is not None and any(
            loop.span.contains(span_of(write.node)) for write in flow.writes_to(declared)
        ):
            return no(f"{declared.name!r} changes in the loop")
    return _loads_invariant(unit, function, node, loop)


def _loads_invariant(unit: SourceUnit, function: FunctionDef, node: Node, loop: Loop) -> Answer:
    inside = span_of(node)
    loads = [a for a in find_accesses(unit, function) if inside.contains(a.span)]
    if not loads:
        return yes("no variable in it changes in the loop")
    changes = effects(unit, function, loop.span)
    if changes.unknown_calls or changes.has_inline_asm:
        return unknown(f"the loop calls {', '.join(changes.unknown_calls) or 'inline assembly'}")
    if changes.has_barrier and any(access.is_shared for access in loads):
        return unknown("other threads may write shared memory between the loop's barriers")
    for load in loads:
        for write in changes.memory_writes:
            if load.root is None or write.root is None:
                return unknown(f"{write.base!r} or {load.base!r} may point anywhere")
            answer = roots_alias(load.root, write.root)
            if not answer.is_no:
                return unknown(f"the loop writes {write.base!r}, and {answer.reason}")
    return yes("the loop changes neither its variables nor the memory it loads")
