import numpy as np

CASES = [dict(n=1000, turns=9), dict(n=1 << 18, turns=96, time=True)]


def make_inputs(rng, n, turns):
    return {"a": rng.integers(0, 1 << 30, n).astype(np.int32), "n": n, "turns": turns}


def reference(a, n, turns):
    bins = np.repeat(np.arange(64, dtype=np.int32)[:, None], n, axis=1)
    own, x = np.arange(n), a.copy()
    for _ in range(turns):
        bins[x & 63, own] += x
        x = x * np.int32(1664525) + np.int32(1013904223) + bins[(x >> 8) & 63, own]
    return {"o": x}
