import numpy as np

CASES = [dict(n=1), dict(n=1003), dict(n=34567), dict(n=1 << 26, time=True)]
TOLERANCE = dict(rtol=0, atol=0)  # nothing is computed
SCRATCH = {"offsets": lambda n: (n + 255) // 256}


def make_inputs(rng, n):
    x = rng.standard_normal(n, dtype=np.float32)
    return {"x": x, "n": n}


def reference(x):
    chosen = x[x > 0]
    kept = np.zeros_like(x)
    kept[: chosen.size] = chosen
    # What lies behind the last element that is kept may be anything.
    return {"kept": (kept, np.arange(x.size) < chosen.size), "kept_count": np.array([chosen.size], np.uint32)}


def cost(n):
    """Every element is read; about half of them are written."""
    return dict(bytes=4 * n + 4 * (n // 2))


def baseline(x):
    """PyTorch's selection by a mask (CUB underneath); it also brings the count to the host."""
    import torch

    return torch.masked_select(x, x > 0)
