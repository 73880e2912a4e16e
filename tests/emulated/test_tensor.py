import numpy as np
import pytest
from direct import HERE, run_kernel

SOURCE = (HERE / "tensor.cu").read_text()
RNG = np.random.default_rng(3)
F, H = np.float32, np.float16


def ran(kernel, buffers, arguments, **launch):
    outcome, after = run_kernel(SOURCE, kernel, buffers, arguments, **launch)
    assert outcome.status == "passed", outcome
    return after


def halves(*shape):
    return RNG.standard_normal(shape).astype(H)


def test_wmma_single_precision_sums():
    a, b = halves(16, 16), halves(16, 16)
    after = ran("wmma_f32", dict(a=a, b=b, c=np.zeros((16, 16), F)), ["a", "b", "c"])
    assert np.allclose(after["c"], 2 * (a.astype(F) @ b.astype(F).T + 1), atol=1e-4)


def test_wmma_from_shared_memory_half_sums():
    a, b = halves(16, 16), halves(16, 16)
    after = ran("wmma_shared_f16", dict(a=a, b=b, c=np.zeros((16, 16), H)), ["a", "b", "c"])
    assert np.allclose(after["c"], a.astype(F) @ b.astype(F), atol=1e-2)


def test_mma_with_ldmatrix():
    a, b = halves(16, 16), halves(8, 16)
    after = ran("mma_f16", dict(a=a, b=b, c=np.zeros((16, 8), F)), ["a", "b", "c"])
    assert np.allclose(after["c"], a.astype(F) @ b.astype(F).T + 0.5, atol=1e-4)


def test_mma_tf32():
    a, b = RNG.standard_normal((16, 8)).astype(F), RNG.standard_normal((8, 8)).astype(F)
    after = ran("mma_tf32", dict(a=a, b=b, c=np.zeros((16, 8), F)), ["a", "b", "c"])
    assert np.allclose(after["c"], a @ b.T, atol=2e-2)


def test_mma_bytes():
    a, b = (RNG.integers(-128, 127, shape).astype(np.int8) for shape in ((16, 32), (8, 32)))
    after = ran("mma_s8", dict(a=a, b=b, c=np.zeros((16, 8), np.int32)), ["a", "b", "c"])
    assert np.array_equal(after["c"], a.astype(int) @ b.astype(int).T + 7)


@pytest.mark.slow
def test_barrier_objects():
    x = np.arange(64, dtype=np.int32)
    after = ran("barrier_object", dict(x=x, y=np.zeros(64, np.int32)), ["x", "y"], block=(64,))
    assert np.array_equal(after["y"], x[::-1] + 2)
