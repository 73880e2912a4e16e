import numpy as np

CASES = [
    dict(rows=1, vocabulary=1),
    dict(rows=5, vocabulary=1009),
    dict(rows=140, vocabulary=67),
    dict(rows=4096, vocabulary=32000, time=True),
]


def make_inputs(rng, rows, vocabulary):
    # A few hundred different values: ties are frequent, and the first of them counts.
    logits = rng.integers(-100, 101, (rows, vocabulary), dtype=np.int16).astype(np.float32)
    return {"logits": logits, "rows": rows, "vocabulary": vocabulary}


def reference(logits):
    return {"best": logits.argmax(axis=1).astype(np.int32)}


def cost(rows, vocabulary):
    return dict(bytes=4 * rows * vocabulary + 4 * rows)


def baseline(logits):
    """PyTorch's arg-max, which gives 64-bit indices."""
    import torch

    return torch.argmax(logits, dim=1)
