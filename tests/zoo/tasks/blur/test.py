import numpy as np

CASES = [dict(n=1), dict(n=1001), dict(n=4096, time=True)]
TOLERANCE = dict(rtol=1e-5, atol=1e-6)


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(x, n):
    wide = np.concatenate([x[:1], x, x[-1:]]).astype(np.float64)
    return {"y": ((wide[:-2] + wide[1:-1] + wide[2:]) / 3).astype(np.float32)}
