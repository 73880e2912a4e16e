"""Skills about repeated loads, batched loads and streaming: what they make, and what they decline."""

from __future__ import annotations

import pytest

from kernelskill.schema.task import Promise
from tests.skills.applying import changed_lines, refusals

NO_ALIAS = Promise.NO_ALIAS
REUSE = "memory/reuse_loads"
FORWARD = "memory/forward_stores"
STREAM = "memory/streaming_hints"
BATCH = "memory/batch_loads"
AHEAD = "memory/software_prefetch"
HEAD = """#define SET(p, i) p[i] = 1
#define COLUMN (j * 2)
float __device__ other(float);
"""


def kernel(text: str, parameters: str = "const float* x, float* y, float* z, int* at, int n") -> str:
    names = ", ".join(part.split()[-1].lstrip("*") for part in parameters.split(","))
    plain = parameters.replace(" __restrict__", "").replace("volatile ", "")
    return (
        f"{HEAD}__global__ void k({parameters}) {{\nint i = blockIdx.x * blockDim.x + threadIdx.x;\n{text}\n}}\n"
        f'extern "C" void f({plain}) {{ k<<<(n + 31) / 32, 32>>>({names}); }}\n'
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "y[i] = x[i] * 2; /* x[i] */\nif (n > 3) { z[i] = x[i]; } z[0] += x[i] + x[i + 1];",
            [
                "- y[i] = x[i] * 2; /* x[i] */",
                "- if (n > 3) { z[i] = x[i]; } z[0] += x[i] + x[i + 1];",
                "+ const float x_value = x[i];",
                "+ y[i] = x_value * 2; /* x[i] */",
                "+ if (n > 3) { z[i] = x_value; } z[0] += x_value + x[i + 1];",
            ],
        ),
        (
            "#pragma unroll 2\nfor (int k = 0; k < at[i]; ++k) y[i] += x[k];",
            [
                "+ const int at_value = at[i];",
                "- for (int k = 0; k < at[i]; ++k) y[i] += x[k];",
                "+ for (int k = 0; k < at_value; ++k) y[i] += x[k];",
            ],
        ),
        (
            "const float* p = x + i;\ny[i] = *p; z[i] = 3;\ni = 5;\ny[i] = *p;",
            [
                "- y[i] = *p; z[i] = 3;",
                "+ const float p_value = *p;",
                "+ y[i] = p_value; z[i] = 3;",
                "- y[i] = *p;",
                "+ y[i] = p_value;",
            ],
        ),
    ],
)
def test_reuse(text: str, lines: list[str]) -> None:
    assert changed_lines(REUSE, kernel(text), NO_ALIAS) == lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[i] = x[i] + x[i];", "loads no element again after a store"),
        ("float a = x[i] + x[i]; y[i] = a;", "loads no element again after a store"),
        ("y[i] = x[i]; y[i + 1] = x[i]; at[0] = 1;", None),
        ("y[i] = x[i]; i++; z[i] = x[i];", "changes"),
        ("y[i] = x[i]; __syncthreads(); z[i] = x[i];", "__syncthreads"),
        ("y[i] = x[i]; z[i] = other(2); z[i] = x[i];", "other"),
        ("y[i] = x[i]; SET(z, i); z[i] = x[i];", "changes"),
        ("if (n > 3) y[i] = x[i]; z[i] = 1; if (n > 4) y[i] = x[i];", "loads no element again"),
        ("y[i] = n > 3 ? x[i] : 0; z[i] = 1; y[i] = n > 4 ? x[i] : 0;", "loads no element again"),
        ("y[i] = x[i]; { int i = 3; z[i] = x[i]; }", "names other variables"),
        ("float& r = y[i]; r = x[i]; z[i] = x[i];", "is a reference"),
        ("auto f = [&](int q) { y[q] = 1; }; z[i] = x[i]; f(i); z[i] += x[i];", "lambdas"),
        ("y[i] = x[i]; z[i] = 1; goto end; end: y[i] = x[i];", "jumps"),
        ("y[i] = sizeof(x[i]); z[i] = x[0]; y[i] = sizeof(x[i]);", "loads no element again"),
        ("for (int k = 0; k < n; ++k) { y[k] = x[k]; z[k] = 1; } y[0] = x[n];", "loads no element again"),
    ],
)
def test_reuse_declines(text: str, reason: str | None) -> None:
    if reason is None:
        assert changed_lines(REUSE, kernel(text), NO_ALIAS)
    else:
        assert reason in refusals(REUSE, kernel(text), NO_ALIAS)[0]


def test_reuse_needs_proof() -> None:
    text = "y[i] = x[i]; z[i] = x[i];"
    assert "which may be x[i]" in refusals(REUSE, kernel(text))[0]
    assert "volatile" in refusals(REUSE, kernel(text, "volatile float* x, float* y, float* z, int n"))[0]
    restricted = "const float* __restrict__ x, float* y, float* z, int n"
    assert changed_lines(REUSE, kernel(text, restricted))
    same = kernel(text).replace("(x, y, z, at, n)", "(y, y, z, at, n)")
    assert "which may be x[i]" in refusals(REUSE, same, NO_ALIAS)[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "y[i] = x[i] + 1;\nz[i] = 3;\nat[i] = y[i];",
            [
                "- y[i] = x[i] + 1;",
                "+ float y_value = x[i] + 1;",
                "+ y[i] = y_value;",
                "- at[i] = y[i];",
                "+ at[i] = y_value;",
            ],
        ),
        (
            "y[i] = y[i] * 2 + x[i];\nz[i] = 1;\nif (n > 3) y[i]++;\nz[i] -= y[i];",
            [
                "- y[i] = y[i] * 2 + x[i];",
                "+ float y_value = y[i];",
                "+ y[i] = (y_value = y_value * 2 + x[i]);",
                "- if (n > 3) y[i]++;",
                "- z[i] -= y[i];",
                "+ if (n > 3) y[i] = ++y_value;",
                "+ z[i] -= y_value;",
            ],
        ),
    ],
)
def test_forward(text: str, lines: list[str]) -> None:
    assert changed_lines(FORWARD, kernel(text), NO_ALIAS) == lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[i] = x[i]; z[i] = y[i];", "loads nothing back"),
        ("y[i] = x[i] * 2; z[i] = 1; z[i] += y[i];", "stores a product"),
        ("float p = x[i] * x[i]; y[i] = p; z[i] = 1; z[i] += y[i];", "stores a product"),
        ("y[i] = n > 2 ? x[i] * 3 : 1; z[i] = 1; z[i] += y[i];", "stores a product"),
        ("y[i] *= x[i]; z[i] = 1; z[i] += y[i];", "stores a product"),
        ("y[i] = 1; z[i] = 2; y[i + n] = 3; z[i] = y[i];", "which may be y[i]"),
        ("y[i] = 1; z[i] = 2; __syncthreads(); z[i] = y[i];", "__syncthreads"),
        ("z[i] = (y[i] = 1); z[i] += 2; z[i] += y[i];", "inside an expression"),
        ("if (n > 3) y[i] = 1; z[i] = 2; if (n > 3) z[i] += y[i];", "loads nothing back"),
        ("for (y[i] = 1; y[i] < n; y[i]++) z[i] += 1;", "inside an expression"),
        ("y[i] = 1; for (int k = 0; k < n; ++k) { z[k] = y[i]; at[k] = y[i]++; }", "inside an expression"),
    ],
)
def test_forward_declines(text: str, reason: str) -> None:
    assert reason in refusals(FORWARD, kernel(text), NO_ALIAS)[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "for (int j = 0; j <= n; ++j) y[i] += x[j];",
            [
                "- for (int j = 0; j <= n; ++j) y[i] += x[j];",
                "+ int j_first = 0;",
                "+ for (; j_first <= n && (long long)n - j_first >= 3; j_first += 4) {",
                "+ float x_batch[4];",
                "+ #pragma unroll",
                "+ for (int turn = 0; turn < 4; ++turn) {",
                "+ const int j = j_first + turn;",
                "+ x_batch[turn] = x[j];",
                "+ }",
                "+ #pragma unroll",
                "+ for (int turn = 0; turn < 4; ++turn) {",
                "+ y[i] += x_batch[turn];",
                "+ }",
                "+ }",
                "+ for (int j = j_first; j <= n; ++j) y[i] += x[j];",
            ],
        ),
    ],
)
def test_batch(text: str, lines: list[str]) -> None:
    assert changed_lines(BATCH, kernel(text), NO_ALIAS, turns="4") == lines


LOOPS = [
    ("for (int j = 0; j < n; ++j) { y[j] = y[j + 1]; }", "of a later turn"),
    ("for (int j = 0; j < n; ++j) { if (x[j] > 1) break; }", "not loaded in every turn"),
    ("for (int j = 0; j < n; ++j) { if (j > 3) y[j] = x[j]; }", "not loaded in every turn"),
    ("for (int j = 0; j < n; ++j) { if (j > 3) continue; y[j] = x[j]; }", "not loaded in every turn"),
    ("for (int j = 0; j < n; ++j) { y[j] = x[i]; }", "the same in every turn"),
    ("for (int j = 0; j < n; ++j) { y[j] = x[j]; ++j; }", "does not count"),
    ("int j = 0; while (j < n) { y[j] = x[j]; ++j; }", "does not count"),
    ("for (int j = n; j > 0; --j) { y[j] = x[j]; }", "does not count"),
    ("for (int j = 0; j < n; j += n) { y[j] = x[j]; }", "not certain to be positive"),
    ("for (int j = 0; j < at[i]; ++j) { y[j] = x[j]; }", "does not count"),
    ("for (short j = 0; j < n; ++j) { y[j] = x[j]; }", "counts in a type"),
    ("for (int j = 0; j < n; ++j) { y[j] = x[COLUMN]; }", "uses variables of the kernel"),
    ("for (int j = 0; j < n; ++j) { y[j] = x[atomicAdd(at, 1) + j]; }", "calls 'atomicAdd'"),
    ("for (int j = 0; j < n; ++j) { y[j] = x[i++ + j]; }", "changes a variable"),
    ("for (int j = 0, k = 3; j < n; ++j) { y[j] = x[j] + k; }", "does not count one variable"),
    ("int q = 0; for (int j = 0; j < n; ++j) { y[j] = x[j + q]; q += 2; }", "its own turn only"),
    ("for (int j = 0; j < n; ++j) { y[j] = x[j]; z[j] = other(1); }", "may access memory"),
    ("for (int j = 0; j < 8; ++j) { y[j] = x[j]; }", "so short"),
]


@pytest.mark.parametrize("skill", [BATCH, AHEAD])
@pytest.mark.parametrize(("text", "reason"), LOOPS)
def test_loops_that_are_declined(skill: str, text: str, reason: str) -> None:
    assert reason in refusals(skill, kernel(text), NO_ALIAS)[0]


def test_batches_are_not_batched_again() -> None:
    lines = changed_lines(BATCH, kernel("for (int j = 0; j < n; ++j) y[i] += x[j];"), NO_ALIAS)
    text = "\n".join(line[2:] for line in lines if line[0] == "+")
    assert refusals(BATCH, kernel(text), NO_ALIAS)


def test_elements_of_other_kinds() -> None:
    parameters = "const long long* x, const unsigned char* y, float* __restrict__ z, int n"
    text = "for (int j = 0; j < n; ++j) z[j] += x[j] * y[j];"
    lines = changed_lines(AHEAD, kernel(text, parameters))
    assert lines[1:3] == [
        "+ long long x_next = 0 < n ? x[0] : 0;",
        "+ unsigned char y_next = 0 < n ? y[0] : 0;",
    ]
    address = "for (int j = 0; j < n; ++j) z[j] += __ldg(&x[j]);\nz[i] = __ldg(&x[i]); z[0] = __ldg(&x[i]);"
    assert "loads nothing" in refusals(BATCH, kernel(address, parameters))[0]
    assert "loads no element again" in refusals(REUSE, kernel(address, parameters))[0]


def test_memory_seen_as_another_type_is_not_told_apart_by_it() -> None:
    text = "const int* w = (const int*)x;\nat[i] = w[i]; z[i] = w[i]; at[0] = w[i] + x[i];"
    assert "loads no element again" in refusals(REUSE, kernel(text))[0]
    text = "int* w = (int*)y;\nz[i] = at[i]; w[0] = 1; z[i] = at[i];"
    assert "writes w[0]" in refusals(REUSE, kernel(text))[0]


def test_pointers_in_a_struct() -> None:
    head = "struct Csr { const int* start; /* , */ const int *column; const float* value; float* const* rows; };\n"
    text = "float s = 0;\nfor (int j = a.start[i]; j < n; ++j) s += a.value[j] * x[a.column[j]];\nx[i] = s;"
    source = head + kernel(text, "Csr a, float* x, int n")
    lines = changed_lines(AHEAD, source)
    assert lines[1:4] == [
        "+ const int j_first = (int)(a.start[i]);",
        "+ float value_next = j_first < n ? a.value[j_first] : float();",
        "+ float x_next = j_first < n ? x[a.column[j_first]] : float();",
    ]
    assert "+ x_batch[turn] = x[column_batch[turn]];" in changed_lines(BATCH, source)
    stores = source.replace("s += a.value[j]", "x[j] = a.value[j]")
    assert refusals(BATCH, stores)
    assert refusals(AHEAD, stores)
    unknown = head + kernel("for (int j = 0; j < n; ++j) x[0] = a.rows[j][0];", "Csr a, float* x, int n")
    assert refusals(BATCH, unknown, NO_ALIAS)


def test_stores_of_the_loop_need_proof() -> None:
    text = "for (int j = 0; j < n; ++j) z[j] = x[j];"
    for skill in (BATCH, AHEAD):
        assert "which may be x[j] of a later turn" in refusals(skill, kernel(text))[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "for (int j = 0; j < n; ++j) z[0] += x[j + 1] * x[i];",
            [
                "- for (int j = 0; j < n; ++j) z[0] += x[j + 1] * x[i];",
                "+ float x_next = 0 < n ? x[0 + 1] : float();",
                "+ for (int j = 0; j < n; ++j) {",
                "+ const float x_now = x_next;",
                "+ if (j + 1 < n) x_next = x[(j + 1) + 1];",
                "+ z[0] += x_now * x[i];",
                "+ }",
            ],
        ),
        (
            "for (int j = i & 3; j < n; ++j) z[0] += x[j];",
            [
                "- for (int j = i & 3; j < n; ++j) z[0] += x[j];",
                "+ float x_next = (i & 3) < n ? x[(i & 3)] : float();",
                "+ for (int j = i & 3; j < n; ++j) {",
                "+ const float x_now = x_next;",
                "+ if (j + 1 < n) x_next = x[j + 1];",
                "+ z[0] += x_now;",
                "+ }",
            ],
        ),
        (
            "for (size_t j = i; j < n; j += blockDim.x) {\nz[0] += j > 3 ? x[j] : 1;\n}",
            [
                "+ float x_next = (size_t)i < n ? ((size_t)i > 3 ? x[(size_t)i] : 1) : float();",
                "- z[0] += j > 3 ? x[j] : 1;",
                "+ const float x_now = x_next;",
                "+ if (n - j > 1ULL * blockDim.x) x_next = (size_t)(j + blockDim.x) > 3 "
                "? x[(size_t)(j + blockDim.x)] : 1;",
                "+ z[0] += x_now;",
            ],
        ),
    ],
)
def test_prefetch(text: str, lines: list[str]) -> None:
    assert changed_lines(AHEAD, kernel(text), NO_ALIAS) == lines


def test_prefetch_past_barriers() -> None:
    text = (
        "__shared__ float s[32];\nfor (int j = 0; j < n; ++j) {\ns[threadIdx.x] = x[j * 32 + i];\n"
        "__syncthreads();\nz[i] += s[j % 32];\n__syncthreads();\n}"
    )
    assert any(
        "x_next = x[(j + 1) * 32 + i]" in line for line in changed_lines(AHEAD, kernel(text), NO_ALIAS)
    )
    assert "may be x[j * 32 + i]" in refusals(AHEAD, kernel(text))[0]
    elsewhere = kernel(f"{text}\nfloat* w = (float*)x; w[i] = 1;")
    assert "writes w[i]" in refusals(AHEAD, elsewhere, NO_ALIAS)[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "if (i < n) z[i] = x[at[i]] /* code */ + 1;",
            [
                "- if (i < n) z[i] = x[at[i]] /* code */ + 1;",
                "+ if (i < n) __stcs(&z[i], x[__ldcs(&at[i])] /* code */ + 1);",
            ],
        ),
        (
            "for (int r = 0; r < n; ++r) y[r * n + i] = x[r] /* , */;",
            [
                "- for (int r = 0; r < n; ++r) y[r * n + i] = x[r] /* , */;",
                "+ for (int r = 0; r < n; ++r) __stcs(&y[r * n + i], x[r]) /* , */;",
            ],
        ),
    ],
)
def test_streaming(text: str, lines: list[str]) -> None:
    assert changed_lines(STREAM, kernel(text), accesses="both") == lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("if (i < n) z[i] = x[i];", "touches all of its data once"),
        ("if (i < n) z[i] = x[i] + x[i + 1];\nz[i] += 1;", "several places"),
        ("z[2 * i] = x[threadIdx.x];", "the same for several blocks"),
        ("z[i] += x[i / 2];", "neighbouring threads"),
        ("z[0] = (y[i] = 1);", "inside an expression"),
        ("for (int r = 0; r < n; ++r) z[r] = x[i];", "accessed again in a loop"),
        ("for (int r = 0; r < n; ++r) z[r] = x[i + r];", "threads beside"),
    ],
)
def test_streaming_declines(text: str, reason: str) -> None:
    assert reason in refusals(STREAM, kernel(text))[0]
