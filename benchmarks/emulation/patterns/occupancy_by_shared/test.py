import numpy as np

CASES = [dict(n=4096, threads=1000), dict(n=1 << 24, threads=1 << 18, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-3)


def make_inputs(rng, n, threads):
    following = (rng.integers(0, n // 32, n) * 32).astype(np.int32)
    return {"next": following, "a": rng.random(n, dtype=np.float32), "n": n, "threads": threads}


def reference(next, a, n, threads):
    i = np.arange(threads)
    j, s = i % n, np.zeros(threads)
    for k in range(48):
        j = next[j & ~31] + (i & 31)
        s += a[(i + 64 * k) % n] + j % 3
    return {"o": s}
