"""One long running sum by many blocks: the kernels it becomes, and what is declined."""

from __future__ import annotations

import pytest

from kernelskill.schema.task import Promise
from tests.skills.applying import changed_lines, refusals

SCAN = "parallelism/scan_over_blocks"
PARAMETERS = "const float* x, float* y, int* z, int n, int m"
LAUNCH = "k<<<1, 1, 0, s>>>(x, y, z, n, m);"
SUM = "for (int j = 0; j < n; ++j) { int v = z[j]; z[j] = sum; sum += v; }"


def source(body: str, launch: str = LAUNCH, head: str = "") -> str:
    return (
        f"{head}__global__ void k({PARAMETERS}) {{\n{body}\n}}\n"
        f'extern "C" void f({PARAMETERS}, cudaStream_t s) {{\n{launch}\n}}\n'
    )


def added(text: str, *promises: Promise) -> str:
    lines = changed_lines(SCAN, text, *promises, parts="256", turns="4")
    return "\n".join(line[2:] for line in lines if line.startswith("+"))


def test_stretches_are_added_up_scanned_and_run_again() -> None:
    made = added(source(f"int sum = 0;\n{SUM}\nz[n] = sum;"))
    assert made.count("__global__") == 4
    assert "k_sums<<<parts, 256, 0, s>>>(x, y, z, n, m, partial, parts);" in made
    assert "k_before<<<1, 1024, 0, s>>>(partial, parts);" in made
    assert "k<<<parts, 256, 0, s>>>(x, y, z, n, m, partial, parts);" in made
    assert "sum += partial[part];" in made
    assert "cudaMallocAsync(&partial, sizeof(int) * (parts + 1), s);" in made


def test_what_stands_behind_the_loop_waits_for_all_stretches() -> None:
    made = added(source(f"int sum = 4;\n{SUM}\nz[n] = sum;"))
    assert "k_end<<<1, 1, 0, s>>>(x, y, z, n, m, partial, parts);" in made
    assert "k_end" not in added(source(f"int sum = 0;\n{SUM}"))


def test_a_start_that_is_not_zero_is_kept() -> None:
    made = added(source(f"int sum = 0;\n{SUM.replace('j = 0', 'j = m')}"))
    assert "(long long)(n) - (long long)(m)" in made
    assert "const int first = (m) + (int)min(part * steps, length);" in made


def test_places_are_taken_over_blocks_where_nothing_overlaps() -> None:
    body = "int at = 0;\nfor (int j = 0; j < n; ++j) if (x[j] > 0) y[at++] = x[j];\nz[0] = at;"
    assert "touch" in refusals(SCAN, source(body))[0]
    assert "x[j] > 0" in added(source(body), Promise.NO_ALIAS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (source(f"int sum = z[0];\n{SUM}"), "reads memory"),
        (source(f"int sum = 0;\n{SUM.replace('j < n', 'j < z[n]')}"), "the end of the loop"),
        (source(f"int sum = 0;\ny[0] = 1.0f;\n{SUM}"), "line 3 reads memory"),
        (source(f"int sum = 0;\n{SUM.replace('j < n', 'j < 100')}"), "only 100 turns"),
        (source(f"int sum = 0;\n{SUM.replace('j < n', 'j <= n')}"), "count up by one"),
        (source(f"int sum = 0, j;\n{SUM.replace('int j = 0', 'j = 0')}"), "outside of the loop"),
        (
            source("float sum = 0;\nfor (int j = 0; j < n; ++j) sum += x[j];\ny[0] = sum;"),
            "not one running sum",
        ),
        (
            source("int sum = 0;\nfor (int j = 0; j < n; ++j) { z[j + 1] = sum; sum += z[j]; }"),
            "another turn",
        ),
        (source("float sum = 0;\nfor (int j = 0; j < n; ++j) { y[j] = sum; sum += x[j]; }"), "touch"),
        (source(f"int sum = 0;\n{SUM}", LAUNCH.replace("<<<1, 1", "<<<1, 2")), "test of its global index"),
        (source(f"int sum = 0;\n{SUM}", f"{LAUNCH}\n{LAUNCH}"), "several places"),
        (source(f"int sum = 0;\n{SUM}", f"if (n) {LAUNCH}"), "part of another statement"),
        (source(f"int sum = 0;\n{SUM}", LAUNCH.replace("k<<<", "k<3><<<"), "template <int N> "), "template"),
        (source(f"int sum = 0;\nif (n > 3) {{ {SUM} }}"), "inside another statement"),
    ],
)
def test_other_sums_are_declined(text: str, why: str) -> None:
    assert why in refusals(SCAN, text)[0]
