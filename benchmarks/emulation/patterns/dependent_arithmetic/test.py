import numpy as np

CASES = [dict(n=1000, turns=5), dict(n=132 * 64, turns=1 << 15, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n, turns):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n, "turns": turns}


def reference(a, turns):
    return {"o": a * (0.5**turns + 2 * (1 - 0.5**turns))}
