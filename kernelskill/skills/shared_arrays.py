"""Shared arrays of a kernel: their extents, their size, and whether every use is a whole subscript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.skills.device_code import macros_in, reached_functions, words_in
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.skills.value_ranges import ValueRanges
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import walk
from kernelskill.source.unit import SourceUnit

STATIC_LIMIT = 48 * 1024
"""Bytes of shared memory that a block may have without asking for more."""
SIZES = {
    **dict.fromkeys(("char", "signed char", "unsigned char", "bool"), 1),
    **dict.fromkeys(("short", "unsigned short", "half", "__half", "__nv_bfloat16"), 2),
    **dict.fromkeys(("int", "unsigned", "float", "half2", "__half2"), 4),
    **dict.fromkeys(("double", "long", "unsigned long", "long long", "unsigned long long", "float2"), 8),
    **dict.fromkeys(("int2", "uint2"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}
"""Bytes of an element."""


@dataclass(frozen=True)
class SharedArray:
    """One shared array with constant extents."""

    variable: VariableDef
    extents: tuple[int, ...]
    element_bytes: int

    @property
    def bytes(self) -> int:
        size = self.element_bytes
        for extent in self.extents:
            size *= extent
        return size


def read_shared_array(variable: VariableDef, ranges: ValueRanges) -> SharedArray | None:
    """Return a shared array; None where its extents or the size of its elements are not known."""
    kind = plain_type(ranges.bindings.get(variable.base_type, variable.base_type))
    values = [ranges.constant(node) if node is not None else None for node in variable.dimensions]
    extents = tuple(value for value in values if value is not None and value > 0)
    if len(extents) != len(values) or kind not in SIZES or variable.pointer_depth:
        return None
    return SharedArray(variable, extents, SIZES[kind])


def static_shared_bytes(
    unit: SourceUnit, kernel: KernelDef, ranges: ValueRanges, context: SkillContext
) -> int:
    """Return the bytes of shared memory that a kernel declares.

    Raises:
        SkillRefused: They can't be told, or the launch adds more.
    """
    total = 0
    for variable in kernel.locals:
        if variable.storage is Storage.DYNAMIC_SHARED:
            raise SkillRefused("it also has shared memory of a size that the launch gives")
        if variable.storage is Storage.SHARED:
            found = read_shared_array(variable, ranges)
            if found is None:
                raise SkillRefused(f"the size of the shared variable {variable.name!r} can't be told")
            total += -(-found.bytes // 16) * 16
    _refuse_hidden_shared(unit, kernel, context)
    return total


def _refuse_hidden_shared(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> None:
    """Decline where shared memory may be declared elsewhere."""
    for other, function in reached_functions(unit, kernel, context):
        if function is not kernel and "__shared__" in words_in(other, function.span):
            raise SkillRefused(f"function {function.name!r} has shared memory of its own")
    for macro in macros_in(unit, words_in(unit, kernel.span), context):
        if "__shared__" in macro.possible:
            raise SkillRefused(f"macro {macro.name!r} may declare shared memory")
    for variable in unit.globals:
        if variable.storage in (Storage.SHARED, Storage.DYNAMIC_SHARED):
            raise SkillRefused(f"the file declares the shared variable {variable.name!r}")


def refuse_dynamic(entries: Sequence[KernelLaunch]) -> None:
    """Decline where a launch may give the kernel more shared memory than it declares.

    Raises:
        SkillRefused: One does.
    """
    for entry in entries:
        shared = entry.launch.shared
        if shared is not None and entry.constant(shared.node) != 0:
            raise SkillRefused(f"line {entry.launch.line} launches it with dynamic shared memory")


def whole_accesses(
    unit: SourceUnit, kernel: KernelDef, variable: VariableDef, context: SkillContext
) -> list[Access]:
    """Return every access to an array.

    Raises:
        SkillRefused: A use is more than an element with all of its subscripts.
    """
    for macro in macros_in(unit, words_in(unit, kernel.span), context):
        if variable.name in macro.possible:
            raise SkillRefused(f"macro {macro.name!r} may use {variable.name!r}")
    own = [access for access in find_accesses(unit, kernel) if access.root is variable]
    flow = flow_of(unit, kernel)
    uses = (
        [
            node
            for node in walk(kernel.body)
            if node.type == "identifier"
            and node.start_byte != variable.name_span.start
            and flow.resolve(node) is variable
        ]
        if kernel.body is not None
        else []
    )
    for access in own:
        whole = access.node.type == "subscript_expression" and len(access.indices) == len(variable.dimensions)
        if not whole or access.mode is AccessMode.ATOMIC or access.base != variable.name:
            raise SkillRefused(f"line {access.line}: {unit.text_of(access.node)} is no plain element")
    if len(uses) != len(own):
        raise SkillRefused(f"{variable.name!r} is used as more than an array of elements")
    return own
