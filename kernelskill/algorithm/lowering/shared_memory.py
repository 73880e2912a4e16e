"""Where tiles lie in shared memory: arrays of fixed size, or parts of the block's dynamic memory."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm.lowering.async_copy import buffer_count
from kernelskill.algorithm.lowering.context import Context, StagedTile
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.types import size_of

STATIC_BYTES = 48 * 1024
"""Shared memory that every block may have."""
MOST_BYTES = 227 * 1024
"""Shared memory that a launch may ask for on the largest GPUs (compute capability 9.0 and 10.0)."""
_ALIGNMENT = 128
"""Bytes at whose multiples tiles begin; what fragments of tensor cores need most."""
_WARP_SCRATCH = 1024
"""Bytes through which a warp stores a fragment of sums."""


def place_tiles(context: Context) -> int:
    """Give the tiles their places; returns the bytes that a block uses.

    Beyond what an array of fixed size may have, all tiles go to dynamic shared memory.

    Raises:
        IllegalMove: No GPU has that much.
    """
    schedule = context.schedule
    sizes = [_tile_bytes(tile, buffer_count(schedule)) for tile in context.tiles]
    scratch = schedule.threads // 32 * _WARP_SCRATCH if schedule.tensor else 0
    total = sum(sizes) + scratch
    if total <= STATIC_BYTES:
        return total
    memory, placed, offset = context.names.fresh("shared_tiles"), [], 0
    for tile, size in zip(context.tiles, sizes, strict=True):
        placed.append(replace(tile, place=f"{memory} + {offset}" if offset else memory))
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT
    if offset + scratch > MOST_BYTES:
        raise IllegalMove(f"the tiles need {total} bytes of shared memory, {MOST_BYTES} are there at most")
    context.tiles, context.shared_memory = placed, memory
    context.shared_bytes = context.constant("kSharedBytes", offset)
    return offset + scratch


def declare_memory(context: Context) -> None:
    """Write the declaration of the block's dynamic memory, where tiles are in it."""
    if context.shared_memory:
        memory = context.shared_memory
        context.out.line(f"extern __shared__ __align__({_ALIGNMENT}) unsigned char {memory}[];")


def _tile_bytes(tile: StagedTile, buffers: int) -> int:
    elements = tile.sizes[tile.order[-1]] + tile.pad
    for dimension in tile.order[:-1]:
        elements *= tile.sizes[dimension]
    return elements * size_of(tile.kind) * (buffers if tile.loop else 1)
