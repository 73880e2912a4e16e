import numpy as np

CASES = [dict(n=1000), dict(n=1 << 21, time=True)]
TOLERANCE = dict(rtol=1e-2, atol=1e-2)


def make_inputs(rng, n):
    kind = rng.integers(0, 4, n).astype(np.int32)
    return {"kind": kind, "a": rng.random(n, dtype=np.float32), "o": np.zeros(256, np.float32), "n": n}


def reference(kind, a, o):
    sums = o.astype(np.float64)
    sums[::64] += np.bincount(kind, weights=a, minlength=4)
    return {"o": sums}
