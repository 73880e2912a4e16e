import numpy as np

CASES = [dict(n=5000, turns=3), dict(n=1 << 20, turns=16, time=True)]
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def make_inputs(rng, n, turns):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n, "turns": turns}


def reference(a, n, turns):
    i = np.arange(n)
    v = [a[(i + 64 * k) % n] for k in range(48)]
    for _ in range(turns):
        for k in range(48):
            v[k] = v[k] * np.float32(0.5) + v[(k * 5 + 7) % 48] * np.float32(0.25)
    return {"o": sum(v)}
