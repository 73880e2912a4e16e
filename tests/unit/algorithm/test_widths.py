"""Counters have the user's type; what meets indices of 64 bits is widened before it is multiplied."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.lowering.kernel import LaunchFacts, emit
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from tests.unit.algorithm.lifting_samples import lifted

PARAMETERS = "const float* x, float* y, int rows, int n, int m, long long big, const int* at"
GIVEN = "x, y, rows, n, m, big, at"


def emitted(body: str, index: str = "int r = blockIdx.x * blockDim.x + threadIdx.x;") -> str:
    source = (
        f"__global__ void f({PARAMETERS}) {{ {index} if (r < rows) {{ {body} }} }}\n"
        f'extern "C" void h({PARAMETERS}) {{ f<<<(rows + 63) / 64, 64>>>({GIVEN}); }}\n'
    )
    algorithm = lifted(source).algorithm
    return emit(algorithm, Schedule(), LaunchFacts({p.name: p.name for p in algorithm.parameters})).kernel


def summed(index: str, loop: str = "int i = 0; i < n; ++i") -> str:
    return emitted(f"float s = 0.0f; for ({loop}) s += x[{index}]; y[r] = s + x[big];")


@pytest.mark.parametrize(
    ("loop", "head"),
    [
        ("int i = 0; i < n; ++i", "for (int i = 0; i < n; ++i)"),
        ("int i = 2; i < n - 1; ++i", "for (int i = 2; i < n - 1; ++i)"),
        ("int i = 0; i < at[r]; ++i", "for (int i = 0; i < at[r]; ++i)"),
        ("long long i = 0; i < n; ++i", "for (long long i = 0; i < n; ++i)"),
        ("long long i = 0; i < big; ++i", "for (long long i = 0; i < big; ++i)"),
        ("int i = 0; i < big; ++i", "for (long long i = 0; i < big; ++i)"),
        ("int i = 0; i <= r; ++i", "for (int i = 0; i < static_cast<int>(r + 1); ++i)"),
        ("int i = 0; i < (int)big; ++i", "for (long long i = 0; i < big; ++i)"),
        ("int i = r; i < n; ++i", "for (int i = static_cast<int>(r); i < n; ++i)"),
    ],
)
def test_a_counter_is_as_wide_as_it_was(loop: str, head: str) -> None:
    assert head in summed("(long long)r * m + i", loop)


@pytest.mark.parametrize(
    ("index", "becomes"),
    [
        ("(long long)r * m + i", "r * m + i"),
        ("(long long)i * m + r", "static_cast<long long>(m) * i + r"),
        ("(long long)r * m * i", "r * m * i"),
        ("(long long)i * 4 + 1", "static_cast<long long>(i) * 4 + 1"),
        ("(long long)i + n", "static_cast<long long>(i) + n"),
        ("big + i", "big + i"),
        ("((long long)i << n) / 3", "(static_cast<long long>(i) << n) / 3"),
        ("(long long)(i / 4) * m", "static_cast<long long>(m) * (i / 4)"),
        (
            "(long long)(i + at[r]) * m",
            "static_cast<long long>(m) * at_value + static_cast<long long>(m) * i",
        ),
        ("(long long)n * m + r", "static_cast<long long>(n) * m + r"),
    ],
)
def test_products_are_wide(index: str, becomes: str) -> None:
    assert f"x[{becomes}]" in summed(index)


@pytest.mark.parametrize(
    "index", ["(size_t)(r / 4) * m", "(long long)(r % n) * m", "m * (size_t)(r / 4) + n"]
)
def test_a_quotient_that_is_widened_makes_the_indices_wide(index: str) -> None:
    text = emitted(f"y[r] = x[{index}];")
    assert "const long long r = " in text
    assert "x[static_cast<long long>(m) * (r " in text


def test_loops_that_are_joined_count_as_the_widest() -> None:
    loops = "float s = 0.0f, t = 0.0f; for (int i = 0; i < n; ++i) s += x[i]; for (long long k = 0; k < n; ++k) t += x[k + big];"
    assert emitted(f"{loops} y[r] = s * t;").count("for (long long") == 1


def test_what_wraps_is_narrowed_first() -> None:
    text = emitted("y[r] = x[((unsigned)(n * m) + 5u) % 7u + big] + x[((unsigned)n * 3u >> 2) + big];")
    assert "x[(static_cast<unsigned>(static_cast<long long>(n) * m + 5) % 7u) + big]" in text
    assert "x[(static_cast<unsigned>(static_cast<long long>(n) * 3) / 4u) + big]" in text


def test_what_is_stored_along_a_loop_counts_alike() -> None:
    text = emitted("for (int i = 0; i < m; ++i) y[(long long)r * m + i] = x[i] * i;")
    assert "for (int i = 0; i < m; ++i)" in text
    assert "y[r * m + i] = x[i] * float(i);" in text


def test_lanes_step_beyond_the_end_in_64_bits() -> None:
    source = (
        f"__global__ void f({PARAMETERS}) {{ int r = blockIdx.x * blockDim.x + threadIdx.x; if (r < rows) {{"
        " float s = 0.0f; for (int i = 0; i < n; ++i) s += x[(long long)r * n + i]; y[r] = s; } }\n"
        f'extern "C" void h({PARAMETERS}) {{ f<<<(rows + 63) / 64, 64>>>({GIVEN}); }}\n'
    )
    values = {"lanes": "32", "threads": "64", "vector": "1"}
    plan = MOVES["share_rows"].apply(Plan(lifted(source).algorithm, Schedule()), values)
    text = emit(plan.algorithm, plan.schedule, LaunchFacts({name: name for name in GIVEN.split(", ")})).kernel
    assert "for (long long i = lane; i < n; i += kLanes)" in text


def test_a_kernel_of_32_bits_stays_one() -> None:
    text = emitted("float s = 0.0f; for (int i = 0; i < n; ++i) s += x[r * m + i * n]; y[r] = s;")
    assert "for (int i = 0; i < n; ++i)" in text
    assert "long long" not in text.partition("{")[2]


def test_a_flat_index_that_is_taken_apart_is_whole_where_it_is_used() -> None:
    split = lifted(
        "__global__ void f(const float* x, const float* b, float* y, int n, int m, long long total) {"
        " long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;"
        " if (i < total) y[i] = x[i] + b[(i / m) % n]; }\n"
        'extern "C" void h(const float* x, const float* b, float* y, int k, int n, int m) {'
        " long long total = (long long)k * n * m; f<<<(total + 63) / 64, 64>>>(x, b, y, n, m, total); }\n"
    ).algorithm
    assert len(split.axes) == 3
    text = emit(split, Schedule(), LaunchFacts({p.name: p.name for p in split.parameters})).kernel
    assert "y[flat] = x[flat] + b[" in text


def test_walking_indices_begin_and_step_in_64_bits() -> None:
    text = lifted(
        "__global__ void f(const float* x, float* y, long long n) {"
        " for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)"
        " y[i] = x[i]; }\n"
        'extern "C" void h(const float* x, float* y, long long n) { f<<<128, 64>>>(x, y, n); }\n'
    ).algorithm
    kernel = emit(text, Schedule(), LaunchFacts({p.name: p.name for p in text.parameters})).kernel
    assert "i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;" in kernel
    assert "i += static_cast<long long>(gridDim.x) * blockDim.x)" in kernel
