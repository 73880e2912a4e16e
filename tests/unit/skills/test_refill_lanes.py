"""Lanes that take the next element when they are done: what is written, and what is declined."""

from __future__ import annotations

import pytest

from tests.skills.applying import changed_lines, refusals
from tests.skills.uneven_spellings import COLLATZ, ESCAPE, launcher

SKILL = "parallelism/refill_lanes"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
GUARD = INDEX + "if (i >= n) return;\n"
LOOP = "float v = in[i];\nwhile (v > 1) v *= 0.5f;\n"
STORE = "out[i] = v;"


def source(body: str, head: str = "", block: int = 64) -> str:
    kernel = f"__global__ void k(const float* in, float* out, int n)\n{{\n{body}\n}}\n"
    return head + kernel + launcher("float", "float", block)


def test_a_loop_becomes_rounds_of_a_warp() -> None:
    added = [line for line in changed_lines(SKILL, COLLATZ, work="16", turns="8") if line.startswith("+")]
    assert added == [
        "+ // The loop takes another number of turns for every element, and a warp waits for its longest. So a warp has",
        "+ // 512 elements here, and a lane that is done with one takes the next: every 8 turns the warp looks",
        "+ // which lanes those are.",
        "+ const long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32 * 512;",
        "+ const long long rest = (long long)n - first;",
        "+ const int count_2 = rest < 512 ? (int)rest : 512;",
        "+ const unsigned lanes_below = (1u << threadIdx.x % 32) - 1;",
        "+ int taken = 0, own = 0;  // elements of the warp that were taken, and the lane's",
        "+ bool done = true;",
        "+ int i, count;",
        "+ unsigned long long value;",
        "+ for (;;) {",
        "+ const unsigned idle = __ballot_sync(0xffffffff, done);",
        "+ if (idle == 0xffffffff && taken >= count_2) break;",
        "+ if (done) own = taken + __popc(idle & lanes_below);",
        "+ taken = min(taken + __popc(idle), count_2);",
        "+ if (done && own < count_2) {",
        "+ i = (int)(first + own);",
        "+ // past the end",
        "+ value = start[i] % 5000 + 1;",
        "+ count = 0;",
        "+ }",
        "+ if (own < count_2) {",
        "+ int turn = 0;",
        "+ #pragma unroll 8",
        "+ for (; turn < 8 && value != 1 && count < 300; ++turn) {",
        "+ if (value % 2 == 0)",
        "+ value = value / 2;",
        "+ else",
        "+ value = 3 * value + 1;",
        "+ count++;",
        "+ }",
        "+ done = turn < 8;",
        "+ if (done) {",
        "+ steps[i] = count;",
        "+ }",
        "+ }",
        "+ k<<<(n + 1023) / 1024, 64>>>(in, out, n);",
    ]


def test_steps_breaks_comments_and_constants_stay() -> None:
    added = changed_lines(SKILL, ESCAPE, work="8", turns="64")
    for line in (
        "+ const int more = 4;",
        "+ float cx, cy, x, y;",
        "+ i = (int)(first + own);  // point",
        "+ // where it starts",
        "+ cy = in[(i + 7) % n] * scale;",
        "+ #pragma unroll 4",
        "+ for (; turn < 64 && step < 100; ++turn, step++) {",
        "+ break;",
        "+ // how long it stayed",
    ):
        assert line in added


def test_variables_that_end_before_the_loop_stay_inside() -> None:
    text = source(
        GUARD + "const float w[2] = {in[i], 1};\nfloat v = w[0] * w[1];\nwhile (v > 1) v *= 0.5f;\n" + STORE
    )
    added = changed_lines(SKILL, text)
    assert "+ const float w[2] = {in[i], 1};" in added
    assert "+ v = w[0] * w[1];" in added


def test_constants_are_the_same_for_every_element() -> None:
    constants = "const float w[2] = {1, 0.5f};\nconst int last = 1;\nconst float least = 1e-3f;\n"
    text = source(GUARD + constants + "float v = in[i];\nwhile (v > least) v *= w[last];\n" + STORE)
    changed = changed_lines(SKILL, text)
    assert not [line for line in changed if "const float w" in line or "last =" in line or "least =" in line]
    assert "+ v = in[i];" in changed


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (GUARD + "float v = in[i];\nfor (int j = 0; j < n; ++j) v *= 0.5f;\n" + STORE, "depends on the element"),
        (GUARD + "for (int j = SIZE * i; j < min(n, SIZE * i + SIZE); ++j) out[j] = 1;", "depends on the element"),
        (GUARD + "float v = in[i] * 2;\n" + STORE, "depends on the element"),
        (GUARD + LOOP + "for (int j = 0; j < n; ++j) v += in[j];\n" + STORE, "another loop"),
        (GUARD + LOOP + "while (v < 7) v += 1;\n" + STORE, "another loop"),
        (GUARD + "if (in[i] > 9) { while (in[i] > out[i]) out[i] += 1; }", "depends on the element"),
        (GUARD + "if (in[i] < 0) return;\n" + LOOP + STORE, "returns"),
        (GUARD + "float v = in[i];\nwhile (v > 1) { v *= 0.5f; if (v == 3) return; }\n" + STORE, "returns"),
        (INDEX + "if (i >= n || in[i] < 0) return;\n" + LOOP + STORE, "more than its index"),
        (GUARD + "const float& u = in[i];\nfloat v = u;\nwhile (v > u / 9) v *= 0.5f;\n" + STORE, "needs its value"),
        (GUARD + "float w[1] = {in[i]}, v = w[0];\nwhile (v > w[0] / 9) v *= 0.5f;\n" + STORE, "assigned later"),
        (GUARD + "float v{in[i]};\nwhile (v > 1) v *= 0.5f;\n" + STORE, "assigned later"),
        (GUARD + "auto v = in[i];\nwhile (v > 1) v *= 0.5f;\n" + STORE, "of a type"),
        (GUARD + "static float v;\nv = in[i];\nwhile (v > 1) v *= 0.5f;\n" + STORE, "static"),
        (GUARD + "float v = in[i];\nwhile (v > 1) { v *= 0.5f; __syncthreads(); }\n" + STORE, "__syncthreads"),
        (GUARD + "float v = in[i];\nwhile (v > 1) v = __shfl_down_sync(~0u, v, 1);\n" + STORE, "__shfl_down_sync"),
        (GUARD + "float v = in[i];\nwhile (v > 1) v = atomicAdd(out, 1);\n" + STORE, "another thread"),
        ("float v = 0;\n" + GUARD + "while (v < in[i]) v += 1;\n" + STORE, "'v'"),
        (GUARD + "float v = in[i];\nwhile (float w = v - 1) v = w;\n" + STORE, "in its condition"),
        (GUARD + "int j = 2;\nfor (int j = 0; j < in[i]; ++j) out[i] += j;", "more than one variable"),
        (GUARD + "for (int n = 0; n < in[i]; ++n) out[i] += n;", "more than one variable"),
        (GUARD + "float v = in[i];\nagain: while (v > 1) v *= 0.5f;\n" + STORE, "labels"),
        (GUARD + "float v = in[i];\nwhile (v > 1) v -= threadIdx.x;\n" + STORE, "more than the global index"),
    ],
)  # fmt: skip
def test_what_is_declined(body: str, reason: str) -> None:
    assert reason in refusals(SKILL, source(body, "constexpr int SIZE = 4;\n"))[0]


def test_macros_that_use_variables_unseen_are_declined() -> None:
    body = GUARD + "float v = in[i];\nwhile (v > 1) HALVE(v);\n" + STORE
    assert "may assign" in refusals(SKILL, source(body, "#define HALVE(a) a *= 0.5f\n"))[0]


def test_blocks_are_whole_warps() -> None:
    assert "whole warps" in refusals(SKILL, source(GUARD + LOOP + STORE, block=48))[0]


def test_types_that_may_need_a_value_are_declined() -> None:
    head = "struct Pair { float a, b; };\n"
    body = GUARD + "Pair p = {in[i], 1};\nwhile (p.a > p.b) p.a *= 0.5f;\nout[i] = p.a;"
    assert "of a type" in refusals(SKILL, source(body, head))[0]
