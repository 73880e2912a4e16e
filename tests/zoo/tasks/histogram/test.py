import numpy as np

CASES = [dict(n=1), dict(n=777), dict(n=8000, time=True)]


def make_inputs(rng, n):
    weights = rng.dirichlet(np.ones(64))
    return {"data": rng.choice(64, n, p=weights).astype(np.int32), "n": n}


def reference(data, n):
    return {"counts": np.bincount(data, minlength=64).astype(np.int32)}
