import numpy as np

CASES = [dict(n=1), dict(n=1000), dict(n=1 << 20, time=True)]
TOLERANCE = dict(rtol=1e-5, atol=1e-4)


def make_inputs(rng, n):
    # With the slope -1 two rounds give back what they began with: any even number of rounds leaves x + k.
    return {
        "x": rng.standard_normal(n, dtype=np.float32),
        "slope": -1.0,
        "step": 1.0,
        "zero": 0.0,
        "n": n,
    }


def reference(x):
    return {"y": 8 * x.astype(np.float64) + 28}
