"""Kernels of one index that is split in two: `row = idx / n; col = idx % n`, and the exchange of the two."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.coverage import read_cover
from kernelskill.skills.elementwise import read_elementwise
from kernelskill.skills.expression_types import ExpressionTypes, common_type, is_wide, plain_type
from kernelskill.skills.global_index import Guard, GuardedKernel
from kernelskill.skills.kernel_launches import launches_of
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.affine import index_polynomial
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_EXACT = ("int", "long", "long long", "unsigned long", "unsigned long long")
"""Types in which a product of sizes does not wrap around unseen."""


@dataclass(frozen=True)
class SplitIndex:
    """An index below `rows * columns` and the two parts that it is split into."""

    guarded: GuardedKernel
    guard: Guard
    row: VariableDef
    """The quotient."""
    column: VariableDef
    """The remainder."""
    columns: Node
    """What the index is divided by."""
    rows: str
    """Text of the other factor of the tested size."""
    uses: tuple[Node, ...]
    """Where the work uses the index itself."""


def read_split_index(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> SplitIndex:
    """Return how a kernel splits its only index.

    Raises:
        SkillRefused: It does not, or the threads could not take each other's elements.
    """
    entries = launches_of(unit, kernel, context)
    guarded, guard = read_elementwise(unit, kernel, entries, context)
    parts = _parts(unit, kernel, guard.variable)
    if parts is None:
        raise SkillRefused("it does not split its index into one quotient and one remainder")
    (row, divisor), (column, _) = parts
    types = ExpressionTypes(unit, kernel)
    if types.of(guard.bound) not in _EXACT:
        raise SkillRefused(f"the size {unit.text_of(guard.bound)} is computed in a type that may wrap around")
    rows = _other_factor(unit, kernel, guard.bound, divisor)
    for entry in entries:
        # Were some elements left out, they would be others after the exchange.
        read_cover(unit, kernel, guard, entry)
    return SplitIndex(guarded, guard, row, column, divisor, rows, _uses(unit, kernel, guard, (row, column)))


def _parts(
    unit: SourceUnit, kernel: KernelDef, index: VariableDef
) -> tuple[tuple[VariableDef, Node], tuple[VariableDef, Node]] | None:
    flow = flow_of(unit, kernel)
    found: dict[str, list[tuple[VariableDef, Node]]] = {"/": [], "%": []}
    for variable in kernel.locals:
        value = strip_parentheses(variable.initialiser) if variable.initialiser is not None else None
        left = value.child_by_field_name("left") if value is not None else None
        right = value.child_by_field_name("right") if value is not None else None
        if value is None or left is None or right is None or value.type != "binary_expression":
            continue
        name = strip_parentheses(left)
        same = name.type == "identifier" and flow.resolve(name) is index
        if same and unit.operator(value) in found and flow.is_constant(variable):
            found[unit.operator(value)].append((variable, right))
    if len(found["/"]) != 1 or len(found["%"]) != 1:
        return None
    (row, by), (column, modulo) = found["/"][0], found["%"][0]
    equal = index_polynomial(unit, kernel, by) == index_polynomial(unit, kernel, modulo)
    return ((row, by), (column, modulo)) if equal and row.scope == column.scope else None


def _other_factor(unit: SourceUnit, kernel: KernelDef, size: Node, divisor: Node) -> str:
    """Return the text of what a size is besides the divisor.

    Raises:
        SkillRefused: It is not a product with the divisor as one factor.
    """
    wanted = index_polynomial(unit, kernel, divisor)
    factors = _factors(unit, size)
    own = [factor for factor in factors if index_polynomial(unit, kernel, factor) == wanted]
    if not own or len(factors) < 2:
        raise SkillRefused(f"the tested size {unit.text_of(size)} is no product of the two extents")
    rest = [unit.text_of(factor) for factor in factors if factor != own[0]]
    return rest[0] if len(rest) == 1 and rest[0].isidentifier() else f"({' * '.join(rest)})"


def _factors(unit: SourceUnit, node: Node) -> list[Node]:
    inner = strip_parentheses(node)
    left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
    if inner.type == "binary_expression" and unit.operator(inner) == "*" and left and right:
        return [*_factors(unit, left), *_factors(unit, right)]
    return [node]


def _uses(
    unit: SourceUnit, kernel: KernelDef, guard: Guard, parts: tuple[VariableDef, VariableDef]
) -> tuple[Node, ...]:
    """Return the other uses of the index.

    Raises:
        SkillRefused: One stands where its parts are not known yet.
    """
    flow = flow_of(unit, kernel)
    after = max(part.declaration.end_byte for part in parts)
    values = [span_of(part.initialiser) for part in parts if part.initialiser is not None]
    found = []
    for node in walk(kernel.body) if kernel.body is not None else ():
        if node.type != "identifier" or flow.resolve(node) is not guard.variable:
            continue
        if span_of(node) == guard.variable.name_span or any(
            value.contains(span_of(node)) for value in values
        ):
            continue
        if _is_in_test(unit, guard, node):
            continue
        if node.start_byte < after or not parts[0].scope_span.contains(span_of(node)):
            raise SkillRefused(f"line {unit.line_of(node)} uses {guard.variable.name!r} before it is split")
        found.append(node)
    return tuple(found)


def _is_in_test(unit: SourceUnit, guard: Guard, node: Node) -> bool:
    """Whether a use is the one that is compared with the size."""
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    return (
        parent is not None
        and parent.type == "binary_expression"
        and unit.operator(parent) in ("<", ">", "<=", ">=")
        and span_of(parent).contains(span_of(guard.bound))
    )


def exchange_parts(unit: SourceUnit, kernel: KernelDef, split: SplitIndex) -> EditSet:
    """Let neighbouring threads take neighbouring rows of one column instead."""
    edits = EditSet(unit)
    index = split.guard.variable
    for variable, operator in ((split.row, "%"), (split.column, "/")):
        assert variable.initialiser is not None
        edits.replace(variable.initialiser, f"{index.name} {operator} {split.rows}")
    row, columns = split.row.name, unit.text_of(split.columns)
    own = plain_type(index.base_type)
    known = common_type(plain_type(split.row.base_type), ExpressionTypes(unit, kernel).of(split.columns))
    if own != known and (is_wide(own) or known is None):
        row = f"({index.base_type}){row}"
    if split.columns.type not in ("identifier", "number_literal", "parenthesized_expression"):
        columns = f"({columns})"
    for use in split.uses:
        edits.replace(
            use,
            f"({row} * {columns} + {split.column.name})"
            if not _is_bare(use)
            else (f"{row} * {columns} + {split.column.name}"),
        )
    return edits


def _is_bare(use: Node) -> bool:
    """Whether a use is a whole index, where no parentheses are needed."""
    return use.parent is not None and use.parent.type == "subscript_argument_list"
