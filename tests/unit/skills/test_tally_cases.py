"""Cases that are counted a word at a time: what is written, behind which moves, and what is declined."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY, refusals
from tests.skills.contexts import context_for

SKILL = "compute/tally_cases"
STEP = """state = state * 1664525u + 1013904223u;
            switch (state >> 30) {
            case 0: x[w] += 1; break;
            case 1: x[w] -= 1; break;
            case 2: y[w] += 1; break;
            default: y[w] -= 1; break;
            }"""
WALK = """#include <cuda_runtime.h>
__global__ void walk(const unsigned* seeds, int* x, int* y, int n, int steps)
{
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w < n) {
        unsigned state = seeds[w];
        x[w] = 0;
        y[w] = 0;
        for (int s = 0; s < steps; s++) {
            STEP
        }
    }
}
extern "C" void f(const unsigned* seeds, int* x, int* y, int n, int steps)
{
    walk<<<(n + 127) / 128, 128>>>(seeds, x, y, n, steps);
}
"""


def after(*skills: str, source: str = WALK.replace("STEP", STEP)) -> str:
    candidate, context = Candidate.of("k.cu", {"k.cu": source}), context_for("f")
    for skill in skills:
        found, refused = find_steps(candidate, LIBRARY.get(skill), LIBRARY, context)
        assert found, [entry.reason for entry in refused]
        candidate = apply_step(candidate, found[0].step, LIBRARY, context).candidate
    return candidate.source


def test_a_step_notes_its_case() -> None:
    text = after(SKILL)
    for line in (
        "for (int s_word = 0; s_word < steps / 16; ++s_word) {",
        "for (int s_step = 0; s_step < 16; ++s_step) {",
        "= (cases << 2) | ((state_3 * 1664525u + 1013904223u) >> 30);",
        "const int s_step_2_end = steps > 0 ? steps % 16 : 0;",
    ):
        assert line in text
    assert text.count("__popc(") == 6
    assert "switch" not in text


def test_bits_in_the_middle_become_the_highest() -> None:
    text = after(SKILL, source=WALK.replace("STEP", STEP.replace("state >> 30", "state >> 16 & 3")))
    assert "= seeds[w] << 14;" in text
    assert "= (cases << 2) | ((state_3 * 1664525u + 3168256000u) >> 30);" in text


@pytest.mark.parametrize("other", ["parallelism/points_per_thread", "parallelism/thread_coarsen"])
def test_it_goes_with_several_points_a_thread(other: str) -> None:
    texts = [after(SKILL, other)]
    if other == "parallelism/points_per_thread":
        texts.append(after(other, SKILL))
        assert "unsigned cases_2[kWPoints] = {};" in texts[1]
    assert all("__popc(" in text for text in texts)


def test_sums_may_be_kept_in_registers_before() -> None:
    assert "__popc(" in after("memory/accumulate_in_register", SKILL, source=NO_ALIAS)


NO_ALIAS = WALK.replace("STEP", STEP).replace("int* x, int* y", "int* __restrict__ x, int* __restrict__ y")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("state >> 30", "state >> 16", "at most eight cases"),
        ("state >> 30", "(int)state >> 30", "at most eight cases"),
        ("x[w] -= 1; break;", "x[w] -= 1;", "runs into the next one"),
        ("y[w] += 1; break;", "y[w] += 1; if (y[w] > 9) s = steps; break;", ""),
        ("default: y[w] -= 1; break;", "default: return;", ""),
        ("x[w] += 1;", "atomicAdd(&x[w], 1);", ""),
        ("x[w] += 1;", 'printf("%d", w);', ""),
        ("int* x, int* y", "volatile int* x, volatile int* y", ""),
        ("int* x, int* y", "float* x, float* y", "at most eight cases"),
    ],
)
def test_what_is_declined(old: str, new: str, reason: str) -> None:
    source = WALK.replace("STEP", STEP)
    assert old in source
    assert any(reason in declined for declined in refusals(SKILL, source.replace(old, new)))


def test_it_is_not_done_twice() -> None:
    candidate, context = Candidate.of("k.cu", {"k.cu": WALK.replace("STEP", STEP)}), context_for("f")
    found, _ = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context)
    candidate = apply_step(candidate, found[0].step, LIBRARY, context).candidate
    again, declined = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context)
    assert not again
    assert declined[0].reason == "the move was made already"


def test_it_follows_what_makes_room_for_it() -> None:
    for lead in ("parallelism/points_per_thread", "memory/accumulate_in_register"):
        assert SKILL in {skill.id for skill in LIBRARY.followers(LIBRARY.get(lead))}
