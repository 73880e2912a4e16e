"""Whether two accesses can't touch the same memory: proven, promised, or not known."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.schema.task import Promise
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.dependence import roots_alias
from kernelskill.source.pointers import Space, pointer_reader
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, strip_parentheses
from kernelskill.source.unit import SourceUnit

PROMISED = "no two pointer arguments overlap (promised by no_alias)"
_SCALARS = {
    "float": "float",
    "double": "double",
    "half": "half",
    "__half": "half",
    "__nv_bfloat16": "bfloat16",
    "short": "short",
    "unsigned short": "short",
    "int": "int",
    "unsigned": "int",
    "long": "long",
    "unsigned long": "long",
    "long long": "long long",
    "unsigned long long": "long long",
}
"""Types that no other class of type may alias; char, vectors and structs are left out on purpose."""
_ALLOCATORS = ("cudaMalloc", "cudaMallocAsync")


@dataclass(frozen=True)
class Separation:
    """The answer, and the assumption that it rests on (empty where it is proven)."""

    disjoint: bool
    assumption: str = ""


def distinct_types(one: str, other: str) -> bool:
    """Whether objects of two scalar types can't be accessed by one another's type."""
    known = _SCALARS.get(one), _SCALARS.get(other)
    return None not in known and known[0] != known[1]


_UNKNOWN = Separation(False)
_PROVEN = Separation(True)


def separate(
    unit: SourceUnit, kernel: KernelDef, first: Access, second: Access, context: SkillContext
) -> Separation:
    """Return whether two accesses of a kernel can't meet at one address."""
    if first.root is None or second.root is None:
        return _UNKNOWN
    if first.root is second.root:
        return _PROVEN if _differ_by_constant(first, second) else _UNKNOWN
    if first.space is not second.space and Space.UNKNOWN not in (first.space, second.space):
        return _PROVEN
    if isinstance(first.root, VariableDef) and isinstance(second.root, VariableDef):
        return _PROVEN if roots_alias(first.root, second.root).is_no else _UNKNOWN
    if not isinstance(first.root, ParameterDef) or not isinstance(second.root, ParameterDef):
        return _UNKNOWN
    typed = all(
        isinstance(access.root, ParameterDef)
        and plain_type(access.element_type) == plain_type(access.root.pointee_type)
        for access in (first, second)
    )
    return separate_parameters(unit, kernel, first.root, second.root, context, typed=typed)


def _differ_by_constant(first: Access, second: Access) -> bool:
    if first.index is None or second.index is None or first.element_type != second.element_type:
        return False
    distance = (first.index - second.index).value
    return distance is not None and distance != 0


def separate_parameters(
    unit: SourceUnit,
    kernel: KernelDef,
    first: ParameterDef,
    second: ParameterDef,
    context: SkillContext,
    *,
    typed: bool = True,
) -> Separation:
    """Return whether what two pointer parameters of a kernel point into can't overlap.

    Args:
        unit: The file.
        kernel: One of its kernels.
        first: One parameter.
        second: Another.
        context: The promises.
        typed: Whether both are accessed by the types that they are declared with.
    """
    if first.is_restrict or second.is_restrict:
        return _PROVEN
    one, other = (_SCALARS.get(plain_type(p.pointee_type)) for p in (first, second))
    assumption = ""
    try:
        entries = launches_of(unit, kernel, context)
    except SkillRefused:
        return _UNKNOWN
    for entry in entries:
        answer = _separate_arguments(kernel, first, second, entry, context)
        if not answer.disjoint and (
            not typed
            or one is None
            or other is None
            or one == other
            or _same_source(kernel, first, second, entry)
        ):
            return _UNKNOWN
        assumption = assumption or answer.assumption
    return Separation(True, assumption)


def _arguments(
    kernel: KernelDef, first: ParameterDef, second: ParameterDef, entry: KernelLaunch
) -> tuple[Node, Node] | None:
    positions = {parameter.name: index for index, parameter in enumerate(kernel.parameters)}
    given = entry.launch.arguments
    one, other = positions[first.name], positions[second.name]
    if max(one, other) >= len(given):
        return None
    return given[one].node, given[other].node


def _same_source(kernel: KernelDef, first: ParameterDef, second: ParameterDef, entry: KernelLaunch) -> bool:
    """Whether one launch hands the same pointer to both, or that can't be told."""
    found = _arguments(kernel, first, second, entry)
    sources = [source_of(entry, node) for node in found] if found is not None else [None]
    return None in sources or len(set(sources)) == 1


def _separate_arguments(
    kernel: KernelDef, first: ParameterDef, second: ParameterDef, entry: KernelLaunch, context: SkillContext
) -> Separation:
    found = _arguments(kernel, first, second, entry)
    if found is None:
        return _UNKNOWN
    one, other = source_of(entry, found[0]), source_of(entry, found[1])
    if one is None or other is None or one == other:
        return _UNKNOWN
    if "fresh" in (one[0], other[0]):
        return _PROVEN
    task = context.task
    is_launcher = entry.function is not None and (
        task is None or entry.function.name == task.signature.symbol
    )
    return Separation(True, PROMISED) if is_launcher and context.promises(Promise.NO_ALIAS) else _UNKNOWN


def source_of(entry: KernelLaunch, node: Node) -> tuple[str, str] | None:
    """Return where a pointer argument comes from: (`parameter` or `fresh`, name); None where unknown."""
    if entry.function is None:
        return None
    found = pointer_reader(entry.unit, entry.function).read(node)
    if isinstance(found.root, ParameterDef):
        return ("parameter", found.root.name)
    inner = strip_parentheses(node)
    if inner.type != "identifier":
        return None
    declared = flow_of(entry.unit, entry.function).resolve(inner)
    return ("fresh", entry.unit.text_of(inner)) if _is_fresh(entry, declared) else None


def _is_fresh(entry: KernelLaunch, declared: Declared | None) -> bool:
    """Whether a local pointer only ever holds what this call of the function has allocated for it."""
    if not isinstance(declared, VariableDef) or entry.function is None or not declared.pointer_depth:
        return False
    allocated = False
    for write in flow_of(entry.unit, entry.function).writes_to(declared):
        if write.operator == "init" and entry.unit.text_of(write.value or write.node) in (
            "nullptr",
            "NULL",
            "0",
        ):
            continue
        call = write.node.parent
        while call is not None and call.type != "call_expression":
            call = call.parent
        function = call.child_by_field_name("function") if call is not None else None
        name = entry.unit.text_of(function).split("<")[0] if function is not None else ""
        if write.operator != "&" or name not in _ALLOCATORS:
            return False
        allocated = True
    return allocated and declared.storage.value == "host"
