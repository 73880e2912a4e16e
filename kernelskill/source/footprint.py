"""Footprint: what a kernel asks of a multiprocessor, as far as the text alone tells."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tree_sitter import Node

from kernelskill.source.constants import type_size
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.dimensions import local_constants
from kernelskill.source.launches import block_shape
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class Footprint:
    """One kernel's needs a block."""

    kernel: str
    threads: int | None
    """Of the largest block that it is launched with; None where no launch has a constant shape."""
    shared_bytes: int
    """Of the shared arrays whose extents are constants; others and dynamic shared memory come on top."""


def footprints(unit: SourceUnit) -> tuple[Footprint, ...]:
    """Return the footprint of every kernel of a file."""
    return tuple(
        Footprint(kernel.name, _threads(unit, kernel), _shared_bytes(unit, kernel)) for kernel in unit.kernels
    )


def _threads(unit: SourceUnit, kernel: KernelDef) -> int | None:
    shapes = [block_shape(launch) for launch in unit.launches_of(kernel)]
    known = [prod(side for side in shape if side is not None) for shape in shapes if None not in shape]
    return max(known, default=None)


def _shared_bytes(unit: SourceUnit, kernel: KernelDef) -> int:
    constants = local_constants(kernel, unit.syntax)
    sizes = [
        _array_bytes(unit, variable, constants)
        for variable in kernel.locals
        if variable.storage is Storage.SHARED
    ]
    return sum(size for size in sizes if size is not None)


def _array_bytes(unit: SourceUnit, variable: VariableDef, constants: dict[str, Node]) -> int | None:
    element = 8 if variable.pointer_depth else type_size(variable.base_type)
    extents = [unit.constants.value(extent, constants) for extent in variable.dimensions]
    known = [extent for extent in extents if extent is not None]
    return None if element is None or len(known) < len(extents) else element * prod(known)
