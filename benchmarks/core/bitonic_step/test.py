import numpy as np

CASES = [
    dict(n=2, distance=1, size=2),
    dict(n=1, distance=1, size=2),
    dict(n=1000, distance=4, size=64),
    dict(n=5003, distance=512, size=1024),
    dict(n=1 << 26, distance=1 << 12, size=1 << 20, time=True),
]


def make_inputs(rng, n, distance, size):
    return {"keys": rng.integers(0, 1 << 32, n, np.uint32), "distance": distance, "size": size, "n": n}


def reference(keys, distance, size, n):
    # Pairs are i and i + distance where i lacks that bit; an incomplete block has fewer of them.
    sorted_keys = keys.copy()
    for start in range(0, n, 1 << 22):
        low = np.arange(start, min(start + (1 << 22), n), dtype=np.uint32)
        low = low[(low & distance) == 0]
        low = low[low < max(n - distance, 0)]
        first, second = keys[low], keys[low + np.uint32(distance)]
        swap = np.where((low & size) == 0, first > second, first < second)
        sorted_keys[low] = np.where(swap, second, first)
        sorted_keys[low + np.uint32(distance)] = np.where(swap, first, second)
    return {"keys": sorted_keys}


def cost(n, **_):
    return dict(bytes=8 * n)
