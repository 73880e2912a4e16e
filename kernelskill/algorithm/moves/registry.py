"""The moves by name."""

from __future__ import annotations

from kernelskill.algorithm.moves.blocks import SplitOverBlocks
from kernelskill.algorithm.moves.halves import PackIntegers
from kernelskill.algorithm.moves.plan import Move
from kernelskill.algorithm.moves.points import CoarsenPoints, HaloTiles, TurnTiles, VectorPoints
from kernelskill.algorithm.moves.rows import KeepRows, ShareColumns, ShareRows, SumInBlocks
from kernelskill.algorithm.moves.tallies import TallyCases
from kernelskill.algorithm.moves.tiling import (
    BlockPoints,
    OverlapCopies,
    ShareTiles,
    UseTensorCores,
    WalkInBands,
    WideAccess,
)
from kernelskill.algorithm.moves.windows import InnerPoints

REORDERING = frozenset(
    {"share_columns", "share_rows", "split_over_blocks", "sum_in_blocks", "use_tensor_cores"}
)
"""Moves whose skills say that sums of floats may come in another order."""

MOVES: dict[str, Move] = {
    "block_points": BlockPoints(),
    "coarsen_points": CoarsenPoints(),
    "halo_tiles": HaloTiles(),
    "inner_points": InnerPoints(),
    "keep_rows": KeepRows(),
    "overlap_copies": OverlapCopies(),
    "pack_integers": PackIntegers(),
    "share_columns": ShareColumns(),
    "share_rows": ShareRows(),
    "share_tiles": ShareTiles(),
    "split_over_blocks": SplitOverBlocks(),
    "sum_in_blocks": SumInBlocks(),
    "tally_cases": TallyCases(),
    "turn_tiles": TurnTiles(),
    "use_tensor_cores": UseTensorCores(),
    "vector_points": VectorPoints(),
    "walk_in_bands": WalkInBands(),
    "wide_access": WideAccess(),
}
