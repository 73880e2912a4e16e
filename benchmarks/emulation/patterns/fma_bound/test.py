import numpy as np

CASES = [dict(n=1500, turns=5), dict(n=1 << 22, turns=512, time=True)]
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def make_inputs(rng, n, turns):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n, "turns": turns}


def reference(a, turns):
    # Each step halves what is left of the start.
    left, last = 0.5**turns, 2 * (1 - 0.5**turns)
    return {"o": a * (1 + 4 * left) + (6 * left + last)}
