"""Make every index of a small local array a constant, so that the array lives in registers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelskill.skills.contraction import stores_product
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import is_integer, is_pure, plain_type
from kernelskill.skills.kept_elements import lvalue_of, refuse_strange
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.shared_arrays import whole_accesses
from kernelskill.skills.straight_line import is_evaluated
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.skills.value_ranges import ValueRanges
from kernelskill.source.accesses import Access, AccessMode
from kernelskill.source.affine import index_polynomial, index_reader
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, enclosing_loops, find_loops
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, span_of, walk
from kernelskill.source.unit import SourceUnit

_MOST_SLOTS = 16
_MOST_ELEMENTS = 64
_MOST_TURNS = 256
_FULL = "#pragma unroll"


@dataclass(frozen=True)
class _Plan:
    variable: VariableDef
    slots: int
    loops: tuple[Loop, ...]
    """Loops to be unrolled."""
    updates: tuple[Access, ...]
    """Stores by an index from data."""
    loads: tuple[Access, ...]
    """Loads by an index from data."""
    statements: Mapping[int, Node] = field(repr=False)
    """The statement of each of them."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every local array with indices that can be made constants."""
    refusals: list[str] = []
    found = []
    for plan in _plans(unit, kernel, context, refusals):
        name = plan.variable.name
        reason = (
            f"line {unit.line_of(plan.variable.declaration)}: {name} is indexed by what is not a constant"
        )
        found.append(Site(key=f"{kernel.name}/array:{name}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no local array")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Unroll the loops, and compare indices from data with each slot."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        if site.key == f"{site.kernel}/array:{plan.variable.name}":
            return _write(unit, plan, context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _plans(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Plan]:
    variables = [
        v for v in kernel.locals if v.storage is Storage.LOCAL and v.dimensions and not v.pointer_depth
    ]
    if variables:
        refuse_strange(unit, kernel)
    names = [variable.name for variable in kernel.locals]
    ranges = ValueRanges(unit, kernel, bindings=template_bindings(unit, kernel, context))
    found = []
    for variable in variables:
        try:
            if names.count(variable.name) > 1:
                raise SkillRefused(f"{variable.name!r} is declared twice")
            found.append(_plan(unit, kernel, variable, ranges, context))
        except SkillRefused as refused:
            refusals.append(refused.reason)
    return found


def _plan(
    unit: SourceUnit, kernel: KernelDef, variable: VariableDef, ranges: ValueRanges, context: SkillContext
) -> _Plan:
    name = variable.name
    extents = [ranges.constant(node) if node is not None else None for node in variable.dimensions]
    known = [extent for extent in extents if extent is not None]
    size = math.prod(known)
    if len(known) != len(extents) or not 0 < size <= _MOST_ELEMENTS:
        raise SkillRefused(f"{name!r} is too large for registers, or its size is not a constant")
    accesses = whole_accesses(unit, kernel, variable, context)
    _refuse_products(unit, kernel, variable, accesses)
    loops: dict[str, Loop] = {}
    dynamic: list[Access] = []
    for access in accesses:
        needed = _constant_loops(unit, kernel, access)
        if needed is None:
            dynamic.append(access)
        else:
            loops |= {loop.key: loop for loop in needed}
    if dynamic and (size > _MOST_SLOTS or len(extents) > 1):
        text = unit.text_of(dynamic[0].node)
        raise SkillRefused(f"line {dynamic[0].line}: {text} would need {size} comparisons")
    rolled = tuple(loop for loop in loops.values() if "".join(loop.pragma.split()) != "".join(_FULL.split()))
    _check_length(unit, kernel, name, loops)
    if not rolled and not dynamic:
        raise SkillRefused(f"every index of {name!r} is a constant once its loops are unrolled")
    updates = tuple(access for access in dynamic if access.mode.writes)
    loads = tuple(access for access in dynamic if not access.mode.writes)
    statements = {access.node.id: _statement(unit, kernel, access) for access in dynamic}
    places = [statement.id for statement in statements.values()]
    if len(set(places)) != len(places):
        raise SkillRefused(f"one statement takes two elements of {name!r} by indices from data")
    return _Plan(variable, size, rolled, updates, loads, statements)


def _refuse_products(
    unit: SourceUnit, kernel: KernelDef, variable: VariableDef, accesses: list[Access]
) -> None:
    """Decline where an element gets a product: in a register it might be added without being rounded."""
    value = variable.initialiser
    kind = plain_type(variable.base_type)
    for node in walk(value) if value is not None and not is_integer(kind) else ():
        if node.type == "binary_expression" and unit.operator(node) == "*":
            raise SkillRefused(f"{variable.name!r} begins with a product, which might no longer be rounded")
    for access in accesses:
        change = lvalue_of(access).parent
        stored = access.mode.writes and change is not None
        if stored and change is not None and stores_product(unit, kernel, change, variable.base_type):
            text = unit.text_of(access.node)
            raise SkillRefused(f"line {access.line}: {text} gets a product, which might no longer be rounded")


def _constant_loops(unit: SourceUnit, kernel: KernelDef, access: Access) -> list[Loop] | None:
    """Return the loops that must be unrolled for the indices to be constants; None where that is not enough."""
    reader = index_reader(unit, kernel)
    around = enclosing_loops(find_loops(unit, kernel), access.node)
    short = {reader.loop_atom(loop): loop for loop in around if loop.trip_count is not None and loop.variable}
    needed: list[Loop] = []
    for index in access.indices:
        value = index_polynomial(unit, kernel, index)
        for text in {text for atom in value.atoms for text in _leaves(atom.operands, atom.text)}:
            if text not in short:
                return None
            needed.append(short[text])
    return needed


def _leaves(operands: tuple[object, ...], text: str) -> list[str]:
    """Return the texts of the atoms that an atom is made of."""
    found: list[str] = []
    for operand in operands:
        for atom in getattr(operand, "atoms", ()):
            found += _leaves(atom.operands, atom.text)
    return found or [text]


def _check_length(unit: SourceUnit, kernel: KernelDef, name: str, loops: Mapping[str, Loop]) -> None:
    """Decline where the unrolled code would be too long."""
    for loop in loops.values():
        around = [other for other in loops.values() if other.body_span.contains(loop.span)]
        turns = math.prod(other.trip_count or 1 for other in (loop, *around))
        if turns > _MOST_TURNS:
            raise SkillRefused(f"the loops that index {name!r} have {turns} turns, too many to unroll")


def _statement(unit: SourceUnit, kernel: KernelDef, access: Access) -> Node:
    """Return the statement of an access by data.

    Raises:
        SkillRefused: The access can't be taken out of it.
    """
    where = f"line {access.line}: {unit.text_of(access.node)}"
    statement = access.statement
    if not is_pure(unit, access.indices[0]):
        raise SkillRefused(f"{where} has an index that does more than give a value")
    change = lvalue_of(access).parent
    if access.mode.writes:
        whole = change is not None and change.parent == statement and lvalue_of(access) == access.node
        if statement.type != "expression_statement" or not whole or change is None:
            raise SkillRefused(f"{where} is stored inside an expression")
        value = change.child_by_field_name("right")
        if value is not None and not is_pure(unit, value):
            raise SkillRefused(f"{where} is given more than a value")
        return statement
    if access.mode is not AccessMode.READ or access.member:
        raise SkillRefused(f"{where} is no plain element")
    in_block = is_statement_of_block(statement)
    if not in_block or statement.type not in ("expression_statement", "declaration", "if_statement"):
        raise SkillRefused(f"{where} is read where no statement can be put before it")
    if not is_evaluated(unit, statement, access.node):
        raise SkillRefused(f"{where} is read under a condition")
    _check_operands(unit, kernel, access, statement)
    return statement


def _check_operands(unit: SourceUnit, kernel: KernelDef, access: Access, statement: Node) -> None:
    """Decline where the statement changes what the index is made of, or the array, before it is read."""
    where = f"line {access.line}: {unit.text_of(access.node)}"
    flow = flow_of(unit, kernel)
    used = {id(flow.resolve(node)) for node in walk(access.indices[0]) if node.type == "identifier"}
    head = span_of(statement)
    if statement.type == "if_statement":
        condition = statement.child_by_field_name("condition")
        head = span_of(condition) if condition is not None else head
    for write in flow.writes:
        if head.contains(span_of(write.node)) and id(write.declared) in used:
            raise SkillRefused(f"{where} has an index that its statement changes")
    for node in walk(statement):
        if not head.contains(span_of(node)):
            continue
        target = node.child_by_field_name("left" if node.type == "assignment_expression" else "argument")
        is_change = node.type in ("assignment_expression", "update_expression") and target is not None
        is_top = node.parent == statement and node.type == "assignment_expression"
        if is_change and not is_top:
            raise SkillRefused(f"{where} is read in a statement that changes more than one thing")


def _write(unit: SourceUnit, plan: _Plan, context: SkillContext) -> Rewrite:
    edits = EditSet(unit)
    slot = fresh_name(unit, context, "slot")
    for loop in plan.loops:
        if loop.pragma_span is None:
            edits.insert_line_before(loop.node, _FULL)
        else:
            edits.replace(loop.pragma_span, _FULL)
    for access in plan.updates:
        _write_update(unit, edits, plan, access, slot)
    taken = [slot]
    for access in plan.loads:
        value = fresh_name(unit, context, f"{plan.variable.name}_value", taken)
        taken.append(value)
        _write_load(unit, edits, plan, access, (slot, value))
    return Rewrite(edits=edits.edits)


def _index(unit: SourceUnit, access: Access) -> str:
    text = " ".join(unit.text_of(access.indices[0]).split())
    return text if access.indices[0].type in ("identifier", "subscript_expression") else f"({text})"


def _write_update(unit: SourceUnit, edits: EditSet, plan: _Plan, access: Access, slot: str) -> None:
    statement = plan.statements[access.node.id]
    indent = unit.indent_of(statement)
    name = plan.variable.name
    alone = not is_statement_of_block(statement)
    inner = f"{indent}    " if alone else indent
    head = f"{_FULL}\n{inner}for (int {slot} = 0; {slot} < {plan.slots}; ++{slot}) {{\n"
    test = f"{inner}    if ({slot} == {_index(unit, access)}) "
    edits.insert_before(statement, f"{{\n{inner}{head}{test}" if alone else f"{head}{test}")
    edits.replace(access.node, f"{name}[{slot}]")
    edits.insert_after(statement, f"\n{inner}}}" + (f"\n{indent}}}" if alone else ""))


def _write_load(
    unit: SourceUnit, edits: EditSet, plan: _Plan, access: Access, names: tuple[str, str]
) -> None:
    statement = plan.statements[access.node.id]
    indent = unit.indent_of(statement)
    (slot, value), name = names, plan.variable.name
    lines = [
        f"{plan.variable.base_type} {value} = {name}[0];",
        _FULL,
        f"for (int {slot} = 1; {slot} < {plan.slots}; ++{slot}) {{",
        f"    if ({slot} == {_index(unit, access)}) {value} = {name}[{slot}];",
        "}",
    ]
    edits.insert_line_before(statement, f"\n{indent}".join(lines))
    edits.replace(access.node, value)
