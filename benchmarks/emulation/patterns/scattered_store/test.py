import numpy as np

CASES = [dict(rows=33, columns=17), dict(rows=4096, columns=4096, time=True)]


def make_inputs(rng, rows, columns):
    return {"a": rng.standard_normal(rows * columns, dtype=np.float32), "rows": rows, "columns": columns}


def reference(a, rows, columns):
    return {"o": np.ascontiguousarray(a.reshape(columns, rows).T).reshape(-1) + 1}


def cost(rows, columns):
    return dict(bytes=8 * rows * columns, flops=rows * columns)
