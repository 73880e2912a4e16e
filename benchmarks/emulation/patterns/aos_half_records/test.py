import numpy as np

PROMISE = {"aligned16"}
CASES = [dict(n=1003), dict(n=1 << 22, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n):
    return {"a": rng.standard_normal(8 * n, dtype=np.float32), "n": n}


def reference(a):
    v = a.reshape(-1, 8)
    return {"o": v[:, 0] ** 2 + v[:, 1] ** 2 + v[:, 2] ** 2 + v[:, 3]}


def cost(n):
    return dict(bytes=20 * n, flops=n)
