import numpy as np

CASES = [
    dict(rows=1, cols=1, mean=1),
    dict(rows=37, cols=1001, mean=9),
    dict(rows=700, cols=129, mean=3),
    dict(rows=1 << 20, cols=1 << 20, mean=32, time=True),
]
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def make_inputs(rng, rows, cols, mean):
    # Random borders: rows of very different lengths, empty ones among them.
    borders = np.sort(rng.integers(0, rows * mean + 1, rows - 1, np.int32))
    return {
        "row_start": np.concatenate([[0], borders, [rows * mean]]).astype(np.int32),
        "column": rng.integers(0, cols, rows * mean, np.int32),
        "value": rng.standard_normal(rows * mean, dtype=np.float32),
        "x": rng.standard_normal(cols, dtype=np.float32),
        "rows": rows,
    }


def reference(row_start, column, value, x, rows):
    products = np.multiply(value, x[column], dtype=np.float64)
    y = np.zeros(rows)
    filled = row_start[:-1] < row_start[1:]
    y[filled] = np.add.reduceat(products, row_start[:-1][filled])
    return {"y": y}


def cost(rows, cols, mean):
    return dict(
        bytes=8 * rows * mean + 4 * (rows + 1) + 4 * rows + 4 * min(cols, rows * mean), flops=2 * rows * mean
    )


def baseline(row_start, column, value, x, rows):
    """cuSPARSE SpMV, through PyTorch."""
    import torch

    matrix = torch.sparse_csr_tensor(row_start, column, value, size=(rows, x.numel()), check_invariants=False)
    return torch.mv(matrix, x)
