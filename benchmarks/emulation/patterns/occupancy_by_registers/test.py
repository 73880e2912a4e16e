import numpy as np

CASES = [dict(n=4096, threads=1000), dict(n=1 << 24, threads=1 << 18, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-3)


def make_inputs(rng, n, threads):
    following = (rng.integers(0, n // 32, n) * 32).astype(np.int32)
    return {"next": following, "n": n, "threads": threads}


def reference(next, n, threads):
    i = np.arange(threads)
    j, v = i % n, []
    for _ in range(160):
        j = next[j & ~31] + (i & 31)
        v.append(((j & 8191) | 0x3F800000).astype(np.int32).view(np.float32))
    s = np.zeros(threads)
    for k in range(160):
        s = s * 0.9 + v[k].astype(np.float64) * v[159 - k]
    return {"o": s}
