import numpy as np

CASES = [dict(n=1000, turns=7), dict(n=1 << 20, turns=256, time=True)]
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def make_inputs(rng, n, turns):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n, "turns": turns}


def reference(a, turns):
    x = a.astype(np.float64)
    odd, even = x.copy(), x.copy()
    for _ in range(min(turns, 64)):  # both settle long before
        odd, even = odd * 0.5 + x, np.abs(even - x) * 0.25 + 1
    return {"o": np.where(np.arange(x.size) % 256 % 2 == 1, odd, even)}
