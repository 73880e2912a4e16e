import numpy as np

CASES = [
    dict(walkers=1, steps=1),
    dict(walkers=77, steps=100),
    dict(walkers=1030, steps=13),
    dict(walkers=1 << 20, steps=256, time=True),
]


def make_inputs(rng, walkers, steps):
    return {"seeds": rng.integers(0, 1 << 32, walkers, np.uint32), "walkers": walkers, "steps": steps}


def reference(seeds, walkers, steps):
    x, y = np.zeros(walkers, np.int32), np.zeros(walkers, np.int32)
    for start in range(0, walkers, 1 << 15):
        part = slice(start, start + (1 << 15))
        state = seeds[part].copy()
        for _ in range(steps):
            state *= np.uint32(1664525)
            state += np.uint32(1013904223)
            choice = (state >> np.uint32(16)) & np.uint32(3)
            # 0 is +1, 1 is -1 along x; 2 and 3 likewise along y.
            step = 1 - 2 * (choice & np.uint32(1)).astype(np.int32)
            along_y = (choice >> np.uint32(1)).astype(np.int32)
            y[part] += step * along_y
            x[part] += step * (1 - along_y)
    return {"x": x, "y": y}


def cost(walkers, steps):
    """A step takes two integer instructions at least, one for the state and one for the bits that it takes of it.

    Each stands in the place of two fused multiply-adds: a multiprocessor has half as many lanes for integers
    (CUDA C++ Programming Guide, throughput of arithmetic instructions).
    """
    return dict(bytes=12 * walkers, flops=4 * 2 * walkers * steps)
