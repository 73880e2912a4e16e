import numpy as np

CASES = [dict(n=1), dict(n=1000), dict(n=4099), dict(n=1 << 25, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, n):
    return {"x": 2 * rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(x):
    v = x.astype(np.float64)
    inner = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    np.tanh(inner, out=inner)
    inner += 1.0
    inner *= 0.5 * v
    return {"y": inner}


def cost(n):
    return dict(bytes=8 * n, flops=10 * n)


def baseline(x):
    """PyTorch's GELU."""
    import torch

    return torch.nn.functional.gelu(x, approximate="tanh")
