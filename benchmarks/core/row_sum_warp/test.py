import numpy as np

CASES = [
    dict(rows=1, cols=1),
    dict(rows=13, cols=1003),
    dict(rows=130, cols=72),
    dict(rows=32768, cols=2048, time=True),
]
# Sums of `cols` values of unit variance around 1.
TOLERANCE = dict(rtol=1e-5, atol=1e-3)


def make_inputs(rng, rows, cols):
    matrix = rng.standard_normal((rows, cols), dtype=np.float32)
    matrix += 1
    return {"matrix": matrix, "rows": rows, "cols": cols}


def reference(matrix):
    return {"sums": matrix.sum(axis=1, dtype=np.float64)}


def cost(rows, cols):
    return dict(bytes=4 * rows * cols + 4 * rows, flops=rows * cols)


def baseline(matrix):
    """PyTorch's row reduction."""
    import torch

    return torch.sum(matrix, dim=1)
