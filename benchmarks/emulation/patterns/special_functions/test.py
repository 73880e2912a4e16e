import numpy as np

CASES = [dict(n=1000, turns=3), dict(n=1 << 21, turns=64, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def make_inputs(rng, n, turns):
    return {"a": 0.5 + rng.random(n, dtype=np.float32), "n": n, "turns": turns}


def reference(a, turns):
    s = [a.astype(np.float64) + k for k in range(4)]
    for _ in range(turns):
        s = [1 / np.sqrt(x) + 1 for x in s]
    return {"o": (s[0] + s[1]) * a + s[2] + s[3]}
