import numpy as np

CASES = [
    dict(batch=1, dim=1),
    dict(batch=3, dim=33),
    dict(batch=7, dim=16),
    dict(batch=16384, dim=32, time=True),
]
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def make_inputs(rng, batch, dim):
    shape = (batch, dim, dim)
    return {
        "lhs": rng.standard_normal(shape, dtype=np.float32),
        "rhs": rng.standard_normal(shape, dtype=np.float32),
        "batch": batch,
        "dim": dim,
    }


def reference(lhs, rhs):
    return {"out": lhs.astype(np.float64) @ rhs.astype(np.float64)}


def cost(batch, dim):
    return dict(bytes=12 * batch * dim * dim, flops=2 * batch * dim**3)


def baseline(lhs, rhs):
    """cuBLAS, strided batches; no TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.bmm(lhs, rhs)
