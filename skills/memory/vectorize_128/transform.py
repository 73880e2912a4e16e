"""Give a thread of an elementwise kernel neighbouring elements, moved as one vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.coverage import Cover, read_cover
from kernelskill.skills.device_code import count_uses, fresh_name
from kernelskill.skills.disjoint import separate
from kernelskill.skills.elementwise import divide_grids, read_elementwise, refuse_carried_values
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.global_index import Guard, GuardedKernel
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of, template_bindings
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.loop_effects import refuse_hidden_accesses
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, Span, walk
from kernelskill.source.unit import SourceUnit

_VECTORS = {
    "float": "float4",
    "int": "int4",
    "unsigned": "uint4",
    "short": "short4",
    "unsigned short": "ushort4",
    "signed char": "char4",
    "unsigned char": "uchar4",
    "double": "double2",
    "long": "long2",
    "unsigned long": "ulong2",
    "long long": "longlong2",
    "unsigned long long": "ulonglong2",
}
"""Element type to the widest built-in vector of it, 16 bytes at most."""
_STEPS = frozenset({"expression_statement", "declaration", "compound_statement"})
_CONDITIONAL = frozenset({"conditional_expression", "lambda_expression"})


@dataclass(frozen=True)
class _Array:
    """One pointer parameter that the kernel touches at its global index."""

    parameter: ParameterDef
    element: str
    is_loaded: bool
    is_stored: bool


@dataclass(frozen=True)
class _Plan:
    """What is needed to write the new kernel."""

    entries: list[KernelLaunch]
    covers: list[Cover]
    guarded: GuardedKernel
    guard: Guard
    arrays: tuple[_Array, ...]
    """In the order of their first store, the others before."""
    accesses: tuple[Access, ...]
    assumptions: tuple[str, ...]

    @property
    def lanes(self) -> str:
        """Fields of a vector, one an element."""
        return "xyzw"[: int(_VECTORS[self.arrays[0].element][-1])]


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel that touches its arrays at its global index only."""
    plan = _plan(unit, kernel, context)
    names = ", ".join(array.parameter.name for array in plan.arrays)
    return [Site(key=kernel.name, kernel=kernel.name, reason=f"{names}: one element a thread")]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the vector path, the general path and the smaller grid."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    plan = _plan(unit, kernel, context)
    sets = edit_sets(plan.entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    first = plan.guard.variable.declaration
    last = plan.guarded.wrapper or plan.guarded.work[-1]
    own.replace(Span(first.start_byte, last.end_byte), _text(unit, kernel, plan, context))
    divide_grids(sets, plan.entries, plan.covers, len(plan.lanes))
    edits = tuple(edit for each in sets.values() for edit in each.edits)
    note = "pointers that are not aligned to 16 bytes take the general path"
    return Rewrite(edits=edits, assumptions=plan.assumptions, notes=(note,))


def _plan(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> _Plan:
    entries = launches_of(unit, kernel, context)
    guarded, guard = read_elementwise(unit, kernel, entries, context)
    _check_form(unit, kernel, guarded, guard)
    assert kernel.body is not None
    refuse_hidden_accesses(unit, kernel, kernel.body, context)
    turn = Span(guarded.work[0].start_byte, guarded.work[-1].end_byte)
    refuse_carried_values(unit, kernel, turn)
    accesses = tuple(a for a in find_accesses(unit, kernel) if a.is_global)
    for access in accesses:
        _check_access(unit, guarded, guard, access)
    arrays = _arrays(unit, kernel, accesses, context)
    assumptions = _check_order(unit, kernel, accesses, context)
    covers = [read_cover(unit, kernel, guard, entry) for entry in entries]
    return _Plan(entries, covers, guarded, guard, arrays, accesses, assumptions)


def _check_form(unit: SourceUnit, kernel: KernelDef, guarded: GuardedKernel, guard: Guard) -> None:
    declaration = guard.variable.declaration
    if len(declaration.children_by_field_name("declarator")) != 1 or not guarded.work:
        raise SkillRefused("its global index is declared together with other variables")
    later = [s for s in guarded.prologue if s.start_byte > declaration.start_byte]
    if any(statement.type != "if_statement" for statement in later) or len(later) > 1:
        raise SkillRefused("it does more than test its global index before the work")
    test = guarded.wrapper or (later[0] if later else None)
    condition = test.child_by_field_name("condition") if test is not None else None
    text = unit.text_of(condition) if condition is not None else ""
    if condition is None or "&&" in text or "||" in text:
        raise SkillRefused("it tests more than its global index")
    for statement in guarded.work:
        if any(node.type == "return_statement" for node in walk(statement)):
            raise SkillRefused("it returns from its work")


def _check_access(unit: SourceUnit, guarded: GuardedKernel, guard: Guard, access: Access) -> None:
    text = unit.text_of(access.node)
    if access.node.type != "subscript_expression" or access.mode is AccessMode.ATOMIC or access.member:
        raise SkillRefused(f"line {access.line}: {text} is no plain element")
    if [unit.text_of(index) for index in access.indices] != [guard.variable.name]:
        raise SkillRefused(f"line {access.line}: {text} is not at the global index")
    root = access.root
    if not isinstance(root, ParameterDef) or access.base != root.name or root.pointer_depth != 1:
        raise SkillRefused(f"line {access.line}: {text} is reached by more than a parameter")
    if not _is_always_done(unit, guarded, access.node):
        raise SkillRefused(f"line {access.line}: {text} is accessed under a condition or in a loop")


def _is_always_done(unit: SourceUnit, guarded: GuardedKernel, node: Node) -> bool:
    child, parent = node, node.parent
    while child not in guarded.work:
        if parent is None:
            return False
        conditional = parent.type in _CONDITIONAL and parent.child_by_field_name("condition") != child
        short = parent.type == "binary_expression" and unit.operator(parent) in ("&&", "||")
        if conditional or (short and parent.child_by_field_name("left") != child):
            return False
        child, parent = parent, parent.parent
    return child.type in _STEPS


def _arrays(
    unit: SourceUnit, kernel: KernelDef, accesses: tuple[Access, ...], context: SkillContext
) -> tuple[_Array, ...]:
    bindings = template_bindings(unit, kernel, context)
    found: list[_Array] = []
    assert kernel.body is not None
    for parameter in kernel.parameters:
        own = [access for access in accesses if access.root is parameter]
        if parameter.is_pointer and count_uses(unit, kernel.body, parameter.name) != len(own):
            raise SkillRefused(f"{parameter.name!r} is used as more than an array")
        if not own:
            continue
        written = plain_type(parameter.pointee_type)
        element = plain_type(bindings.get(written, written))
        if element not in _VECTORS:
            raise SkillRefused(f"{parameter.name!r} has elements of type {element!r}, which has no vector")
        loaded = own[0].mode.reads
        if not loaded and any(access.mode.writes for access in own[1:]):
            raise SkillRefused(f"{parameter.name!r} is written more than once")
        found.append(
            _Array(parameter, element, loaded or _reads_itself(own), any(a.mode.writes for a in own))
        )
    if len({_VECTORS[array.element][-1] for array in found}) > 1:
        raise SkillRefused("its arrays have elements of different sizes")
    if not any(array.is_stored for array in found):
        raise SkillRefused("it stores nothing")
    return tuple(found)


def _reads_itself(own: list[Access]) -> bool:
    """Whether `y[i] = f(y[i])` reads, although the store comes first in the text."""
    first = own[0].statement
    return any(access.mode.reads and access.statement == first for access in own[1:])


def _check_order(
    unit: SourceUnit, kernel: KernelDef, accesses: tuple[Access, ...], context: SkillContext
) -> tuple[str, ...]:
    """Decline where an element stored by one statement may be read or stored by a later one.

    Raises:
        SkillRefused: The vectors are loaded first and stored last, which would change the order.
    """
    assumptions: list[str] = []
    for store in accesses:
        for other in accesses:
            later = other.statement.start_byte > store.statement.start_byte
            if not store.mode.writes or not later or other.root is store.root:
                continue
            answer = separate(unit, kernel, store, other, context)
            if not answer.disjoint:
                raise SkillRefused(
                    f"line {other.line}: {unit.text_of(other.node)} may be what line {store.line} has stored"
                )
            assumptions += [answer.assumption] if answer.assumption else []
    return tuple(dict.fromkeys(assumptions))


def _text(unit: SourceUnit, kernel: KernelDef, plan: _Plan, context: SkillContext) -> str:
    taken: list[str] = []

    def fresh(wanted: str) -> str:
        taken.append(fresh_name(unit, context, wanted, taken))
        return taken[-1]

    group, first, item = fresh("group"), fresh("first"), fresh("item")
    count = len(plan.lanes)
    vectors = {array.parameter.name: fresh(f"{array.parameter.name}_{count}") for array in plan.arrays}
    bound = unit.text_of(plan.guard.bound)
    bound = bound if plan.guard.bound.type in ("identifier", "number_literal") else f"({bound})"
    pointers = " | ".join(f"(size_t){name}" for name in vectors)
    index = plan.guard.variable
    lines = [
        f"const long long {group} = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
        f"const long long {first} = {count} * {group};",
        f"if ({first} + {count - 1} < {bound} && ({pointers}) % 16 == 0) {{",
    ]
    for array in plan.arrays:
        name, vector = array.parameter.name, _VECTORS[array.element]
        load = f" = reinterpret_cast<const {vector}*>({name})[{group}]" if array.is_loaded else ""
        lines.append(f"    {vector} {vectors[name]}{load};")
    counted = _uses_index(unit, plan)
    for number, lane in enumerate(plan.lanes):
        own = (
            f"const {index.base_type} {index.name} = ({index.base_type})({first} + {number}); "
            if counted
            else ""
        )
        body = " ".join(_lane_text(unit, plan, node, vectors, lane) for node in plan.guarded.work)
        lines.append(f"    {{ {own}{body} }}")
    for array in plan.arrays:
        if array.is_stored:
            name, vector = array.parameter.name, _VECTORS[array.element]
            lines.append(f"    reinterpret_cast<{vector}*>({name})[{group}] = {vectors[name]};")
    lines.append("} else {")
    lines.append(
        f"    for (long long {item} = {first}; {item} < {first} + {count} && {item} < {bound}; ++{item}) {{"
    )
    lines.append(f"        const {index.base_type} {index.name} = ({index.base_type}){item};")
    lines += [f"        {unit.text_of(node)}" for node in plan.guarded.work]
    lines += ["    }", "}"]
    return f"\n{unit.indent_of(index.declaration)}".join(lines)


def _uses_index(unit: SourceUnit, plan: _Plan) -> bool:
    name = plan.guard.variable.name
    total = sum(count_uses(unit, node, name) for node in plan.guarded.work)
    return total != len(plan.accesses)


def _lane_text(unit: SourceUnit, plan: _Plan, node: Node, vectors: Mapping[str, str], lane: str) -> str:
    """Return a statement for one lane: elements become fields of the vectors, comments go."""
    text, position = "", node.start_byte
    elements = {access.node.id: vectors[access.base] for access in plan.accesses}
    stack = [node]
    while stack:
        entry = stack.pop()
        if entry.id in elements or entry.type == "comment":
            replacement = f"{elements[entry.id]}.{lane}" if entry.id in elements else ""
            text += unit.text_of(Span(position, entry.start_byte)) + replacement
            position = entry.end_byte
        else:
            stack.extend(reversed(entry.children))
    return text + unit.text_of(Span(position, node.end_byte))
