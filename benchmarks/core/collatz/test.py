import numpy as np

CASES = [
    dict(n=1, limit=1000),
    dict(n=1003, limit=30),
    dict(n=513, limit=1000),
    dict(n=1 << 24, limit=1000, time=True),
]


def make_inputs(rng, n, limit):
    return {"start": rng.integers(1, 1 << 18, n, np.uint32), "n": n, "limit": limit}


def reference(start, limit):
    # Each number once, however often it occurs.
    number = np.flatnonzero(np.bincount(start))
    steps = np.zeros(number[-1] + 1, np.int32)
    value = number.astype(np.uint64)
    for count in range(1, limit + 1):
        running = value != 1
        number, value = number[running], value[running]
        if not number.size:
            break
        value = np.where(value & np.uint64(1), 3 * value + np.uint64(1), value >> np.uint64(1))
        steps[number] = count
    return {"steps": steps[start]}


def cost(n, **_):
    """A step takes about four integer instructions, each in the place of two fused multiply-adds:
    a multiprocessor has half as many lanes for integers (CUDA C++ Programming Guide, throughput of arithmetic instructions).

    Numbers below 2^18 take 117 steps on average.
    """
    return dict(bytes=8 * n, flops=4 * 4 * 117 * n)
