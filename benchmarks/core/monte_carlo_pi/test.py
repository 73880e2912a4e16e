import numpy as np

CASES = [
    dict(threads=1, trials=1),
    dict(threads=77, trials=100),
    dict(threads=1030, trials=13),
    dict(threads=1 << 20, trials=128, time=True),
]


def make_inputs(rng, threads, trials):
    return {"seed": int(rng.integers(0, 1 << 32)), "threads": threads, "trials": trials}


def reference(seed, threads, trials):
    hits = 0
    for start in range(0, threads, 1 << 15):
        state = np.arange(start + 1, min(start + (1 << 15), threads) + 1, dtype=np.uint32)
        state *= np.uint32(2654435761)
        state ^= np.uint32(seed)
        state[state == 0] = 1
        for _ in range(trials):
            state ^= state << np.uint32(13)
            state ^= state >> np.uint32(17)
            state ^= state << np.uint32(5)
            x = state >> np.uint32(17)
            y = (state >> np.uint32(2)) & np.uint32(0x7FFF)
            hits += np.count_nonzero(x * x + y * y < np.uint32(1 << 30))
    return {"hits": np.array([hits], np.uint64)}


def cost(threads, trials):
    """A trial takes about eleven integer instructions, each in the place of two fused multiply-adds:
    a multiprocessor has half as many lanes for integers (CUDA C++ Programming Guide, throughput of arithmetic instructions).
    """
    return dict(bytes=8, flops=4 * 11 * threads * trials)
