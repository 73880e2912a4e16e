import numpy as np

CASES = [dict(n=1003), dict(n=1 << 25, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n):
    return {"a": rng.standard_normal(n, dtype=np.float32), "o": np.zeros(n, np.float32), "n": n}


def reference(a, o):
    return {"o": np.concatenate([o[:1], a[1:] * np.float32(0.5)])}


def cost(n):
    return dict(bytes=8 * n, flops=n)
