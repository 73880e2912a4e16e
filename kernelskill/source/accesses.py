"""Find the memory accesses of a function: what is read or written, where, in which order of threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from tree_sitter import Node

from kernelskill.source.definitions import FunctionDef
from kernelskill.source.macro_elements import macro_elements
from kernelskill.source.pointers import PointerReader, Space, Target, pointer_reader
from kernelskill.source.polynomial import Atom, Polynomial
from kernelskill.source.scopes import Declared
from kernelskill.source.syntax import Span, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_WARP = 32


class AccessMode(StrEnum):
    """What happens to an element."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read_write"
    ATOMIC = "atomic"

    @property
    def writes(self) -> bool:
        return self is not AccessMode.READ

    @property
    def reads(self) -> bool:
        return self is not AccessMode.WRITE


@dataclass(frozen=True, eq=False)
class Access:
    """One access to memory through a pointer or to an array."""

    base: str
    """The pointer or array as written, for example `a` in `a[i]`."""
    root: Declared | None
    """The parameter or array that it points into, aliases followed; None where unknown."""
    root_name: str
    space: Space
    mode: AccessMode
    element_type: str
    """Type of the element as accessed; empty where unknown."""
    member: str
    """The fields behind the element, for example `.x`; empty without."""
    indices: tuple[Node, ...]
    """Index expressions as written, from the left; empty for `*p`."""
    index: Polynomial | None
    """Elements from the start of the root, aliases and array dimensions included; None where unknown."""
    node: Node = field(repr=False)
    """The element: `a[i]` of `a[i].x`, `*(p + i)`; for an atomic the address argument."""
    statement: Node = field(repr=False)
    span: Span
    line: int

    @property
    def is_global(self) -> bool:
        return self.space in (Space.GLOBAL, Space.UNKNOWN)

    @property
    def is_shared(self) -> bool:
        return self.space is Space.SHARED


class StrideKind(StrEnum):
    """How the elements of neighbouring threads lie."""

    UNIFORM = "uniform"
    """All threads take one element."""
    UNIT = "unit"
    """Neighbours take neighbours."""
    CONSTANT = "constant"
    """A constant number of elements apart."""
    SYMBOLIC = "symbolic"
    """A number of elements apart that is known at run time, for example the row length."""
    IRREGULAR = "irregular"
    """The index depends on the thread, but not linearly; or it is unknown."""


@dataclass(frozen=True)
class Stride:
    """Elements from one thread to the next along an axis."""

    kind: StrideKind
    elements: int | None
    """The constant, where it is one."""
    text: str
    """For people: `1`, `n`, `unknown`."""

    @property
    def is_coalesced(self) -> bool:
        """Whether a warp along the axis takes a run of neighbours, or one element."""
        return self.kind in (StrideKind.UNIFORM, StrideKind.UNIT)


@lru_cache(maxsize=256)
def find_accesses(unit: SourceUnit, function: FunctionDef) -> tuple[Access, ...]:
    """Return every access of a function to memory, in the order of the text.

    Elements that a macro names are among them, accesses inside the functions it calls are not.
    """
    if function.body is None:
        return ()
    reader = pointer_reader(unit, function)
    found: list[Access] = []
    for node in walk(function.body):
        if node.type == "call_expression":
            found.extend(_call_accesses(unit, reader, node))
            found.extend(_macro_accesses(unit, reader, node))
        elif _is_element(unit, reader, node):
            found.append(_element_access(unit, reader, node))
    return tuple(found)


def _is_element(unit: SourceUnit, reader: PointerReader, node: Node) -> bool:
    """Whether a node is the outermost subscript, a dereference or an arrow."""
    if _is_address_only(unit, node):
        return False
    if node.type == "subscript_expression":
        parent = node.parent
        inner = parent is not None and parent.type == "subscript_expression"
        if inner and parent is not None and parent.child_by_field_name("argument") == node:
            return not reader.element(node).row
        return True
    if node.type == "pointer_expression":
        return unit.operator(node) == "*"
    return node.type == "field_expression" and any(child.type == "->" for child in node.children)


def _is_address_only(unit: SourceUnit, node: Node) -> bool:
    """Whether only the address of an element is taken."""
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    return parent is not None and parent.type == "pointer_expression" and unit.operator(parent) == "&"


def _element_access(unit: SourceUnit, reader: PointerReader, node: Node) -> Access:
    if node.type == "subscript_expression":
        indices, base = _indices(node)
        target = reader.element(node)
    else:
        argument = node.child_by_field_name("argument") or node
        target = reader.read(argument)
        base, indices = argument, _offset_of(unit, argument)
    whole, member = _with_members(unit, node)
    if node.type == "field_expression":
        access_field = node.child_by_field_name("field")
        member = f".{unit.text_of(access_field)}{member}" if access_field is not None else member
    return _access(unit, reader, node, base, indices, target, _mode(unit, whole), member)


def _access(
    unit: SourceUnit,
    reader: PointerReader,
    node: Node,
    base: Node,
    indices: tuple[Node, ...],
    target: Target,
    mode: AccessMode,
    member: str = "",
) -> Access:
    return Access(
        base=unit.text_of(_first_name(base)),
        root=target.root,
        root_name=target.root_name,
        space=target.space,
        mode=mode,
        element_type=target.element_type,
        member=member,
        indices=indices,
        index=target.offset if not target.row or not target.row[1:] else None,
        node=node,
        statement=statement_of(node),
        span=span_of(node),
        line=unit.line_of(node),
    )


def _first_name(node: Node) -> Node:
    return next((entry for entry in walk(node) if entry.type == "identifier"), node)


def _indices(node: Node) -> tuple[tuple[Node, ...], Node]:
    """Return the indices of nested subscripts from the left, and the base."""
    found: list[Node] = []
    while node.type == "subscript_expression":
        listed, inner = node.child_by_field_name("indices"), node.child_by_field_name("argument")
        found = [*(named(listed) if listed is not None else []), *found]
        if inner is None:
            break
        node = inner
    return tuple(found), node


def _offset_of(unit: SourceUnit, argument: Node) -> tuple[Node, ...]:
    inner = strip_parentheses(argument)
    right = inner.child_by_field_name("right")
    is_sum = inner.type == "binary_expression" and unit.operator(inner) in ("+", "-")
    return (right,) if is_sum and right is not None else ()


def _with_members(unit: SourceUnit, node: Node) -> tuple[Node, str]:
    """Return the lvalue with the fields behind an element."""
    member = ""
    parent = node.parent
    while parent is not None and parent.type in ("field_expression", "parenthesized_expression"):
        if parent.type == "field_expression":
            if any(child.type == "->" for child in parent.children):
                break
            name = parent.child_by_field_name("field")
            member += f".{unit.text_of(name)}" if name is not None else ""
        node, parent = parent, parent.parent
    return node, member


def _mode(unit: SourceUnit, node: Node) -> AccessMode:
    parent = node.parent
    if parent is None:
        return AccessMode.READ
    if parent.type == "assignment_expression" and parent.child_by_field_name("left") == node:
        return AccessMode.WRITE if unit.operator(parent) == "=" else AccessMode.READ_WRITE
    if parent.type == "update_expression":
        return AccessMode.READ_WRITE
    return AccessMode.READ


def _call_accesses(unit: SourceUnit, reader: PointerReader, node: Node) -> list[Access]:
    """Return what `atomicAdd(&x[i], v)`, `__ldg(x + i)` and `__stcg(x + i, v)` access."""
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or listed is None or not named(listed):
        return []
    mode = intrinsic_mode(unit.text_of(function))
    if mode is None:
        return []
    address = named(listed)[0]
    inner = strip_parentheses(address)
    indices: tuple[Node, ...] = ()
    if inner.type == "pointer_expression":
        element = inner.child_by_field_name("argument")
        if element is not None and element.type == "subscript_expression":
            indices = _indices(element)[0]
    else:
        indices = _offset_of(unit, address)
    return [_access(unit, reader, address, address, indices, reader.read(address), mode)]


def _macro_accesses(unit: SourceUnit, reader: PointerReader, node: Node) -> list[Access]:
    """Return the elements that `AT(a, i, j)` names; the node is the macro's use."""
    found = []
    for element in macro_elements(reader, node):
        whole, member = _with_members(unit, node) if element.is_whole else (node, "")
        mode = _mode(unit, whole) if element.is_whole else AccessMode.READ
        mode = AccessMode.WRITE if element.is_written else mode
        access = _access(unit, reader, node, node, (), element.target, mode, member)
        found.append(replace(access, base=element.base))
    return found


def intrinsic_mode(name: str) -> AccessMode | None:
    """Return what an intrinsic does to the memory that its first argument points at."""
    name = name.split("<")[0].split("::")[-1]
    if name.startswith("atomic"):
        return AccessMode.ATOMIC
    if name in ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv"):
        return AccessMode.READ
    if name in ("__stwb", "__stcg", "__stcs", "__stwt"):
        return AccessMode.WRITE
    return None


def statement_of(node: Node) -> Node:
    """Return the statement that a node belongs to."""
    current = node
    while current.parent is not None:
        if current.type.endswith("_statement") or current.type == "declaration":
            return current
        current = current.parent
    return node


def thread_stride(access: Access, axis: str = "x", values: Mapping[str, int] | None = None) -> Stride:
    """Return how far apart the elements of neighbouring threads lie.

    Args:
        access: The access.
        axis: `x`, `y` or `z` of `threadIdx`.
        values: Known values of atoms, for example `{"blockDim.x": 16}`.
    """
    if access.index is None:
        return Stride(StrideKind.IRREGULAR, None, "unknown")
    index = access.index.substitute(dict(values)) if values else access.index
    factor = index.coefficient(f"threadIdx.{axis}")
    if factor is None:
        return Stride(StrideKind.IRREGULAR, None, "unknown")
    return _stride_of(factor)


def _stride_of(factor: Polynomial) -> Stride:
    value = factor.value
    if value is None:
        return Stride(StrideKind.SYMBOLIC, None, str(factor))
    kind = {0: StrideKind.UNIFORM, 1: StrideKind.UNIT, -1: StrideKind.UNIT}.get(value, StrideKind.CONSTANT)
    return Stride(kind, value, str(value))


def likely_thread_stride(access: Access, axis: str = "x", values: Mapping[str, int] | None = None) -> Stride:
    """Return the stride that most neighbours see where divisions make the exact one irregular.

    A division by a run-time value or by at least a warp is taken as the same for neighbours, and a
    remainder as moving with the thread. A guess for triggers, never a proof.
    """
    exact = thread_stride(access, axis, values)
    if exact.kind is not StrideKind.IRREGULAR or access.index is None:
        return exact
    index = access.index.substitute(dict(values)) if values else access.index
    guessed = _within_a_run(index).coefficient(f"threadIdx.{axis}")
    return _stride_of(guessed) if guessed is not None else exact


def _within_a_run(index: Polynomial) -> Polynomial:
    result = Polynomial()
    for monomial, factor in index.terms:
        product = Polynomial.constant(factor)
        for atom in monomial:
            product = product * _atom_within_a_run(atom)
        result = result + product
    return result


def _atom_within_a_run(atom: Atom) -> Polynomial:
    if not atom.operation:
        return Polynomial.of(atom)
    left, right = (_within_a_run(operand) for operand in atom.operands)
    size = right.value
    if atom.operation == ">>" and size is not None:
        size = 1 << min(size, 63)
    if atom.operation == "&" and size is not None:
        size += 1
    if size is not None and size < _WARP:
        return Polynomial.of(atom)
    if atom.operation in ("%", "&"):
        return left
    fixed = Atom(atom.key, atom.text, frozenset(t for t in atom.depends if not t.startswith("threadIdx.")))
    return Polynomial.of(fixed)


def accesses_of(accesses: tuple[Access, ...], root: str) -> tuple[Access, ...]:
    """Return the accesses that certainly go to one parameter or array."""
    return tuple(access for access in accesses if access.root is not None and access.root_name == root)
