"""Loads and stores of neighbouring elements by one thread, as vectors where they are aligned and all there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kernelskill.skills.expression_types import is_pure, plain_type
from kernelskill.skills.global_index import joined_tests
from kernelskill.skills.shared_arrays import SIZES
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.affine import index_polynomial
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, named, span_of, walk
from kernelskill.source.unit import SourceUnit

VECTORS = {
    "float": "float",
    "int": "int",
    "unsigned": "uint",
    "double": "double",
    "long": "long",
    "unsigned long": "ulong",
    "long long": "longlong",
    "unsigned long long": "ulonglong",
    "short": "short",
    "unsigned short": "ushort",
    "unsigned char": "uchar",
}
"""Scalar types with vector types, by what the latter's names begin with."""
_BYTES = 16
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {">": "<", ">=": "<="}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """An access whose element moves by one with the thread."""

    access: Access = field(repr=False)
    kind: str
    tests: tuple[tuple[Node, Node, str, int], ...] = field(repr=False)
    """Left side, right side, `<` or `<=`, and by how much the left grows with the thread."""

    def last_text(self, text_of: Callable[[Node], str], items: str) -> str:
        """Return the test that the last of a thread's elements passes, seen from its first; empty without."""
        parts = []
        for left, right, sign, step in self.tests:
            added = f" + ({items} - 1)" if step == 1 else f" + {step} * ({items} - 1)" if step else ""
            parts.append(f"{_operand(left, text_of)}{added} {sign} {_operand(right, text_of)}")
        return " && ".join(parts)


def _operand(node: Node, text_of: Callable[[Node], str]) -> str:
    text = text_of(node)
    simple = node.type in ("identifier", "number_literal", "field_expression", "parenthesized_expression")
    return text if simple or node.type == "call_expression" else f"({text})"


def vector_of(kind: str, items: int) -> tuple[str, int]:
    """Return the vector type by which neighbours are moved, and how many of them one takes."""
    width = min(items, 4, _BYTES // SIZES[kind])
    return f"{VECTORS[kind]}{width}", width


def find_neighbours(
    unit: SourceUnit, kernel: KernelDef, statement: Node, mode: AccessMode, exits: Sequence[Node] = ()
) -> list[Neighbours]:
    """Return the accesses of a statement to neighbouring elements of global memory.

    Args:
        unit: The file.
        kernel: The kernel.
        statement: One of its body.
        mode: Which accesses are meant.
        exits: Statements `if (test) return;` before it.
    """
    inside = span_of(statement)
    found = []
    for access in find_accesses(unit, kernel):
        if inside.contains(access.span) and access.mode is mode:
            neighbours = _read(unit, kernel, statement, access, exits)
            if neighbours is not None:
                found.append(neighbours)
    return found


def _read(
    unit: SourceUnit, kernel: KernelDef, statement: Node, access: Access, exits: Sequence[Node]
) -> Neighbours | None:
    kind = plain_type(access.element_type)
    plain = access.node.type == "subscript_expression" and len(access.indices) == 1 and not access.member
    if kind not in VECTORS or not plain or not isinstance(access.root, ParameterDef) or access.index is None:
        return None
    factor = access.index.coefficient("threadIdx.x")
    if factor is None or factor.value != 1 or not _is_visible(unit, kernel, statement, access.node):
        return None
    guards = _guards(statement, access.node)
    if guards is None:
        return None
    parts = [(part, False) for guard in guards for part in joined_tests(unit, guard, "&&")]
    for leaving in exits:
        test = leaving.child_by_field_name("condition")
        parts += [(part, True) for part in joined_tests(unit, test, "||")] if test is not None else []
    tests = [_test(unit, kernel, statement, part, is_negated=is_negated) for part, is_negated in parts]
    known = [test for test in tests if test is not None]
    if len(known) < len(tests):
        return None
    return Neighbours(access, kind, tuple(known))


def _guards(statement: Node, node: Node) -> list[Node] | None:
    """Return the conditions under which a node of a statement is reached; None where that is unclear."""
    guards: list[Node] = []
    inner, outer = node, node.parent
    while inner != statement:
        if outer is None:
            return None
        if outer.type in ("conditional_expression", "if_statement"):
            condition = outer.child_by_field_name("condition")
            if inner == outer.child_by_field_name("consequence") and condition is not None:
                guards.append(condition)
            elif inner != condition:
                return None
        elif outer.type == "binary_expression" and any(
            child.type in ("&&", "||") for child in outer.children
        ):
            left = outer.child_by_field_name("left")
            if inner != left and left is not None:
                if any(child.type == "||" for child in outer.children):
                    return None
                guards.append(left)
        elif (
            outer.type.endswith("_statement")
            and outer.type
            not in (
                "expression_statement",
                "compound_statement",
            )
        ) or outer.type == "lambda_expression":
            return None
        inner, outer = outer, outer.parent
    return guards


def _test(
    unit: SourceUnit, kernel: KernelDef, statement: Node, node: Node, *, is_negated: bool
) -> tuple[Node, Node, str, int] | None:
    """Return a test, or its opposite, that all elements before one pass where that one passes."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    sign = unit.operator(node) if node.type == "binary_expression" else ""
    sign = _OPPOSITE.get(sign, "") if is_negated else sign
    if sign in _MIRRORED:
        left, right, sign = right, left, _MIRRORED[sign]
    if (
        sign not in ("<", "<=")
        or left is None
        or right is None
        or not _is_visible(unit, kernel, statement, node)
    ):
        return None
    accesses = find_accesses(unit, kernel)
    if not is_pure(unit, node) or any(span_of(node).contains(access.span) for access in accesses):
        return None
    steps = [index_polynomial(unit, kernel, side).coefficient("threadIdx.x") for side in (left, right)]
    grows, still = (step.value if step is not None else None for step in steps)
    return (left, right, sign, grows) if grows is not None and grows >= 0 and still == 0 else None


def _is_visible(unit: SourceUnit, kernel: KernelDef, statement: Node, node: Node) -> bool:
    """Whether all that an expression names has its value when a statement begins."""
    flow = flow_of(unit, kernel)
    for entry in walk(node):
        declared = flow.resolve(entry) if entry.type == "identifier" else None
        if isinstance(declared, VariableDef) and declared.name_span.start >= statement.start_byte:
            return False
        if declared is not None and any(
            span_of(statement).contains(span_of(write.node)) for write in flow.writes_to(declared)
        ):
            return False
    return is_pure(unit, node)


def stored_value(unit: SourceUnit, statement: Node, access: Access) -> Node | None:
    """Return what a statement stores, where it is `p[i] = v;`, or that under tests, and no more."""
    node = statement
    while node.type in ("if_statement", "compound_statement"):
        if node.type == "if_statement" and node.child_by_field_name("alternative") is not None:
            return None
        inner = node.child_by_field_name("consequence") if node.type == "if_statement" else None
        children = [inner] if inner is not None else named(node)
        if len(children) != 1 or children[0] is None:
            return None
        node = children[0]
    assignment = named(node)[0] if node.type == "expression_statement" and len(named(node)) == 1 else node
    left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    is_plain = assignment.type == "assignment_expression" and unit.operator(assignment) == "="
    if not is_plain or left != access.node or right is None:
        return None
    return (
        right
        if not any(n.type in ("assignment_expression", "update_expression") for n in walk(right))
        else None
    )


def load_function(name: str, kind: str, items: int) -> str:
    """Return the text of a device function that loads a thread's neighbours."""
    vector, width = vector_of(kind, items)
    lines = [
        f"// Loads {items} neighbours, which begin at a multiple of {vector}.",
        f"__device__ __forceinline__ void {name}(const {kind}* from, {kind} (&to)[{items}])",
        "{",
    ]
    for part in range(items // width):
        lines.append(f"    const {vector} part{part} = reinterpret_cast<const {vector}*>(from)[{part}];")
        lines += [f"    to[{part * width + at}] = part{part}.{'xyzw'[at]};" for at in range(width)]
    return "\n".join((*lines, "}\n"))


def store_function(name: str, kind: str, items: int) -> str:
    """Return the text of a device function that stores a thread's neighbours."""
    vector, width = vector_of(kind, items)
    lines = [
        f"// Stores {items} neighbours, which begin at a multiple of {vector}.",
        f"__device__ __forceinline__ void {name}({kind}* to, const {kind} (&from)[{items}])",
        "{",
    ]
    for part in range(items // width):
        values = ", ".join(f"from[{part * width + at}]" for at in range(width))
        lines.append(f"    reinterpret_cast<{vector}*>(to)[{part}] = {{{values}}};")
    return "\n".join((*lines, "}\n"))
