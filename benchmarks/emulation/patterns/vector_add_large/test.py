import numpy as np

CASES = [dict(n=1003), dict(n=1 << 25, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n):
    return {
        "a": rng.standard_normal(n, dtype=np.float32),
        "b": rng.standard_normal(n, dtype=np.float32),
        "n": n,
    }


def reference(a, b):
    return {"o": a + b}


def cost(n):
    return dict(bytes=12 * n, flops=n)
