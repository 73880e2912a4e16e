import pytest

from kernelskill.source.loops import find_loops
from kernelskill.source.unit import SourceUnit


def _loops(body):
    unit = SourceUnit.parse(f"__global__ void k(float* a, int n, int m) {{\n{body}\n}}\n")
    assert unit.problems == ()
    return find_loops(unit, unit.kernels[0])


@pytest.mark.parametrize(
    ("header", "trip", "text"),
    [
        ("int i = 0; i < 10; ++i", 10, "10"),
        ("int i = 0; i <= 10; i += 4", 3, "(10 + 1 + 4 - 1) / 4"),
        ("int i = 10; i > 0; i--", 10, ""),
        ("int i = 16; i; i >>= 1", 5, ""),
        ("int i = 1; i < 256; i *= 2", 8, ""),
        ("int i = 0; n > i; i = i + 2", None, "(n + 2 - 1) / 2"),
        ("int i = m; i < n; i++", None, "n - m"),
        ("int i = 0; i < 10; i -= 1", None, ""),
    ],
)
def test_trip_counts(header, trip, text):
    (loop,) = _loops(f"for ({header}) a[i] = 0;")
    assert loop.is_counted
    assert (loop.trip_count, loop.trip_count_text) == (trip, text)


def test_keys_paths_and_depth():
    loops = _loops(
        "for (int i = 0; i < n; ++i) for (int k = 0; k < n; ++k) {} for (int k = 0; k < 2; ++k) {}"
    )
    assert [loop.path for loop in loops] == [("loop:i",), ("loop:i", "loop:k"), ("loop:k#2",)]
    assert [loop.is_innermost for loop in loops] == [False, True, True]


def test_while_with_one_step_is_counted():
    (loop,) = _loops("int k = 0; while (k < n) { a[k] = 1; ++k; }")
    assert (loop.variable, loop.trip_count_text, loop.is_counted) == ("k", "n", True)


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < n; ++i) { if (a[i]) i += 2; }",
        "for (int i = 0; i < n; ++i) { n = 3; }",
        "for (int i = 0; i < a[0]; ++i) { }",
        "int i = 0; while (i < n) { if (m) continue; if (n) i++; }",
    ],
)
def test_what_changes_otherwise_is_not_counted(body):
    assert not _loops(body)[0].is_counted


def test_what_happens_inside():
    outer, inner = _loops(
        "for (int i = 0; i < n; ++i) {\n __syncthreads();\n #pragma unroll 2\n"
        " for (int j = 0; j < 4; ++j) { if (j) break; }\n if (i) continue; }"
    )
    assert outer.has_barrier
    assert (outer.has_break, outer.has_continue) == (False, True)
    assert (inner.has_break, inner.has_continue) == (True, False)
    assert inner.pragma == "#pragma unroll 2"
    assert outer.pragma == ""
