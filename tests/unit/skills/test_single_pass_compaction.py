"""Compactions in one pass: what is written, and what is declined."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Promise
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY, refusals
from tests.skills.compaction_spellings import PLAIN
from tests.skills.contexts import context_for

SKILL = "parallelism/single_pass_compaction"
STORE = "y[to++] = x[i];"
SECOND = "            if (wanted(x[i]))\n                y[to++] = x[i];"


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


def made(text: str, *promises: Promise) -> str:
    candidate, context = Candidate.of("k.cu", {"k.cu": text}), context_for("f", *promises)
    found, declined = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context)
    assert found, [refusal.reason for refusal in declined]
    return apply_step(candidate, found[0].step, LIBRARY, context).candidate.source


def test_one_launch_takes_the_place_of_three_where_arrays_lie_apart() -> None:
    text = made(PLAIN.source)
    assert "((size_t)(in + n) <= (size_t)(out) || (size_t)(out + n) <= (size_t)(in))" in text
    assert "count_single_pass<<<tile_count, 256>>>(in, out, n, kept, tiles);" in text
    assert text.count("<<<") == 4
    assert "*how_many = value[3][3];" in text


def test_what_is_promised_needs_no_choice() -> None:
    text = made(PLAIN.source, Promise.NO_ALIAS)
    assert text.count("<<<") == 1
    assert "out + n" not in text


def test_restrict_tells_as_much() -> None:
    head = "copy(const float* x, float* y,"
    text = made(changed(PLAIN.source, (head, "copy(const float* __restrict__ x, float* __restrict__ y,")))
    assert text.count("<<<") == 1


def test_loads_of_some_elements_stay_behind_their_test() -> None:
    where = ("copy<<<(parts + 31) / 32, 32>>>(in, out,", "copy<<<(parts + 31) / 32, 32>>>(in, other, out,")
    text = changed(
        PLAIN.source,
        ("copy(const float* x, float* y", "copy(const float* x, const float* z, float* y"),
        (STORE, "y[to++] = z[i];"),
        ("const float* in, float* out", "const float* in, const float* other, float* out"),
        where,
    )
    assert "= z[element];" in made(text)
    assert "z_held" not in made(text)


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([(SECOND, SECOND.replace("wanted(x[i])", "x[i] >= 0.0f"))], "what is copied may not be what is counted"),
        ([(SECOND, SECOND.replace("wanted(x[i])", "i < 9 && wanted(x[i])"))], "take some twice"),
        ([(STORE, "y[++to] = x[i];")], "to places that are taken one by one"),
        ([(STORE, "y[to] = x[i];")], "to places that are taken one by one"),
        ([(STORE, "{ y[to] = x[i]; to += 2; }")], "to places that are taken one by one"),
        ([(STORE, "{ y[to++] = x[i]; y[to++] = x[i]; }")], "or several"),
        ([(STORE, "y[to++] = x[i] + to;")], "for more than a place"),
        ([(STORE, "y[to++] = x[i > 0 ? i - 1 : 0];")], "other places than an element's own"),
        ([("int to = offsets[p];", "int to = offsets[p] + 1;")], "does more, or else, than to copy"),
        ([("int to = offsets[p];", "int to = offsets[p + 1];")], "does more, or else, than to copy"),
        ([("++found;", "found += 2;")], "does not count elements"),
        ([("int found = 0;", "int found = 1;")], "does not count elements"),
        ([("offsets[p] = total;", "offsets[p] = total + count;")], "includes each stretch's own count"),
        ([("kept[0] = total;", "kept[1] = total;")], "does more, or else, than to take the running sum"),
        ([("kept[0] = total;", "kept[0] = total + 1;")], "does more, or else, than to take the running sum"),
        ([("(offsets, kept, parts);", "(offsets, kept, parts - 1);")], "another number of sums"),
        ([("const int parts = (n + 63) / 64;", "const int parts = (n + 63) / 65;")], "leave out elements"),
        ([("cudaFreeAsync(offsets, 0);", "cudaMemcpyAsync(kept, offsets, 4, cudaMemcpyDeviceToDevice, 0);")], "by others"),
    ],
)  # fmt: skip
def test_what_may_be_another_compaction_is_declined(pairs: list[tuple[str, str]], why: str) -> None:
    assert why in " ".join(refusals(SKILL, changed(PLAIN.source, *pairs)))


def test_what_is_left_for_arrays_that_overlap_stays_as_it_is() -> None:
    assert "what is left" in " ".join(refusals(SKILL, made(PLAIN.source)))


def test_another_order_is_declined() -> None:
    loop = "for (int i = p * 64; i < min(p * 64 + 64, n); ++i)"
    assert PLAIN.source.count(loop) == 2
    first, _, last = PLAIN.source.rpartition(loop)
    text = f"{first}for (int i = min(p * 64 + 64, n) - 1; i >= p * 64; --i){last}"
    assert "does not count up" in " ".join(refusals(SKILL, text))
