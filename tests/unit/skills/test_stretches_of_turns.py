"""Counts that are asked for once in several turns: what is written, what is computed, and what is declined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cpu_program import printed
from tests.skills.applying import LIBRARY, changed_lines, refusals, rewritten
from tests.skills.test_equivalence import HERE, serial

SKILL = "compute/stretches_of_turns"
HEAD = """
__global__ void k(const int* in, int* out, int n, int limit)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned value = in[i];
    int count = 0;
    BODY
    out[i] = count * 1000 + value % 1000;
}
extern "C" void f(const int* in, int* out, int n, int limit) { k<<<(n + 31) / 32, 32>>>(in, out, n, limit); }
"""
STEP = "value = value % 2 ? 3 * value + 1 : value / 2;"
SPELLINGS = {
    "while": f"while (value != 1 && count < limit) {{ {STEP} count++; }}",
    "literal": f"while (count < 21 && value != 1) {{\n        {STEP}\n        ++count;\n    }}",
    "for": f"for (int k = -3; value > 1 && k <= limit; ++k) {{ {STEP} count += k; }}",
    "single": "for (; (value & 3 || value > 40) && count < limit; value = value * 5u + 7u) count += 1;",
    "two": f"int left = -9; for (; limit > count && left < 30 && value != 1; ++left) {{ {STEP} ++count; }}",
    "continue": "for (; value != 1 && count < limit; count++) { if (value % 2) { value = 3 * value + 1; continue; } value /= 2; }",
    "alone": f"if (n > 3) while (value != 1 && count < limit) {{ {STEP} count++; }} else count = 7;",
}

DRIVER = """
int main() {
    void (*all[])(const int*, int*, int, int) = {%s};
    for (auto launcher : all) for (int limit : {0, 1, 3, 4, 15, 16, 17, 33, 200, -1, -2147483647 - 1}) {
        std::vector<int> in(200), out(200);
        for (int i = 0; i < 200; ++i) in[i] = i + 1;
        launcher(in.data(), out.data(), 200, limit);
        std::fwrite(out.data(), 4, out.size(), stdout);
    }
}
"""


def source_of(body: str) -> str:
    return HEAD.replace("BODY", body)


def test_a_stretch_asks_once() -> None:
    lines = changed_lines(SKILL, source_of(SPELLINGS["literal"]), turns="8")
    assert [line[2:] for line in lines if line.startswith("+")][:4] == [
        "// No count is asked for in 8 turns once it is known to allow them all.",
        "#pragma unroll 8",
        "for (unsigned taken = 0; value != 1; ++taken) {",
        "if (taken % 8 == 0 && !(count <= 13)) break;",
    ]
    assert not [line for line in lines if line.startswith("-")]


def test_bounds_that_are_not_known_do_not_overflow() -> None:
    (text,) = rewritten(SKILL, source_of(SPELLINGS["two"]), turns=("16",))
    assert "!((long long)limit - count >= 16 && left <= 14)" in text


@pytest.mark.slow
def test_results_stay(tmp_path: Path) -> None:
    texts = [source_of(body) for body in SPELLINGS.values()]
    made = [(text, *rewritten(SKILL, text, turns=("16", "4"))) for text in texts]
    names = [f"v{index}" for index in range(3 * len(made))]
    flat = [text for several in made for text in several]
    program = '#include "cpu.hpp"\n' + "".join(map(serial, flat, names))
    program += DRIVER % ", ".join(f"{name}::f" for name in names)
    rows = np.frombuffer(printed(tmp_path, program, HERE), dtype=np.int32).reshape(len(made), 3, -1)
    for spelling, (original, *others) in zip(SPELLINGS, rows, strict=True):
        assert original.any()
        assert all((row == original).all() for row in others), spelling


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"while (count < limit) {{ {STEP} count++; }}", "no loop that data ends"),
        (f"while (value != 1) {{ {STEP} }}", "no loop that data ends"),
        (f"while (value != 1 || count < limit) {{ {STEP} count++; }}", "no loop that data ends"),
        (f"while (value != 1 && count < limit) {{ {STEP} count += 2; }}", "no loop that data ends"),
        (f"while (value != 1 && count < limit) {{ {STEP} if (value > 9) count++; }}", "no loop that data ends"),
        (f"while (value != 1 && count < limit) {{ {STEP} count++; count = count & 63; }}", "no loop that data ends"),
        (f"while (value != 1 && count < limit) {{ {STEP} count++; limit--; }}", "no loop that data ends"),
        (f"int* p = &count; while (value != 1 && count < limit) {{ {STEP} count++; *p += 1; }}", "no loop that data ends"),
        (f"while (value != 1 && count < limit) {{ if (value == 5) continue; {STEP} count++; }}", "no loop that data ends"),
        (f"while (value != 1 && count < limit) {{ {STEP} count++; if (value == 5) break; }}", "left from within"),
        (f"while (value != 1 && count < limit) {{ {STEP} count++; if (value == 5) return; }}", "left from within"),
        ("while (count < n && in[count] != 7) count++;", "reads memory"),
        (f"while (count < limit && value % (limit - count) != 3) {{ {STEP} count++; }}", "divides, which a count may guard"),
        (f"while (count < limit && value / limit != 3) {{ {STEP} count++; }}", "divides, which a count may guard"),
        (f"while (value != 1 && count < limit) {{ {STEP} count++; __syncwarp(); }}", "__syncwarp"),
        (f"while (value != 1 && count < limit) {{ {STEP} count++; {30 * 'value += 2; '} }}", "too long"),
        (f"// kernelskill: off\n    while (value != 1 && count < limit) {{ {STEP} count++; }}\n    // kernelskill: on\n", "off"),
        (f"volatile int own = 0; while (value != 1 && own < limit) {{ {STEP} own++; }}", "volatile"),
        (f"unsigned own = 0; while (value != 1 && own < 9u) {{ {STEP} own++; }}", "no loop that data ends"),
    ],
)  # fmt: skip
def test_what_is_declined(body: str, reason: str) -> None:
    found = refusals(SKILL, source_of(body))
    assert any(reason in entry for entry in found), found


def test_what_is_left_has_no_stretches_of_its_own() -> None:
    for body in SPELLINGS.values():
        (done,) = rewritten(SKILL, source_of(body), turns=("4",))
        assert "has left" in refusals(SKILL, done)[0]


def test_narrow_turns_come_first() -> None:
    assert SKILL in {skill.id for skill in LIBRARY.followers(LIBRARY.get("compute/narrow_integers"))}
