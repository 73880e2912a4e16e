import numpy as np

CASES = [dict(n=1003), dict(n=1 << 22, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(a):
    x = a.astype(np.float64)
    return {"o": np.sqrt(1 + x * x) / (1 + np.exp(-1.702 * x))}


def cost(n):
    return dict(bytes=8 * n, flops=n)
