import numpy as np

CASES = [dict(n=999, steps=9, warps=8), dict(n=1 << 24, steps=2000, warps=528, time=True)]


def make_inputs(rng, n, steps, warps):
    return {"next": rng.permutation(n).astype(np.int32), "n": n, "steps": steps, "warps": warps}


def reference(next, n, steps, warps):
    j = np.arange(warps * 32) // 32 % n
    for _ in range(steps):
        j = next[j]
    return {"o": j.astype(np.int32)}
