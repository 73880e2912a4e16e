import numpy as np

CASES = [dict(n=1), dict(n=1000), dict(n=5000, time=True)]
TOLERANCE = dict(rtol=1e-5, atol=1e-6)


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(x, n):
    return {"y": (2 * x.astype(np.float64) + 1).astype(np.float32)}
