"""Loops that are done in 32 bits while values are small: what is written, and what is declined."""

from __future__ import annotations

import pytest

from tests.skills.applying import LIBRARY, changed_lines, refusals, rewritten
from tests.skills.narrow_spellings import CALL, COLLATZ, DIGITS, FUNCTION, POWER, STEP, narrow_source
from tests.skills.uneven_spellings import COLLATZ as UNEVEN

SKILL = "compute/narrow_integers"
BOUND = "1431655764u"


def added(source: str, **parameters: str) -> list[str]:
    """Return the lines that one step puts in; bounds are tested in every turn where nothing else is asked for."""
    lines = changed_lines(SKILL, source, **{"turns": "1", **parameters})
    return [line[2:] for line in lines if line.startswith("+")]


def test_turns_go_to_and_fro() -> None:
    lines = added(narrow_source(COLLATZ), again="yes")
    assert lines[:10] == [
        "// Small values need 32 bits only; an operation on 64 takes several instructions.",
        f"if (value <= {BOUND}) {{",
        "unsigned value_32 = (unsigned)value;",
        f"while (value_32 <= {BOUND} && value_32 != 1 && count < 300) {{",
        "if (value_32 % 2 == 0)",
        "value_32 = value_32 / 2;",
        "else",
        "value_32 = 3 * value_32 + 1;",
        "count++;",
        "}",
    ]
    assert f"while (value > {BOUND} && value != 1 && count < 300) {{" in lines


def test_the_rest_may_stay_wide() -> None:
    lines = changed_lines(SKILL, narrow_source(COLLATZ), again="no", turns="1")
    assert not [line for line in lines if line.startswith("-")]
    assert f"+ if (value <= {BOUND}) {{" in lines


def test_breaks_end_both_loops_and_headers_are_followed() -> None:
    lines = added(narrow_source(STEP), again="yes")
    assert "for (unsigned long long own = value; !is_over && own != 1;) {" in lines
    step = "own_32 = own_32 & 1 ? own_32 + (own_32 << 1) + 1 : own_32 >> 1"
    assert f"for (; own_32 <= {BOUND} && own_32 != 1; {step})" in lines
    assert lines.count("if (++count == 77) { is_over = true; break; }") == 2


def test_one_test_may_allow_several_turns() -> None:
    lines = added(narrow_source(COLLATZ), again="no", turns="4")
    assert "if (value <= 53024287u) {" in lines  # ((3 * 53024287 + 1) * 3 + 1) * 9 + 4 fits 32 bits
    assert "#pragma unroll 4" in lines
    turn = "(narrow_turn % 4 != 0 || value_32 <= 53024287u) && value_32 != 1 && count < 300; ++narrow_turn"
    assert f"for (unsigned narrow_turn = 0; {turn}) {{" in lines
    stepped = added(narrow_source(STEP), again="yes", turns="2")
    assert any(line.endswith("own_32 >> 1, ++narrow_turn)") for line in stepped)


def test_what_no_turn_lifts_above_its_bound_is_not_tested_again() -> None:
    lines = added(narrow_source(DIGITS), again="no")
    assert "if (value <= 4294967295u) {" in lines
    assert "while (value_32) { count += value_32 % 10; value_32 /= 10; }" in lines
    power = added(narrow_source(POWER), again="no")
    assert "while (exponent_32 > 0) {" in power
    fits = "exponent <= 4294967295u && result <= 65535u && value <= 65535u && modulus <= 65535u"
    assert f"if ({fits}) {{" in power
    assert "const unsigned modulus_32 = (unsigned)modulus;" in power


def test_device_functions_are_reached() -> None:
    lines = added(narrow_source(CALL, before=FUNCTION), again="yes")
    assert f"while (value_32 <= {BOUND} && 1 != value_32 && count < limit) {{ /* a turn */" in lines


def test_signed_variables_count_as_large_while_they_are_negative() -> None:
    lines = added(narrow_source("while (value > -5 && value != 1) value /= 2;\nout[i] = value;", "long long"))
    assert "if ((unsigned long long)value <= 4294967295u) {" in lines
    assert "while ((long long)value_32 > -5 && value_32 != 1) value_32 /= 2;" in lines


def test_lanes_are_refilled_first() -> None:
    assert SKILL in {skill.id for skill in LIBRARY.followers(LIBRARY.get("parallelism/refill_lanes"))}
    (refilled,) = rewritten("parallelism/refill_lanes", UNEVEN, work=("8",), turns=("32",))
    lines = added(refilled, again="no")
    assert lines[1:5] == [
        f"if (turn < 32 && value != 1 && count < 300 && value <= {BOUND}) {{",
        "unsigned value_32 = (unsigned)value;",
        "#pragma unroll 8",
        f"for (; value_32 <= {BOUND} && turn < 32 && value_32 != 1 && count < 300; ++turn) {{",
    ]
    (narrowed,) = rewritten(SKILL, refilled, again=("no",))
    assert "uses '__ballot_sync'" in refusals(SKILL, narrowed)[0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("while (value > 1) value = value / 2 * in[i];", "may be negative or too large"),
        ("while (value > 1) value = value * 6364136223846793005ULL >> 1;", "may be negative or too large"),
        ("while (value & 7) { value ^= value << 13; value ^= value >> 7; value ^= value << 17; }", "leave 32 bits"),
        ("while (value > 1) value = -value / 3;", "negative or a complement"),
        ("while (value > 1) value = ~value >> 1;", "negative or a complement"),
        ("while (value > 1) value >>= count;", "unknown or large count"),
        ("while (value > 1) value >>= 40;", "unknown or large count"),
        ("while (value > 1) value = (value - 7) / 2;", "may be negative"),
        ("while (value < 1000) value += value + 1;", "only grows"),
        ("while (count < 9) { value += 3; count++; }", "only grows"),
        ("while (value > 1) { count = value; value = 0.5 * (value / 3); }", "of another type"),
        ("for (unsigned long long bit : {1ULL, 2ULL}) value = value / 2 + bit;", "walks over a range"),
        ("while ((value /= 2) > 1) count++;", "does more than test"),
        ("while (value > 1) { value /= 2; " + 100 * "count++; " + "}", "too long"),
        ("while (in[i] > atomicAdd(&out[i], 1)) value /= 2;", "does more than test"),
        ("while (value > 1) { value /= 2; __syncwarp(); }", "__syncwarp"),
        ("while (value > 1) value = __shfl_down_sync(~0u, value, 1) / 2;", "__shfl_down_sync"),
        ("while (value > 1) value = met(value) / 2;", "threads meet"),
        ("while (value > 1) { value /= 2; out[value] = 1; }", "no loop that steps"),
        ("for (; value < n; value += 2) out[i] += 1;", "no loop that steps"),
        ("auto* p = &value; while (value > 1) { value /= 2; *p += 1; }", "no loop that steps"),
        ("while ((value) & count < 60) { count++; value /= 2; }", "cannot be told from a cast"),
        ("while (value > 1) { for (int bit : {1, 2}) value /= 2; value--; }", "inside a statement"),
        ("while (value > 1) count += (value /= 2) & 1;", "inside a statement"),
        ("__shared__ unsigned long long all; while (all > 1) all /= 2;", "no loop that steps"),
        ("volatile unsigned long long v = value; while (v > 1) v /= 2;", "volatile"),
        ("unsigned long long later; while (count++ < 3) { if (count) later = value; later /= 2; }", "more than test"),
        ("unsigned long long later; while (count < 3) { count++; if (n) later = 1; later /= 2; }", "no value before"),
    ],
)  # fmt: skip
def test_what_is_declined(body: str, reason: str) -> None:
    head = "__device__ unsigned long long met(unsigned long long v) { __syncwarp(); return v; }\n"
    found = refusals(SKILL, narrow_source(f"    {body}\n    out[i] = value;\n", before=head))
    assert any(reason in entry for entry in found), found


def test_locked_loops_and_those_with_a_copy_are_left_alone() -> None:
    locked = f"    // kernelskill: off\n{COLLATZ}\n    // kernelskill: on\n"
    assert "kernelskill: off" in refusals(SKILL, narrow_source(locked))[0]
    (done,) = rewritten(SKILL, narrow_source(COLLATZ), again=("yes",))
    assert "a copy of 32 bits already" in refusals(SKILL, done)[0]
