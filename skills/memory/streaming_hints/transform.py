"""Mark loads and stores of data that is touched once as streaming, so that it leaves the caches first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.device_code import words_in
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.kept_elements import lvalue_of
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, StrideKind, find_accesses, thread_stride
from kernelskill.source.affine import index_reader
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import enclosing_loops, find_loops
from kernelskill.source.pointers import Space
from kernelskill.source.syntax import Node, Span, ancestors
from kernelskill.source.unit import SourceUnit

_SCALARS = (
    *(
        "char",
        "signed char",
        "unsigned char",
        "short",
        "unsigned short",
        "int",
        "unsigned",
        "long",
        "unsigned long",
    ),
    *("long long", "unsigned long long", "float", "double"),
)
_VECTORS = (
    *(
        "char2",
        "char4",
        "uchar2",
        "uchar4",
        "short2",
        "short4",
        "ushort2",
        "ushort4",
        "int2",
        "int4",
        "uint2",
    ),
    *(
        "uint4",
        "longlong2",
        "ulonglong2",
        "float2",
        "float4",
        "double2",
        "__half",
        "half",
        "__half2",
        "half2",
    ),
    *("__nv_bfloat16", "__nv_bfloat162"),
)
_TYPES = frozenset({*_SCALARS, *_VECTORS})
"""What `__ldcs` and `__stcs` take."""
_AXES = tuple(f"blockIdx.{axis}" for axis in "xyz")


@dataclass(frozen=True)
class _Streams:
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]

    def chosen(self, which: str) -> tuple[Access, ...]:
        parts = {"both": self.loads + self.stores, "loads": self.loads, "stores": self.stores}
        return parts[which]


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel with the arrays that it streams through."""
    streams = _streams(unit, kernel, context)
    names = dict.fromkeys(access.base for access in streams.chosen("both"))
    values = ("both", "stores", "loads") if streams.loads and streams.stores else ("both",)
    meaning = "which accesses are marked"
    parameter = SkillParameter(name="accesses", values=values, meaning=meaning)
    reason = f"{', '.join(names)}: each element is touched once"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=(parameter,))]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Replace loads by `__ldcs` and stores by `__stcs`."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    edits = EditSet(unit)
    for access in _streams(unit, kernel, context).chosen(parameters["accesses"]):
        if access.mode is AccessMode.READ:
            edits.insert_before(access.node, "__ldcs(&")
            edits.insert_after(access.node, ")")
            continue
        change = access.node.parent
        value = change.child_by_field_name("right") if change is not None else None
        operator = change.child_by_field_name("operator") if change is not None else None
        if change is None or value is None or operator is None:
            raise SkillRefused(f"line {access.line} stores in another way")
        edits.insert_before(change, "__stcs(&")
        gap = Span(access.node.end_byte, operator.start_byte)
        # What stands between the element and the sign, a comment perhaps, stays.
        edits.replace(operator if unit.text_of(gap).strip() else Span(gap.start, operator.end_byte), ",")
        edits.insert_after(change, ")")
    return Rewrite(edits=edits.edits)


def _streams(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> _Streams:
    if {"volatile", "asm", "__asm__"} & set(words_in(unit, kernel.span)):
        raise SkillRefused("it uses volatile memory or inline assembly")
    bindings = template_bindings(unit, kernel, context)
    accesses = [a for a in find_accesses(unit, kernel) if a.is_global]
    if any(access.root is None for access in accesses):
        raise SkillRefused("what some of its pointers point into can't be told")
    loads: list[Access] = []
    stores: list[Access] = []
    reasons: list[str] = []
    for parameter in kernel.parameters:
        own = [access for access in accesses if access.root is parameter]
        reason = _why_not(unit, kernel, parameter, own, bindings) if own else ""
        if reason:
            reasons.append(reason)
        elif own:
            loads += [access for access in own if access.mode is AccessMode.READ]
            stores += [access for access in own if access.mode is AccessMode.WRITE]
    if not loads and not stores:
        raise SkillRefused(reasons[0] if reasons else "it accesses no array by a parameter")
    if not reasons and not find_loops(unit, kernel):
        raise SkillRefused("it touches all of its data once: there is nothing that the caches should keep")
    return _Streams(tuple(loads), tuple(stores))


def _why_not(
    unit: SourceUnit,
    kernel: KernelDef,
    parameter: ParameterDef,
    own: list[Access],
    bindings: Mapping[str, str],
) -> str:
    """Return why an array is not streamed through; empty where it is."""
    name = parameter.name
    element = plain_type(bindings.get(own[0].element_type, own[0].element_type))
    if element not in _TYPES:
        return f"{name!r} has elements of type {element!r}, which no streaming access takes"
    modes = [access.mode for access in own]
    if modes.count(AccessMode.READ) > 1 or modes.count(AccessMode.WRITE) > 1 or len(own) > 2:
        return f"{name!r} is accessed at several places"
    for access in own:
        reason = _why_not_access(unit, kernel, access)
        if reason:
            return reason
    if len(own) == 2 and own[0].index != own[1].index:
        return f"{name!r} is accessed at two indices"
    return ""


def _why_not_access(unit: SourceUnit, kernel: KernelDef, access: Access) -> str:
    text = f"line {access.line}: {unit.text_of(access.node)}"
    if access.node.type != "subscript_expression" or access.space is not Space.GLOBAL or access.member:
        return f"{text} is no plain element of global memory"
    if any(parent.type in ("sizeof_expression", "decltype") for parent in ancestors(access.node)):
        return f"{text} is not evaluated"
    if access.mode is AccessMode.WRITE and not _is_plain_store(access):
        return f"{text} is stored inside an expression"
    if access.mode not in (AccessMode.READ, AccessMode.WRITE):
        return f"{text} is updated in place"
    if thread_stride(access).kind is not StrideKind.UNIT or access.index is None:
        return f"{text}: neighbouring threads do not take neighbouring elements"
    index = access.index
    body = unit.text_of(kernel.body) if kernel.body is not None else ""
    if any(axis in body and not index.depends_on(axis) for axis in _AXES) or "blockIdx" not in body:
        return f"{text} is the same for several blocks"
    reader = index_reader(unit, kernel)
    for loop in enclosing_loops(find_loops(unit, kernel), access.node):
        atom = reader.loop_atom(loop)
        if not loop.variable or not index.depends_on(atom):
            return f"{text} is accessed again in a loop"
        if any(index.coefficient(atom) == index.coefficient(f"threadIdx.{axis}") for axis in "xyz"):
            return f"{text} is accessed again by the threads beside"
    return ""


def _is_plain_store(access: Access) -> bool:
    node: Node | None = lvalue_of(access).parent
    if lvalue_of(access) != access.node or node is None or node.type != "assignment_expression":
        return False
    value = node.child_by_field_name("right")
    statement = node.parent
    plain = value is not None and value.type not in ("initializer_list", "comma_expression")
    return plain and statement is not None and statement.type == "expression_statement"
