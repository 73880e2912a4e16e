"""Blocks that look back over many tiles wait for those that are late."""

import numpy as np
import pytest
from direct import Session, backend, build, launch

from kernelskill.skills.tile_scans import TileScan

TILES = 90
KERNEL = """
extern "C" __global__ void prefix_sums_{kind}(const {word}* in, {word}* out, unsigned long long* tiles)
{{
    const unsigned tile = next_{kind}(tiles);
    // The first tile, and some others, go on when many behind them wait.
    const unsigned long long last = tile + 44 < gridDim.x ? tile + 44 : gridDim.x;
    if (tile % 45 == 0 && threadIdx.x == 0)
        while (*(volatile unsigned long long*)tiles < last)
            ;
    __syncthreads();
    {word} value[1][2];
    const unsigned first = tile * 128 + threadIdx.x * 2;
    value[0][0] = in[first];
    value[0][1] = in[first + 1];
    scan_{kind}(value, tiles + 1, tile);
    out[first] = value[0][0];
    out[first + 1] = value[0][1];
}}
"""
KINDS = {"int": ("int", np.int32), "wide": ("long long", np.int64)}


def scan_of(kind):
    names = (f"{word}_{kind}" for word in ("next", "publish", "look", "scan"))
    return TileScan(KINDS[kind][0], 64, 1, 2, False, *names)


@pytest.fixture(scope="module")
def program():
    texts = [scan_of(kind).text() + KERNEL.format(kind=kind, word=KINDS[kind][0]) for kind in KINDS]
    device = backend()
    return device, build("\n".join(texts), device)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_that_are_late_are_waited_for(program, kind):
    device, made = program
    numbers = np.random.default_rng(1).integers(-(1 << 30), 1 << 30, TILES * 128, KINDS[kind][1])
    states = np.zeros(TILES * scan_of(kind).words + 1, np.uint64)
    buffers = {"in": numbers, "out": np.zeros_like(numbers), "tiles": states}
    name = f"prefix_sums_{kind}"
    with Session(
        made, buffers, lambda ids: [launch(made, name, ids, ("in", "out", "tiles"), (TILES,), (64,))], device
    ) as session:
        assert session.run().status == "passed"
        np.testing.assert_array_equal(session.read("out"), np.cumsum(numbers, dtype=KINDS[kind][1]))
