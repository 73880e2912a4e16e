import struct
from math import erf

import ml_dtypes
import numpy as np
import pytest
from direct import HERE, backend, build, run_kernel

from kernelskill.schema.launch_plan import Address, Blob, PointerPatch

SUITE = (HERE / "suite.cu").read_text()
HARD = (HERE / "hard.cu").read_text()
F = np.float32
N = 1 << 14
RNG = np.random.default_rng(1)
X = RNG.standard_normal(N, dtype=F)
Y = RNG.standard_normal(N, dtype=F)


def zeros(*shape, dtype=F):
    return np.zeros(shape, dtype)


def ran(source, kernel, buffers, arguments, grid=(N // 256,), block=(256,), **more):
    outcome, after = run_kernel(source, kernel, buffers, arguments, grid=grid, block=block, **more)
    assert outcome.status == "passed", outcome
    assert outcome.notes == ()
    return after


@pytest.fixture(scope="module", autouse=True)
def built():
    device = backend()
    build(SUITE, device)
    build(HARD, device)


def test_vector_add():
    assert np.array_equal(ran(SUITE, "vadd", dict(a=X, b=Y, c=zeros(N)), ["a", "b", "c", N])["c"], X + Y)


def test_vector_add_by_four():
    after = ran(SUITE, "vadd4", dict(a=X, b=Y, c=zeros(N)), ["a", "b", "c", N // 4], (N // 1024,))
    assert np.array_equal(after["c"], X + Y)


@pytest.mark.parametrize("kernel", ["mm_naive", "mm_tiled"])
def test_matrix_product(kernel):
    a, b = X[: 100 * 100].reshape(100, 100), Y[: 100 * 100].reshape(100, 100)
    after = ran(SUITE, kernel, dict(a=a, b=b, c=zeros(100, 100)), ["a", "b", "c", 100], (7, 7), (16, 16))
    assert np.allclose(after["c"], a @ b, atol=1e-4)


def test_shuffle_reduction_repeats_to_the_bit():
    first, second = (
        ran(SUITE, "reduce_shfl", dict(x=X, o=zeros(1)), ["x", "o", N], (16,), shared=128, threads=2)["o"][0]
        for _ in range(2)
    )
    assert abs(first - X.sum(dtype="d")) < 1e-3
    assert first == second


def test_shared_reduction():
    after = ran(SUITE, "reduce_smem", dict(x=X, o=zeros(N // 256)), ["x", "o", N])
    assert np.allclose(after["o"], X.reshape(-1, 256).sum(1), atol=1e-4)


def test_transpose():
    a = X[: 100 * 60].reshape(60, 100)
    after = ran(SUITE, "transpose", dict(a=a, o=zeros(100, 60)), ["a", "o", 100, 60], (4, 2), (32, 8))
    assert np.array_equal(after["o"], a.T)


def test_histogram():
    x = RNG.integers(0, 1 << 20, N, dtype=np.uint32)
    after = ran(SUITE, "histo", dict(x=x, h=zeros(256, dtype=np.uint32)), ["x", "h", N], (8,), threads=2)
    assert np.array_equal(after["h"], np.bincount(x & 255, minlength=256))


def test_ballot():
    x = RNG.integers(-5, 5, N, dtype=np.int32)
    after = ran(SUITE, "ballot_k", dict(x=x, o=zeros(N // 32, dtype=np.uint32)), ["x", "o", N])
    assert np.array_equal(after["o"], (x > 0).reshape(-1, 32).sum(1))


def test_softmax():
    x = X[:8000].reshape(8, 1000)
    after = ran(SUITE, "softmax_rows", dict(x=x, y=zeros(8, 1000)), ["x", "y", 1000], (8,))
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(after["y"], e / e.sum(1, keepdims=True), atol=1e-6)


def test_struct_by_value():
    pointers = tuple(PointerPatch(position=8 * n, address=Address(allocation=n, offset=0)) for n in range(2))
    raw = "00" * 16 + struct.pack("<if", N, 3.0).hex()
    after = ran(HARD, "by_struct", dict(x=X, y=zeros(N)), [Blob(raw=raw, pointers=pointers)])
    assert np.array_equal(after["y"], 3 * X)


def test_constant_memory():
    after = ran(HARD, "convolve", dict(x=X, y=zeros(N)), ["x", "y", N])
    assert np.allclose(after["y"][2:-2], np.convolve(X, [0.1, 0.2, 0.4, 0.2, 0.1], "valid"), atol=1e-5)


def test_cooperative_groups():
    after = ran(HARD, "group_sum", dict(x=X, o=zeros(1)), ["x", "o", N], (16,))
    assert abs(after["o"][0] - X.sum(dtype="d")) < 1e-3


def test_coalesced_group_counts_only_its_lanes():
    x = RNG.integers(-5, 5, N, dtype=np.int32)
    after = ran(HARD, "aggregated", dict(x=x, o=zeros(1, dtype=np.int32)), ["x", "o", N])
    assert after["o"][0] == (x > 0).sum()


def test_half():
    a, b = X.astype(np.float16), Y.astype(np.float16)
    after = ran(HARD, "half_sum", dict(a=a, b=b, c=np.zeros_like(a)), ["a", "b", "c", N])
    assert np.array_equal(after["c"], a + b)


def test_half_pairs_round_once():
    a, b = X.astype(np.float16), Y.astype(np.float16)
    after = ran(HARD, "half_pairs", dict(a=a, b=b, c=np.zeros_like(a)), ["a", "b", "c", N // 2], (N // 512,))
    product = (a * np.float16(0.5)).astype(np.float64)
    assert np.array_equal(
        after["c"], (a.astype(np.float64) * b.astype(np.float64) + product).astype(np.float16)
    )


def test_functions_of_halves():
    a = X.astype(np.float16)
    after = ran(HARD, "half_functions", dict(a=a, c=np.zeros_like(a)), ["a", "c", N])
    assert np.allclose(after["c"].astype(F), 1 / (1 + np.exp(-a.astype(F))), rtol=2e-3)


def test_brain_floats():
    a = X.astype(ml_dtypes.bfloat16)
    after = ran(HARD, "brain_floats", dict(a=a.view(np.uint16), c=zeros(N)), ["a", "c", N])
    assert np.array_equal(after["c"], (a.astype(F) * F(3)).astype(ml_dtypes.bfloat16).astype(F))


def test_local_array():
    after = ran(HARD, "local_array", dict(x=X, y=zeros(N)), ["x", "y", N])
    assert np.array_equal(after["y"], X[(np.arange(N) + (X.astype(int) & 7)) % N])


def test_special_functions():
    after = ran(HARD, "special", dict(x=X, y=zeros(N)), ["x", "y", N])
    d = X.astype("d")
    expected = np.sin(d) + np.exp(d) + np.tanh(d) + np.vectorize(erf)(d) + (abs(d) + 1) ** 1.5
    expected += 1 / np.sqrt(d * d + 1) + np.log1p(abs(d)) + np.sin((X * F(1e6)).astype("d"))
    assert np.allclose(after["y"], expected, rtol=1e-5, atol=1e-5)


def test_double_precision():
    x = RNG.standard_normal(N)
    after = ran(HARD, "doubles", dict(x=x, y=np.zeros(N)), ["x", "y", N])
    assert np.allclose(after["y"], np.sqrt(x * x + 1) / 3 + np.exp(x) + x * 0.1, rtol=1e-14)


def test_wide_atomics():
    x = RNG.integers(-(10**12), 10**12, N)
    after = ran(HARD, "wide_atomics", dict(x=x, y=zeros(1, dtype=np.uint64)), ["x", "y", N])
    quotient = np.sign(x) * (abs(x) // 7)
    assert after["y"][0] == (np.sign(quotient) * (abs(quotient) % 1000) + 1000).max()


def test_asynchronous_copies():
    x = X[:512].reshape(128, 4)
    after = ran(HARD, "copies", dict(x=x, y=zeros(128)), ["x", "y"], (1,), (128,))
    assert np.array_equal(after["y"], x[::-1, 0])


def test_bit_functions():
    after = ran(HARD, "bits", dict(y=zeros(64, dtype=np.int32)), ["y"], (1,), (64,))
    expected = [
        (32 - i.bit_length())
        + i.bit_count() * 100
        + (i & -i).bit_length() * 10000
        + (int(f"{i:032b}"[::-1], 2) >> 24) * 1000000
        for i in range(64)
    ]
    assert np.array_equal(after["y"], expected)


def test_calls_through_pointers_and_recursion():
    x = X[:64]
    after = ran(HARD, "calls", dict(x=x, y=zeros(64)), ["x", "y", 64], (1,), (64,))
    fibonacci = np.array([0, 1, 1, 2, 3, 5, 8, 13], F)[np.arange(64) & 7]
    assert np.allclose(after["y"], np.where(np.arange(64) & 1, -x, x**3) + fibonacci, rtol=1e-6)


def test_struct_passed_to_a_function():
    x = np.arange(24, dtype=np.int32)
    after = ran(HARD, "pass_struct", dict(x=x, y=zeros(32, dtype=np.int32)), ["x", "y"], (1,), (32,))
    assert np.array_equal(after["y"], [sum(x[(i * 7) % 24] + t for i in range(5)) for t in range(32)])


def test_device_variables_and_their_addresses():
    after = ran(HARD, "variables", dict(y=zeros(32, dtype=np.int32)), ["y"], (1,), (32,))
    assert np.array_equal(after["y"], 5 + np.arange(32))


def test_atomics_of_every_width():
    buffers = dict(a=zeros(2, dtype=np.float16), b=zeros(2, dtype=np.uint16), c=np.zeros(1), d=zeros(2))
    after = ran(HARD, "half_atomics", buffers, ["a", "b", "c", "d"], (1,), (64,))
    assert after["a"].tolist() == [64, 64]
    assert after["b"].view(ml_dtypes.bfloat16).astype(F).tolist() == [128, 128]
    assert after["c"][0] == 32
    assert after["d"].tolist() == [96, 0]
