import numpy as np

CASES = [dict(n=9000), dict(n=1 << 24, time=True)]


def make_inputs(rng, n):
    rare = rng.random(n, dtype=np.float32) < 0.02
    values = np.where(
        rare, rng.integers(0, 64, n, dtype=np.int32), 64 * rng.integers(1, 9, n, dtype=np.int32) + 5
    )
    return {"a": values.astype(np.int32), "n": n}


def reference(a, n):
    blocks = (n + 8191) // 8192
    places = np.arange(n) // 8192 * 64 + (a & 63)
    return {"o": np.bincount(places, weights=a, minlength=blocks * 64).astype(np.int32)}
