import numpy as np

CASES = [dict(n=1500, turns=5), dict(n=1 << 20, turns=128, time=True)]
TOLERANCE = dict(rtol=1e-3, atol=1e-4)


def make_inputs(rng, n, turns):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n, "turns": turns}


def reference(a, n, turns):
    rows = np.zeros((-(-n // 1024), 1024))
    rows.reshape(-1)[:n] = a
    for _ in range(turns):
        rows = 0.5 * (rows + np.roll(rows, -1, axis=1))
    return {"o": rows.reshape(-1)[:n]}
