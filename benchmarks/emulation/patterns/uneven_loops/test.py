import numpy as np

CASES = [dict(n=1000), dict(n=1 << 20, time=True)]


def make_inputs(rng, n):
    return {"a": rng.integers(0, 1 << 30, n).astype(np.int32), "n": n}


def reference(a):
    x, count = a.astype(np.uint32), (a & 63) + np.where((a >> 8) % 16 == 0, 800, 0)
    for k in range(int(count.max())):
        left = count > k
        x[left] = x[left] * np.uint32(1664525) + np.uint32(1013904223)
    return {"o": x.view(np.int32)}
