import numpy as np

CASES = [
    dict(n_tokens=1, vocabulary=1, dim=1),
    dict(n_tokens=70, vocabulary=40, dim=33),
    dict(n_tokens=300, vocabulary=1000, dim=5),
    dict(n_tokens=1 << 17, vocabulary=1 << 17, dim=512, time=True),
]
TOLERANCE = dict(rtol=0, atol=0)  # nothing is computed
PROMISE = {"no_alias"}  # how far the table reaches depends on the tokens, so no test at the launch can tell


def make_inputs(rng, n_tokens, vocabulary, dim):
    return {
        "tokens": rng.integers(0, vocabulary, n_tokens),
        "table": rng.standard_normal((vocabulary, dim), dtype=np.float32),
        "n_tokens": n_tokens,
        "dim": dim,
    }


def reference(tokens, table):
    return {"out": table[tokens]}


def cost(n_tokens, vocabulary, dim):
    """Every row that some token names is read once: on average, of uniform tokens."""
    rows = vocabulary * (1 - (1 - 1 / vocabulary) ** n_tokens)
    return dict(bytes=8 * n_tokens + 4 * dim * (n_tokens + rows))


def baseline(tokens, table):
    """PyTorch's embedding."""
    import torch

    return torch.nn.functional.embedding(tokens, table)
