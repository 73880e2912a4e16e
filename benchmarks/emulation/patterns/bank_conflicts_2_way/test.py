import numpy as np

CASES = [dict(n=1300, turns=33), dict(n=1 << 21, turns=256, time=True)]
TOLERANCE = dict(rtol=1e-3, atol=1e-3)


def make_inputs(rng, n, turns):
    return {"a": rng.random(n, dtype=np.float32), "n": n, "turns": turns}


def reference(a, n, turns):
    lane, k = np.arange(n)[:32] % 32, np.arange(turns)[:, None]
    sums = a.astype(np.float64)[(2 * lane + 64 * k) % 1024].sum(axis=0)
    return {"o": np.resize(sums, n) * a}
