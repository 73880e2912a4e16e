import numpy as np

CASES = [dict(count=1), dict(count=1023), dict(count=50000), dict(count=1 << 26, time=True)]
TOLERANCE = dict(rtol=0, atol=0.5)


def make_inputs(rng, count):
    # Small whole numbers: their float sum is exact in any order.
    return {"values": rng.integers(-8, 9, count, dtype=np.int8).astype(np.float32), "count": count}


def reference(values):
    return {"total": [values.sum(dtype=np.float64)]}


def cost(count):
    return dict(bytes=4 * count, flops=count)


def baseline(values):
    """CUB DeviceReduce::Sum, through CuPy."""
    import cupy

    return cupy.sum(values)
