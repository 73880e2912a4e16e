import numpy as np

CASES = [dict(n=1000, base=7), dict(n=1 << 22, base=1009, time=True)]


def make_inputs(rng, n, base):
    return {"a": rng.integers(0, 1 << 30, n).astype(np.int32), "n": n, "base": base}


def reference(a, base):
    x, s, b = a.astype(np.uint32), np.zeros(a.shape, np.uint32), np.uint32(base)
    for _ in range(16):
        s = s * np.uint32(3) + x % b
        x = x // b + s
    return {"o": s.view(np.int32)}
