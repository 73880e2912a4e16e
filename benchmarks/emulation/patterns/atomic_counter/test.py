import numpy as np

CASES = [dict(n=1000), dict(n=1 << 24, time=True)]


def make_inputs(rng, n):
    return {"a": rng.integers(0, 100, n).astype(np.int32), "o": np.zeros(1, np.int32), "n": n}


def reference(a, o):
    return {"o": o + a.sum(dtype=np.int32)}
