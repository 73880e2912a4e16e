import numpy as np

CASES = [dict(n=1), dict(n=1000), dict(n=4096, time=True)]
TOLERANCE = dict(rtol=1e-2, atol=1e-3)


def make_inputs(rng, n):
    return {"x": (3 * rng.standard_normal(n)).astype(np.float32), "n": n}


def reference(x, n):
    return {"y": (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)}
