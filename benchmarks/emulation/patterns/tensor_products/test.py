import numpy as np

CASES = [dict(warps=8, turns=3), dict(warps=132 * 32, turns=2048, time=True)]
TOLERANCE = dict(rtol=1e-3, atol=1e-2)


def make_inputs(rng, warps, turns):
    return {"a": (rng.random(warps * 256) / 16).astype(np.float16), "warps": warps, "turns": turns}


def reference(a, warps, turns):
    tiles = a.astype(np.float64).reshape(warps, 1, 16, 16)
    starts = 0.25 * np.arange(4).reshape(1, 4, 1, 1)
    return {"o": (turns * (tiles @ tiles[0, 0]) + starts).reshape(-1)}
