import numpy as np

CASES = [dict(n=1), dict(n=1003), dict(n=40000), dict(n=1 << 27, time=True)]
TOLERANCE = dict(rtol=0, atol=0)  # nothing is rounded
PROMISE = {"aligned16"}


def make_inputs(rng, n):
    # Every 16-bit pattern of a finite number, small ones among them.
    bits = rng.integers(0, 0x7C00, n, dtype=np.uint16)
    bits |= rng.integers(0, 2, n, dtype=np.uint16) << 15
    bits[:1] = 0x3C00
    return {"x": bits.view(np.float16), "n": n}


def reference(x):
    return {"y": np.where(x.view(np.uint16) < 0x8000, x, np.float16(0))}


def cost(n):
    return dict(bytes=4 * n)


def baseline(x):
    """PyTorch's vectorised elementwise kernel."""
    import torch

    return torch.relu(x)
