import numpy as np

CASES = [
    dict(na=1, nb=1, nc=1),
    dict(na=3, nb=5, nc=37),
    dict(na=19, nb=33, nc=10),
    dict(na=128, nb=512, nc=1024, time=True),
]
TOLERANCE = dict(rtol=0, atol=0)  # nothing is computed


def make_inputs(rng, na, nb, nc):
    return {"src": rng.standard_normal((na, nb, nc), dtype=np.float32), "na": na, "nb": nb, "nc": nc}


def reference(src):
    return {"dst": np.ascontiguousarray(src.transpose(2, 0, 1))}


def cost(na, nb, nc):
    return dict(bytes=8 * na * nb * nc)


def baseline(src):
    """PyTorch's copy of the permuted view."""
    import torch

    return src.permute(2, 0, 1).contiguous(memory_format=torch.contiguous_format)
