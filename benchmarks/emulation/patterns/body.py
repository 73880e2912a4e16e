# What the tests of all patterns share; `diagnoses.py` puts `KERNEL = "run_..."` in front of it.

import numpy as np

CASES = [dict(n=64), dict(n=2048, time=True)]
TOLERANCE = dict(rtol=2e-3, atol=2e-3)
NAME = KERNEL.removeprefix("run_")  # noqa: F821
SUMS = {"sum_atomic": 1, "sum_divergent_tree": 1, "tiny_grid": 4}


def make_inputs(rng, n):
    a = rng.standard_normal((n, n), dtype=np.float32)
    if NAME in SUMS:
        return {"a": np.abs(a), "o": np.zeros(1, np.float32), "n": n}
    if NAME == "pointer_chase":
        return {"a": rng.permutation(n * n).astype(np.int32).view(np.float32), "n": n}
    if NAME in ("matmul_uncoalesced", "matmul_coalesced", "vector_add"):
        return {"a": a, "b_": rng.standard_normal((n, n), dtype=np.float32), "n": n}
    return {"a": a, "n": n}


def reference(a, n, b_=None, o=None):
    a = a if NAME == "pointer_chase" else a.astype(np.float64)
    return {"o": globals()[NAME](a, n) if b_ is None else globals()[NAME](a, b_.astype(np.float64))}


def transpose_naive(a, n):
    return a.T.copy()


transpose_bank_conflict = transpose_naive


def matmul_uncoalesced(a, b):
    return a @ b


matmul_coalesced = matmul_uncoalesced


def softmax_thread_per_row(a, n):
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sum_atomic(a, n):
    return np.full(1, SUMS[NAME] * a.sum())


sum_divergent_tree = tiny_grid = sum_atomic


def gelu_fp64_literals(a, n):
    return 0.5 * a * (1 + np.tanh(0.7978845608 * (a + 0.044715 * a**3)))


def divergent_branches(a, n):
    x = a.reshape(-1).copy()
    lane = np.arange(n * n) % 256 % 8
    for _ in range(64):
        x = np.select(
            [lane == 0, lane == 1, lane == 2, lane == 3],
            [np.sin(x), np.cos(x), np.sqrt(x * x + 1), np.exp(-x * x)],
            x,
        )
    rest = a.reshape(-1).copy()
    for _ in range(32):
        rest = rest * 0.99 + 0.01
    return np.where(lane < 4, x, rest).reshape(a.shape)


def spilling(a, n):
    flat, size = a.reshape(-1), n * n
    r = [flat[(np.arange(size) + k * 977) % size] for k in range(64)]
    for _ in range(4):
        for k in range(64):
            r[k] = r[k] * r[(k * 7 + 13) % 64] + 0.5
    return sum(r).reshape(a.shape)


def aos_field(a, n):
    return 2 * a.reshape(-1, 8)[:, 0]


def pointer_chase(a, n):
    after = a.reshape(-1).view(np.int32)
    for _ in range(8):  # 256 steps
        after = after[after]
    return after.view(np.float32).reshape(n, n)


def index_division(a, n):
    return a.reshape(-1, n // 8, n // 4)[:, ::-1, ::-1].copy()


def vector_add(a, b):
    return a + b
