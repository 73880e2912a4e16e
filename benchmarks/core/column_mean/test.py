import numpy as np

CASES = [
    dict(nrow=1, ncol=1),
    dict(nrow=77, ncol=5),
    dict(nrow=130, ncol=301),
    dict(nrow=65536, ncol=2048, time=True),
]
# One running float sum over 65536 values of mean 1 is only right to a few 1e-5.
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def make_inputs(rng, nrow, ncol):
    data = rng.standard_normal((nrow, ncol), dtype=np.float32)
    data += 1
    return {"data": data, "nrow": nrow, "ncol": ncol}


def reference(data):
    return {"mean": data.mean(axis=0, dtype=np.float64)}


def cost(nrow, ncol):
    return dict(bytes=4 * nrow * ncol + 4 * ncol, flops=nrow * ncol)


def baseline(data):
    """PyTorch's column reduction."""
    import torch

    return torch.mean(data, dim=0)
