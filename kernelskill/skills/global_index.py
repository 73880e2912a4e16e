"""Kernels in which a thread is its global index: how the index is written, and what guards it."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.device_code import BUILTIN_INDICES, words_outside
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.affine import index_polynomial
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.polynomial import Atom, Polynomial
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, ancestors, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_CARRIERS = frozenset({"binary_expression", "parenthesized_expression", "cast_expression", "argument_list"})
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class GlobalIndex:
    """One expression `blockIdx.G * blockDim.A + threadIdx.A`."""

    axis: str
    """The axis of the block that it runs along."""
    grid_axis: str
    """The axis of the grid; another one only where crossed indices were asked for."""
    node: Node
    block_size: int | None
    """The constant that stands for `blockDim.A`; None where that itself is written."""


@dataclass(frozen=True)
class Guard:
    """A global index variable, and the size that it is tested against."""

    index: GlobalIndex
    variable: VariableDef
    bound: Node


@dataclass(frozen=True)
class GuardedKernel:
    """A kernel whose work begins after tests of its global indices."""

    guards: tuple[Guard, ...]
    prologue: tuple[Node, ...]
    """Statements before the work: declarations and early returns."""
    work: tuple[Node, ...]
    """Statements that only threads inside the guards do."""
    wrapper: Node | None
    """The `if` that holds the work; None where early returns come before it."""

    def guard(self, axis: str) -> Guard | None:
        """Return the guard along an axis."""
        return next((guard for guard in self.guards if guard.index.axis == axis), None)


def read_global_index(
    unit: SourceUnit, kernel: KernelDef, node: Node, *, crossed: bool = False
) -> GlobalIndex | None:
    """Return what a node is, if it is a global index; casts and order don't matter.

    Args:
        unit: The file.
        kernel: One of its kernels.
        node: An expression in it.
        crossed: Whether the block's index may run along another axis of the grid.
    """
    value = index_polynomial(unit, kernel, node)
    for axis, grid_axis in ((a, g) for a in "xyz" for g in "xyz" if a == g or crossed):
        thread, block = f"threadIdx.{axis}", f"blockIdx.{grid_axis}"
        factor = value.coefficient(block)
        if factor is None or not value.depends_on(thread) or factor.is_zero:
            continue
        rest = value - Polynomial.of(Atom.named(thread)) - factor * Polynomial.of(Atom.named(block))
        if not rest.is_zero:
            continue
        if factor == Polynomial.of(Atom.named(f"blockDim.{axis}")):
            return GlobalIndex(axis, grid_axis, node, None)
        if factor.value is not None:
            return GlobalIndex(axis, grid_axis, node, factor.value)
    return None


def find_global_indices(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, axes: str = "xyz", *, crossed: bool = False
) -> list[GlobalIndex]:
    """Return the global indices of a kernel along some axes.

    Raises:
        SkillRefused: A thread, block or grid index along them is used in another way, or unseen.
    """
    hidden = words_outside(unit, kernel, context) & BUILTIN_INDICES
    if hidden:
        raise SkillRefused(f"a function or macro that it uses reads {min(hidden)!r}")
    found: dict[int, GlobalIndex] = {}
    for node in walk(kernel.body) if kernel.body is not None else ():
        if node.type != "identifier" or unit.text_of(node) not in BUILTIN_INDICES:
            continue
        if node.parent is not None and unit.text_of(node.parent)[-2:] in _other_axes(axes):
            continue
        index = _enclosing_index(unit, kernel, node, crossed)
        if index is None:
            line = unit.line_of(node)
            raise SkillRefused(f"line {line} uses {unit.text_of(node)} for more than the global index")
        found[index.node.start_byte] = index
    return list(found.values())


def _other_axes(axes: str) -> set[str]:
    return {f".{axis}" for axis in "xyz" if axis not in axes}


def _enclosing_index(unit: SourceUnit, kernel: KernelDef, node: Node, crossed: bool) -> GlobalIndex | None:
    field = node.parent
    if field is None or field.type != "field_expression":
        return None
    for parent in ancestors(field):
        if parent.type not in _CARRIERS and parent.type != "call_expression":
            return None
        if parent.type == "binary_expression" and unit.operator(parent) == "+":
            index = read_global_index(unit, kernel, parent, crossed=crossed)
            if index is not None:
                return index
    return None


def read_guarded(unit: SourceUnit, kernel: KernelDef, *, crossed: bool = False) -> GuardedKernel:
    """Split a kernel into the tests of its global indices and the work behind them.

    Raises:
        SkillRefused: It has another form.
    """
    statements = named(kernel.body) if kernel.body is not None else []
    indices: dict[int, tuple[GlobalIndex, VariableDef]] = {}
    guards: list[Guard] = []
    for position, statement in enumerate(statements):
        if statement.type == "declaration":
            _add_indices(unit, kernel, statement, indices, crossed)
            if not is_plain_declaration(unit, statement):
                break
        elif statement.type == "if_statement" and _is_return(statement):
            guards += _guards_of(unit, kernel, statement, indices, "||", ">=")
        elif statement.type == "if_statement" and position == len(statements) - 1:
            guards += _guards_of(unit, kernel, statement, indices, "&&", "<")
            body = statement.child_by_field_name("consequence")
            if guards and body is not None and statement.child_by_field_name("alternative") is None:
                work = named(body) if body.type == "compound_statement" else [body]
                return GuardedKernel(tuple(guards), tuple(statements[:position]), tuple(work), statement)
            break
        else:
            break
        if guards and len(guards) >= _axes(indices):
            rest = statements[position + 1 :]
            if not any(_declares_index(unit, kernel, later) for later in rest):
                return GuardedKernel(tuple(guards), tuple(statements[: position + 1]), tuple(rest), None)
    raise SkillRefused("it does not begin with a test of its global index against a size")


def _axes(indices: dict[int, tuple[GlobalIndex, VariableDef]]) -> int:
    return len({index.axis for index, _ in indices.values()})


def _declares_index(unit: SourceUnit, kernel: KernelDef, statement: Node) -> bool:
    found: dict[int, tuple[GlobalIndex, VariableDef]] = {}
    if statement.type == "declaration":
        _add_indices(unit, kernel, statement, found, crossed=True)
    return bool(found)


def _add_indices(
    unit: SourceUnit,
    kernel: KernelDef,
    statement: Node,
    indices: dict[int, tuple[GlobalIndex, VariableDef]],
    crossed: bool,
) -> None:
    flow = flow_of(unit, kernel)
    for variable in kernel.locals:
        if variable.declaration != statement or variable.initialiser is None or variable.pointer_depth:
            continue
        index = read_global_index(unit, kernel, strip_parentheses(variable.initialiser), crossed=crossed)
        if index is not None and flow.is_constant(variable):
            indices[id(variable)] = (index, variable)


def is_plain_declaration(unit: SourceUnit, statement: Node) -> bool:
    """Whether a declaration reads no memory and calls nothing, so that any thread may execute it."""
    kinds = {node.type for node in walk(statement)}
    bad = {"subscript_expression", "assignment_expression", "update_expression", "lambda_expression"}
    reads = any(node.type == "pointer_expression" for node in walk(statement))
    calls = any(node.type == "call_expression" and not _is_cast(unit, node) for node in walk(statement))
    return not (kinds & bad) and not reads and not calls


def _is_cast(unit: SourceUnit, call: Node) -> bool:
    function = call.child_by_field_name("function")
    text = unit.text_of(function) if function is not None else ""
    return text.startswith("static_cast<") or (function is not None and function.type == "primitive_type")


def _is_return(statement: Node) -> bool:
    """Whether an `if` without `else` does nothing but return."""
    body = statement.child_by_field_name("consequence")
    if body is None or statement.child_by_field_name("alternative") is not None:
        return False
    inner = named(body) if body.type == "compound_statement" else [body]
    return len(inner) == 1 and inner[0].type == "return_statement" and not named(inner[0])


def _guards_of(
    unit: SourceUnit,
    kernel: KernelDef,
    statement: Node,
    indices: dict[int, tuple[GlobalIndex, VariableDef]],
    joiner: str,
    comparison: str,
) -> list[Guard]:
    condition = statement.child_by_field_name("condition")
    flow, found = flow_of(unit, kernel), []
    for leaf in joined_tests(unit, condition, joiner) if condition is not None else ():
        left, right = leaf.child_by_field_name("left"), leaf.child_by_field_name("right")
        if leaf.type != "binary_expression" or left is None or right is None:
            continue
        operator = unit.operator(leaf)
        for side, other, sign in ((left, right, operator), (right, left, _FLIPPED.get(operator, ""))):
            name = strip_parentheses(side)
            declared = flow.resolve(name) if name.type == "identifier" else None
            if sign == comparison and declared is not None and id(declared) in indices:
                index, variable = indices[id(declared)]
                if _is_size(unit, kernel, other):
                    found.append(Guard(index, variable, other))
    return found


def joined_tests(unit: SourceUnit, node: Node, joiner: str) -> list[Node]:
    """Return the operands of a chain of `&&` or of `||`; of anything else itself."""
    node = strip_parentheses(node)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type == "binary_expression" and unit.operator(node) == joiner and left and right:
        return [*joined_tests(unit, left, joiner), *joined_tests(unit, right, joiner)]
    return [node]


def _is_size(unit: SourceUnit, kernel: KernelDef, node: Node) -> bool:
    """Whether an expression is made of parameters and constants only."""
    value = index_polynomial(unit, kernel, node)
    parameters = {parameter.name for parameter in kernel.parameters if not parameter.is_pointer}
    allowed = parameters | {parameter.name for parameter in kernel.template_parameters}
    return value.value is not None or all(atom.text in allowed for atom in value.atoms)
