import numpy as np

CASES = [
    dict(count=1, size=1),
    dict(count=1003, size=37),
    dict(count=300, size=2000),
    dict(count=1 << 25, size=1 << 20, time=True),
]
TOLERANCE = dict(rtol=0, atol=0)


def make_inputs(rng, count, size):
    # Small whole numbers: their float sums are exact in any order.
    return {
        "index": rng.integers(0, size, count, np.int32),
        "value": rng.integers(-8, 9, count, np.int8).astype(np.float32),
        "out": rng.integers(1, 100, size, np.int32).astype(np.float32),
        "count": count,
    }


def reference(index, value, out):
    return {"out": out + np.bincount(index, weights=value, minlength=out.size)}


def cost(count, size):
    return dict(bytes=8 * count + 8 * min(size, count), flops=count)


def baseline(index, value, out):
    """PyTorch's index_add_, by atomics."""
    import torch

    assert isinstance(out, torch.Tensor)
    return out.index_add_(0, index, value)
