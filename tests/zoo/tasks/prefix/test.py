import numpy as np

CASES = [dict(n=1), dict(n=700), dict(n=2048, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-3)


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(x, n):
    return {"y": np.cumsum(x.astype(np.float64)).astype(np.float32)}
