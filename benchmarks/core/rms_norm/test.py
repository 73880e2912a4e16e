import numpy as np

CASES = [
    dict(tokens=1, hidden=1),
    dict(tokens=3, hidden=1030),
    dict(tokens=37, hidden=133),
    dict(tokens=16384, hidden=4096, time=True),
]
# The result is rounded to half.
TOLERANCE = dict(rtol=2e-3, atol=1e-4)


def make_inputs(rng, tokens, hidden):
    return {
        "x": rng.standard_normal((tokens, hidden), dtype=np.float32).astype(np.float16),
        "weight": rng.uniform(0.5, 1.5, hidden).astype(np.float16),
        "tokens": tokens,
        "hidden": hidden,
        "eps": 1e-5,
    }


def reference(x, weight, eps):
    wide = x.astype(np.float32)
    mean_square = np.einsum("ij,ij->i", wide, wide, dtype=np.float64) / wide.shape[1]
    wide *= (1 / np.sqrt(mean_square + eps)).astype(np.float32)[:, None]
    wide *= weight.astype(np.float32)
    return {"out": wide}


def cost(tokens, hidden):
    return dict(bytes=4 * tokens * hidden, flops=4 * tokens * hidden)


def baseline(x, weight, eps):
    """PyTorch's fused RMS norm."""
    import torch

    return torch.nn.functional.rms_norm(x, (x.shape[1],), weight, eps)
