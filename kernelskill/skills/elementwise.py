"""Kernels of one tested global index along x, and the division of their grid by the work of a thread."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.coverage import Cover, ceiling_text
from kernelskill.skills.device_code import BARRIERS, SHARED_WORDS, WARP_WORDS, refuse_words, words_in
from kernelskill.skills.expression_types import is_integer, plain_type
from kernelskill.skills.global_index import Guard, GuardedKernel, find_global_indices, read_guarded
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.launch_edits import components_of, write_shapes
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import find_loops
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, span_of, walk
from kernelskill.source.unit import SourceUnit

_WHY = "the elements of one thread would no longer be independent"
_SPINNING = frozenset({"atomicCAS", "atomicExch", "__threadfence", "__threadfence_block", "clock64", "clock"})


def read_elementwise(
    unit: SourceUnit, kernel: KernelDef, entries: list[KernelLaunch], context: SkillContext
) -> tuple[GuardedKernel, Guard]:
    """Return the parts of a kernel in which each thread takes one element, alone.

    Raises:
        SkillRefused: It is another kind of kernel, or a launch doesn't fit it.
    """
    refuse_words(unit, kernel, context, BARRIERS | SHARED_WORDS | WARP_WORDS | _SPINNING, _WHY)
    indices = find_global_indices(unit, kernel, context)
    guarded = read_guarded(unit, kernel)
    if len(indices) != 1 or len(guarded.guards) != 1 or indices[0].axis != "x":
        raise SkillRefused("it has more than one global index")
    guard = guarded.guards[0]
    if not is_integer(plain_type(guard.variable.base_type)):
        raise SkillRefused("its global index is of unknown type")
    if any(node.type in ("goto_statement", "preproc_if", "labeled_statement") for node in walk(kernel.node)):
        raise SkillRefused("it has labels or directives")
    for entry in entries:
        block = entry.launch.block.values
        if block[1:] != (1, 1) or entry.launch.grid.values[1:] != (1, 1):
            raise SkillRefused(f"line {entry.launch.line} launches it in more than one dimension")
        if guard.index.block_size not in (None, block[0]):
            raise SkillRefused(f"line {entry.launch.line}: the kernel takes another block size")
    return guarded, guard


def returns_in_loops(unit: SourceUnit, kernel: KernelDef, work: tuple[Node, ...]) -> bool:
    """Whether a `return` stands inside a loop or switch of the work."""
    spans = [loop.span for loop in find_loops(unit, kernel)]
    for statement in work:
        for node in walk(statement):
            if node.type in ("switch_statement", "lambda_expression") and any(
                inner.type == "return_statement" for inner in walk(node)
            ):
                return True
            if node.type == "return_statement" and any(
                span.start <= node.start_byte < span.end for span in spans
            ):
                return True
    return False


def refuse_carried_values(unit: SourceUnit, kernel: KernelDef, turn: Span) -> None:
    """Decline where a part of a kernel that is to be repeated changes a variable declared outside it.

    Raises:
        SkillRefused: It does: a later turn would see what an earlier one left.
    """
    for write in flow_of(unit, kernel).writes:
        inside = turn.contains(span_of(write.node))
        if inside and write.operator != "init" and not turn.contains(write.declared.name_span):
            raise SkillRefused(f"it changes {write.declared.name!r}, which all elements would share")
    if "static" in words_in(unit, turn):
        raise SkillRefused("it has a static variable")


def divide_grids(
    sets: Mapping[str, EditSet], entries: list[KernelLaunch], covers: list[Cover], amount: int
) -> None:
    """Launch so few blocks that each thread has `amount` elements, rounded up."""
    for entry, cover in zip(entries, covers, strict=True):
        grid = components_of(entry.launch.grid, entry.launch.line)
        grid[0] = ceiling_text(cover.size, cover.block * amount)
        write_shapes(sets[entry.unit.path], entry, grid, None)
