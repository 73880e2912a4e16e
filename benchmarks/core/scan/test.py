import numpy as np

CASES = [dict(n=1), dict(n=1000), dict(n=20011), dict(n=1 << 26, time=True)]
SCRATCH = {"sums": lambda n: (n + 511) // 512}


def make_inputs(rng, n):
    return {"in": rng.integers(-20, 21, n, np.int32), "n": n}


def reference(**inputs):
    return {"out": np.cumsum(inputs["in"], dtype=np.int32)}


def cost(n):
    return dict(bytes=8 * n, flops=n)


def baseline(**inputs):
    """CUB DeviceScan::InclusiveSum, through PyTorch."""
    import torch

    return torch.cumsum(inputs["in"], dim=0, dtype=torch.int32)
