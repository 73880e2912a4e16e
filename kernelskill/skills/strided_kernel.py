"""Kernels that are one grid-stride loop: any grid and block computes the same elements."""

from __future__ import annotations

from kernelskill.skills.device_code import BUILTIN_INDICES, identifiers, words_outside
from kernelskill.skills.elementwise import refuse_carried_values
from kernelskill.skills.global_index import is_plain_declaration, read_global_index
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.affine import index_polynomial
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.polynomial import Atom, Polynomial
from kernelskill.source.syntax import named, span_of
from kernelskill.source.unit import SourceUnit


def read_strided(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> Loop:
    """Return the loop over `threadIdx.x + blockIdx.x * blockDim.x` that is all of a kernel.

    Raises:
        SkillRefused: The kernel is not one such loop, or its turns are not independent.
    """
    statements = named(kernel.body) if kernel.body is not None else []
    loop = next((one for one in find_loops(unit, kernel) if statements and one.node == statements[-1]), None)
    if (
        loop is None
        or loop.kind is not LoopKind.FOR
        or not loop.is_counted
        or loop.has_break
        or loop.has_return
    ):
        raise SkillRefused("it is not one grid-stride loop")
    if not all(s.type == "declaration" and is_plain_declaration(unit, s) for s in statements[:-1]):
        raise SkillRefused("it does more than run a grid-stride loop")
    _check_header(unit, kernel, loop)
    hidden = words_outside(unit, kernel, context) & BUILTIN_INDICES
    if hidden:
        raise SkillRefused(f"a function or macro that it uses reads {min(hidden)!r}")
    moving = {
        variable.name
        for variable in kernel.locals
        if variable is not loop.declared
        and not loop.body_span.contains(variable.name_span)
        and variable.initialiser is not None
        and any(name in BUILTIN_INDICES for name, _ in identifiers(unit, variable.initialiser))
    }
    for name, node in identifiers(unit, loop.body):
        if name in BUILTIN_INDICES or name in moving:
            raise SkillRefused(f"line {unit.line_of(node)} uses {name} inside the loop")
    refuse_carried_values(unit, kernel, span_of(loop.body))
    return loop


def _check_header(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> None:
    """Check that the loop starts at the global index and steps by the size of the grid."""
    start = read_global_index(unit, kernel, loop.start) if loop.start is not None else None
    if start is None or start.axis != "x" or start.block_size is not None:
        raise SkillRefused("its loop does not start at the global index")
    size = Polynomial.of(Atom.named("blockDim.x")) * Polynomial.of(Atom.named("gridDim.x"))
    if loop.step is None or loop.step_operator != "+" or index_polynomial(unit, kernel, loop.step) != size:
        raise SkillRefused("its loop does not step by the number of threads")
    if any(name in BUILTIN_INDICES for name, _ in identifiers(unit, loop.bound or loop.node)):
        raise SkillRefused("the end of its loop depends on the launch")
