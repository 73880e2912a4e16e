import numpy as np

CASES = [dict(n=1), dict(n=1000), dict(n=12345), dict(n=1 << 26, time=True)]
TOLERANCE = dict(rtol=1e-6, atol=0)


def make_inputs(rng, n):
    return {
        "a": rng.standard_normal(n, dtype=np.float32),
        "b": rng.standard_normal(n, dtype=np.float32),
        "n": n,
    }


def reference(a, b):
    return {"c": a + b}


def cost(n):
    return dict(bytes=12 * n, flops=n)


def baseline(a, b):
    """PyTorch's vectorised elementwise kernel."""
    import torch

    return torch.add(a, b)
