import numpy as np

PROMISE = {"aligned16"}
CASES = [dict(n=4096, turns=5, threads=512), dict(n=1 << 22, turns=32, threads=1 << 19, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-3)


def make_inputs(rng, n, turns, threads):
    return {"a": rng.standard_normal(n, dtype=np.float32), "n": n, "turns": turns, "threads": threads}


def reference(a, n, turns, threads):
    fours = a.astype(np.float64).reshape(-1, 4).sum(axis=1)
    i = np.arange(threads)
    return {"o": sum(fours[(i + k * 20483) % (n // 4)] for k in range(turns))}
