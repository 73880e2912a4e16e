import numpy as np

CASES = [
    dict(batch=1, channels=1, groups=1, pixels=1),
    dict(batch=3, channels=6, groups=2, pixels=53),
    dict(batch=2, channels=20, groups=5, pixels=81),
    dict(batch=32, channels=256, groups=32, pixels=96 * 96, time=True),
]
TOLERANCE = dict(rtol=1e-4, atol=2e-4)
SCRATCH = {"mean": lambda batch, groups: batch * groups, "rstd": lambda batch, groups: batch * groups}


def make_inputs(rng, batch, channels, groups, pixels):
    x = rng.standard_normal((batch, channels, pixels), dtype=np.float32)
    x += np.float32(0.5)
    return {
        "x": x,
        "gamma": rng.uniform(0.5, 1.5, channels).astype(np.float32),
        "beta": rng.standard_normal(channels, dtype=np.float32),
        "batch": batch,
        "channels": channels,
        "groups": groups,
        "pixels": pixels,
        "eps": 1e-5,
    }


def reference(x, gamma, beta, groups, eps):
    wide = x.reshape(len(x) * groups, -1).astype(np.float64)
    wide -= wide.mean(axis=1, keepdims=True)
    wide /= np.sqrt(np.einsum("ij,ij->i", wide, wide)[:, None] / wide.shape[1] + eps)
    y = wide.reshape(x.shape)
    y *= gamma[:, None]
    y += beta[:, None]
    return {"y": y}


def cost(batch, channels, pixels, **_):
    return dict(bytes=8 * batch * channels * pixels, flops=8 * batch * channels * pixels)


def baseline(x, gamma, beta, groups, eps):
    """PyTorch's group norm."""
    import torch

    return torch.group_norm(x, groups, gamma, beta, eps)
