import numpy as np

CASES = [
    dict(rows=1, cols=1),
    dict(rows=7, cols=1001),
    dict(rows=33, cols=260),
    dict(rows=65536, cols=768, time=True),
]
TOLERANCE = dict(rtol=1e-10, atol=0)


def make_inputs(rng, rows, cols):
    return {"matrix": rng.standard_normal((rows, cols)), "rows": rows, "cols": cols}


def reference(matrix):
    return {"norms": np.sqrt(np.einsum("ij,ij->i", matrix, matrix))}


def cost(rows, cols):
    return dict(bytes=8 * rows * cols + 8 * rows, flops=2 * rows * cols)


def baseline(matrix):
    """PyTorch's vector norm."""
    import torch

    return torch.linalg.vector_norm(matrix, dim=1)
