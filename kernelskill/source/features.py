"""Static features of a kernel: what triggers of skills ask for, and what the policy learns from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.computed import computed
from kernelskill.source.accesses import (
    Access,
    AccessMode,
    StrideKind,
    find_accesses,
    likely_thread_stride,
    thread_stride,
)
from kernelskill.source.affine import index_polynomial
from kernelskill.source.declarations import Storage
from kernelskill.source.definitions import KernelDef
from kernelskill.source.expressions import (
    TRANSCENDENTALS,
    MathCall,
    find_literals,
    find_math_calls,
    static_type,
)
from kernelskill.source.launches import LaunchSite, block_shape
from kernelskill.source.loops import BARRIERS, Loop, enclosing_loops, find_loops
from kernelskill.source.pointers import Space
from kernelskill.source.purity import called_name
from kernelskill.source.syntax import walk
from kernelskill.source.unit import SourceUnit
from kernelskill.source.writes import is_only_read

FEATURES_VERSION = 1
"""Raise it when a feature's meaning changes or one goes; new ones may be added."""

_VECTOR_TYPES = frozenset(
    f"{base}{width}"
    for base in ("float", "double", "int", "uint", "half", "__half", "short")
    for width in "234"
)
_INTEGER_TYPES = (
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
    "short",
    "char",
)
_SHUFFLES = ("__shfl", "__ballot", "__any", "__all", "__reduce", "__match")
_SMALL_BLOCK = 128


@dataclass(frozen=True, eq=False)
class _Facts:
    unit: SourceUnit
    kernel: KernelDef
    launches: tuple[LaunchSite, ...]

    @computed
    def loops(self) -> tuple[Loop, ...]:
        return find_loops(self.unit, self.kernel)

    @computed
    def accesses(self) -> tuple[Access, ...]:
        return find_accesses(self.unit, self.kernel)

    @computed
    def global_accesses(self) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if a.is_global)

    @computed
    def nodes(self) -> tuple[Node, ...]:
        return tuple(walk(self.kernel.body)) if self.kernel.body is not None else ()

    @computed
    def calls(self) -> tuple[str, ...]:
        return tuple(called_name(self.unit, n) for n in self.nodes if n.type == "call_expression")

    @computed
    def block_values(self) -> dict[str, int]:
        """Block dimensions that all launches agree on."""
        shapes = {block_shape(launch) for launch in self.launches}
        if len(shapes) != 1:
            return {}
        shape = next(iter(shapes))
        return {f"blockDim.{a}": v for a, v in zip("xyz", shape, strict=True) if v is not None}

    @computed
    def thread_axes(self) -> set[str]:
        texts = {"".join(self.unit.text_of(n).split()) for n in self.nodes if n.type == "field_expression"}
        return {axis for axis in "xyz" if f"threadIdx.{axis}" in texts}

    def kinds(self) -> list[StrideKind]:
        """Likely strides along x of the global accesses."""
        return [likely_thread_stride(a, "x", self.block_values).kind for a in self.global_accesses]


def _flag(value: object) -> float:
    return 1.0 if value else 0.0


def _shared(facts: _Facts) -> float:
    return _flag(any(v.storage in (Storage.SHARED, Storage.DYNAMIC_SHARED) for v in facts.kernel.locals))


def _barriers(facts: _Facts) -> float:
    return float(sum(call.split(".")[-1].split("->")[-1] in BARRIERS for call in facts.calls))


def _double_literals(facts: _Facts) -> float:
    if facts.kernel.body is None:
        return 0.0
    return float(sum(site.number.is_double for site in find_literals(facts.unit, facts.kernel.body)))


def _double_math(facts: _Facts) -> float:
    types = [static_type(facts.unit, facts.kernel, n) for n in facts.nodes if n.type == "binary_expression"]
    declared = any(v.base_type == "double" for v in facts.kernel.locals)
    return _flag("double" in types or declared or any(c.is_double for c in _maths(facts)))


def _maths(facts: _Facts) -> tuple[MathCall, ...]:
    return find_math_calls(facts.unit, facts.kernel)


def _integer_divisions(facts: _Facts) -> float:
    """Count integer `/` and `%` whose divisor is no constant."""
    count = 0
    for node in facts.nodes:
        right = node.child_by_field_name("right") if node.type == "binary_expression" else None
        if right is None or facts.unit.operator(node) not in ("/", "%"):
            continue
        fixed = facts.unit.constants.value(right) is not None
        count += not fixed and static_type(facts.unit, facts.kernel, node) in _INTEGER_TYPES
    return float(count)


def _memory_accumulation(facts: _Facts) -> float:
    """Whether a loop reads and writes one element that does not move with the loop."""
    for access in facts.global_accesses:
        inside = enclosing_loops(facts.loops, access.node)
        if access.mode is not AccessMode.READ_WRITE or not inside or access.index is None:
            continue
        if not access.index.depends_on(inside[-1].variable) and not access.index.depends_on(inside[-1].key):
            return 1.0
    return 0.0


def _uncoalesced(facts: _Facts) -> float:
    bad = (StrideKind.CONSTANT, StrideKind.SYMBOLIC, StrideKind.IRREGULAR)
    kinds = facts.kinds()
    return sum(kind in bad for kind in kinds) / len(kinds) if kinds else 0.0


def _coalesced_by_y(facts: _Facts) -> float:
    """Whether swapping x and y would make accesses along x coalesced that are strided now."""
    strided = [
        a
        for a in facts.global_accesses
        if thread_stride(a, "x").kind in (StrideKind.SYMBOLIC, StrideKind.CONSTANT)
    ]
    return _flag(any(thread_stride(a, "y").kind is StrideKind.UNIT for a in strided))


def _not_restrict(facts: _Facts) -> float:
    names = [p.name for p in facts.kernel.parameters if p.is_pointer and not p.is_restrict]
    return float(sum(is_only_read(facts.unit, facts.kernel, name) for name in names))


def _grid_stride(facts: _Facts) -> float:
    for loop in facts.loops:
        if loop.step is not None and loop.step_operator == "+":
            step = index_polynomial(facts.unit, facts.kernel, loop.step)
            if any(step.depends_on(f"gridDim.{axis}") for axis in "xyz"):
                return 1.0
    return 0.0


def _vector_types(facts: _Facts) -> float:
    declared = {v.base_type for v in facts.kernel.locals} | {p.pointee_type for p in facts.kernel.parameters}
    return _flag((declared | {a.element_type for a in facts.accesses}) & _VECTOR_TYPES)


def _struct_access(facts: _Facts) -> float:
    members = (a for a in facts.global_accesses if a.member and a.element_type not in _VECTOR_TYPES)
    return float(sum(1 for _ in members))


def _bank_conflicts(facts: _Facts) -> float:
    """Count shared accesses whose stride along x is a multiple of 2 of 32-bit words."""
    shared = [a for a in facts.accesses if a.is_shared]
    strides = [thread_stride(a, "x", facts.block_values).elements for a in shared]
    return float(sum(stride is not None and stride != 0 and stride % 2 == 0 for stride in strides))


def _reused_loads(facts: _Facts) -> float:
    """Whether threads of a block load the same global elements inside a loop."""
    for access in facts.global_accesses:
        if access.mode is AccessMode.READ and enclosing_loops(facts.loops, access.node):
            kinds = [thread_stride(access, axis).kind for axis in sorted(facts.thread_axes)]
            if StrideKind.UNIFORM in kinds:
                return 1.0
    return 0.0


def _divergence(facts: _Facts) -> float:
    """Count conditions that take the thread's index modulo something."""
    count = 0
    for node in facts.nodes:
        condition = node.child_by_field_name("condition") if "statement" in node.type else None
        if condition is not None and node.type in ("if_statement", "switch_statement"):
            found = [n for n in walk(condition) if n.type == "binary_expression"]
            count += any(
                facts.unit.operator(n) == "%"
                and any(
                    index_polynomial(facts.unit, facts.kernel, n).depends_on(f"threadIdx.{axis}")
                    for axis in "xyz"
                )
                for n in found
            )
    return float(count)


def _block_threads(facts: _Facts) -> float:
    """Threads of a block where all launches agree on a constant; 0 where unknown."""
    sizes = [facts.block_values.get(f"blockDim.{axis}") for axis in "xyz"]
    if any(size is None for size in sizes):
        return 0.0
    product = 1
    for size in sizes:
        product *= size or 1
    return float(product)


def _loop_depth(facts: _Facts) -> float:
    return float(max((loop.depth for loop in facts.loops), default=0))


def _small_loops(facts: _Facts) -> float:
    return float(sum(loop.is_innermost and loop.trip_count is not None for loop in facts.loops))


def _serial_row(facts: _Facts) -> float:
    """Count global accesses in a loop that each thread walks along unit by unit while threads are apart."""
    count = 0
    for access in facts.global_accesses:
        inside = enclosing_loops(facts.loops, access.node)
        if inside and access.index is not None:
            along = access.index.coefficient(inside[-1].variable)
            across = thread_stride(access, "x").kind
            count += along is not None and along.value == 1 and across is StrideKind.SYMBOLIC
    return float(count)


def _counts(*names: str) -> Callable[[_Facts], float]:
    return lambda facts: float(sum(call.startswith(names) for call in facts.calls))


def _strides(kind: StrideKind) -> Callable[[_Facts], float]:
    return lambda facts: float(sum(found is kind for found in facts.kinds()))


@dataclass(frozen=True)
class Feature:
    """One feature with its meaning."""

    meaning: str
    compute: Callable[[_Facts], float]


FEATURES: Mapping[str, Feature] = {
    "lines": Feature("lines of the kernel", lambda f: float(f.unit.text_of(f.kernel.span).count("\n") + 1)),
    "is_opaque": Feature("1 where the parser could not read it", lambda f: _flag(f.kernel.is_opaque)),
    "is_templated": Feature("1 for a template", lambda f: _flag(f.kernel.is_templated)),
    "parameters": Feature("number of parameters", lambda f: float(len(f.kernel.parameters))),
    "pointer_parameters": Feature(
        "number of pointers", lambda f: float(sum(p.is_pointer for p in f.kernel.parameters))
    ),
    "has_launch_bounds": Feature("1 with __launch_bounds__", lambda f: _flag(f.kernel.launch_bounds)),
    "has_shared_memory": Feature("1 where it declares shared memory", _shared),
    "has_barrier": Feature("1 with a barrier", lambda f: _flag(_barriers(f))),
    "barriers": Feature("number of barriers written", _barriers),
    "has_atomics": Feature("1 with atomics", lambda f: _flag(_counts("atomic")(f))),
    "global_atomics": Feature(
        "atomics on global memory",
        lambda f: float(sum(a.mode is AccessMode.ATOMIC for a in f.global_accesses)),
    ),
    "has_warp_operations": Feature("1 with shuffles or votes", lambda f: _flag(_counts(*_SHUFFLES)(f))),
    "has_inline_asm": Feature("1 with asm", lambda f: _flag(any("asm_expr" in n.type for n in f.nodes))),
    "has_double_literals": Feature("1 with literals of type double", lambda f: _flag(_double_literals(f))),
    "double_literals": Feature("number of literals of type double", _double_literals),
    "has_double_math": Feature("1 where something is computed in double", _double_math),
    "has_pow": Feature("1 with pow or powf", lambda f: _flag(any(c.base == "pow" for c in _maths(f)))),
    "has_transcendentals": Feature(
        "number of transcendental calls", lambda f: float(sum(c.base in TRANSCENDENTALS for c in _maths(f)))
    ),
    "has_integer_division": Feature("1 with / or % by a variable", lambda f: _flag(_integer_divisions(f))),
    "integer_divisions": Feature("number of / and % by a variable", _integer_divisions),
    "loops": Feature("number of loops", lambda f: float(len(f.loops))),
    "loop_depth": Feature("depth of the deepest loop nest", _loop_depth),
    "constant_inner_loops": Feature("innermost loops with a constant trip count", _small_loops),
    "has_grid_stride_loop": Feature("1 where a loop steps by the grid", _grid_stride),
    "has_loop_accumulation_in_memory": Feature("1 where a loop accumulates in memory", _memory_accumulation),
    "global_accesses": Feature("accesses to global memory written", lambda f: float(len(f.global_accesses))),
    "uncoalesced_access": Feature("share of global accesses not coalesced along x", _uncoalesced),
    "strided_by_thread_x": Feature(
        "global accesses with a stride along x that is not 0 or 1",
        lambda f: _strides(StrideKind.CONSTANT)(f) + _strides(StrideKind.SYMBOLIC)(f),
    ),
    "irregular_by_thread_x": Feature("global accesses irregular along x", _strides(StrideKind.IRREGULAR)),
    "unit_by_thread_y": Feature("1 where accesses strided along x are unit along y", _coalesced_by_y),
    "serial_row_walk": Feature("global accesses where each thread walks a row of its own", _serial_row),
    "reused_loads_in_loop": Feature(
        "1 where threads of a block load the same elements in a loop", _reused_loads
    ),
    "shared_even_stride": Feature("shared accesses with an even stride along x", _bank_conflicts),
    "read_only_pointers_not_restrict": Feature("pointers only read, not __restrict__", _not_restrict),
    "uses_vector_types": Feature("1 with float4 and the like", _vector_types),
    "struct_access": Feature("accesses to a field of a struct in global memory", _struct_access),
    "local_arrays": Feature(
        "arrays in registers or local memory",
        lambda f: float(sum(v.is_array and v.storage is Storage.LOCAL for v in f.kernel.locals)),
    ),
    "constant_memory": Feature(
        "1 where it reads __constant__", lambda f: _flag(any(a.space is Space.CONSTANT for a in f.accesses))
    ),
    "divergent_conditions": Feature("conditions on the thread's index modulo something", _divergence),
    "thread_axes_used": Feature("number of axes of threadIdx used", lambda f: float(len(f.thread_axes))),
    "launches_in_file": Feature("launches of this kernel in the file", lambda f: float(len(f.launches))),
    "kernels_in_file": Feature("kernels in the file", lambda f: float(len(f.unit.kernels))),
    "block_threads": Feature("threads of a block; 0 where not constant", _block_threads),
    "small_block": Feature(
        "1 for fewer than 128 threads", lambda f: _flag(0 < _block_threads(f) < _SMALL_BLOCK)
    ),
}
"""Every feature with its meaning. Flags are 0 or 1; the rest are counts or shares."""


def features(
    unit: SourceUnit, kernel: KernelDef, launches: tuple[LaunchSite, ...] | None = None
) -> dict[str, float]:
    """Return the features of a kernel, by name.

    Args:
        unit: The file.
        kernel: One of its kernels.
        launches: The kernel's launches; by default those in the file.
    """
    own = (
        unit.launches_of(kernel)
        if launches is None
        else tuple(x for x in launches if x.kernel == kernel.name)
    )
    facts = _Facts(unit, kernel, own)
    return {name: feature.compute(facts) for name, feature in FEATURES.items()}
