import numpy as np

CASES = [dict(rows=1, cols=1), dict(rows=5, cols=300), dict(rows=40, cols=1000, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-3)
PROMISE = {"no_alias"}


def make_inputs(rng, rows, cols):
    # Rows of different size, with single large elements anywhere: what is left out shows.
    x = rng.standard_normal((rows, cols)) * rng.uniform(0.5, 4, (rows, 1)) + rng.uniform(-1, 1, (rows, 1))
    x[np.arange(rows), rng.integers(0, cols, rows)] += 20
    return {"x": x.astype(np.float32), "rows": rows, "cols": cols}


def reference(x, rows, cols):
    return {"sums": x.astype(np.float64).sum(axis=1).astype(np.float32)}
