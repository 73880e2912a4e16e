import numpy as np

PROMISE = {"aligned16"}
CASES = [dict(n=1024), dict(n=1 << 25, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(a):
    return {"o": 2 * a}


def cost(n):
    return dict(bytes=8 * n, flops=n)
