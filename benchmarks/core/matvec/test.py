import numpy as np

CASES = [
    dict(rows=1, cols=1),
    dict(rows=3, cols=1001),
    dict(rows=131, cols=70),
    dict(rows=8192, cols=8192, time=True),
]
# Sums of `cols` products of unit variance.
TOLERANCE = dict(rtol=1e-4, atol=2e-3)


def make_inputs(rng, rows, cols):
    return {
        "A": rng.standard_normal((rows, cols), dtype=np.float32),
        "x": rng.standard_normal(cols, dtype=np.float32),
        "rows": rows,
        "cols": cols,
    }


def reference(A, x, rows):
    wide = x.astype(np.float64)
    return {"y": np.concatenate([A[i : i + 512].astype(np.float64) @ wide for i in range(0, rows, 512)])}


def cost(rows, cols):
    return dict(bytes=4 * rows * cols, flops=2 * rows * cols)


def baseline(A, x):
    """cuBLAS SGEMV."""
    import torch

    return torch.mv(A, x)
