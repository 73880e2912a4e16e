import numpy as np

CASES = [
    dict(m=1, n=1, k=1),
    dict(m=17, n=35, k=29),
    dict(m=64, n=48, k=80),
    dict(m=4096, n=4096, k=4096, time=True),
]
# The result is rounded to half.
TOLERANCE = dict(rtol=2e-3, atol=2e-2)


def make_inputs(rng, m, n, k):
    return {
        "a": rng.standard_normal((m, k), dtype=np.float32).astype(np.float16),
        "b": rng.standard_normal((k, n), dtype=np.float32).astype(np.float16),
        "m": m,
        "n": n,
        "k": k,
    }


def reference(a, b):
    return {"c": a.astype(np.float32) @ b.astype(np.float32)}


def cost(m, n, k):
    return dict(bytes=2 * (m * k + k * n + m * n), flops=2 * m * n * k)


def baseline(a, b):
    """cuBLAS (GemmEx with single-precision sums)."""
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    return torch.matmul(a, b)
