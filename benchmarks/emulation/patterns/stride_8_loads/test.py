import numpy as np

CASES = [dict(n=1003), dict(n=1 << 22, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n):
    return {"a": rng.standard_normal(8 * n, dtype=np.float32), "n": n}


def reference(a):
    return {"o": 3 * a[::8]}


def cost(n):
    return dict(bytes=8 * n, flops=n)
