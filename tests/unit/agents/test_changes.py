"""Blocks are put at their one place, and what must stay is not touched."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.agents.answers import ChangeAnswer, SearchReplace, WholeFile
from kernelskill.agents.changes import ChangeRefused, apply_change
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Signature

SOURCE = """\
#include "scale.cuh"
__global__ void k(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2.0 * x[i];
    if (i < n)
        y[i] += 1.0f;
}
// kernelskill: off
__global__ void kept(float *y) { y[0] = 1.0f; }
// kernelskill: on
extern "C" void scale(const float *x, float *y, int n)
{
    k<<<(n + 127) / 128, 128>>>(x, y, n);
}
"""
HEADER = "#pragma once\n#define WIDTH 4\n"
SIGNATURE = Signature(symbol="scale", parameters=())


def base(source: str = SOURCE) -> Candidate:
    return Candidate.of("kernel.cu", {"kernel.cu": source, "scale.cuh": HEADER})


def edits(*pairs: tuple[str, str], path: str = "") -> ChangeAnswer:
    blocks = tuple(SearchReplace(path=path, search=old, replace=new) for old, new in pairs)
    return ChangeAnswer(idea="x", rationale="y", edits=blocks)


def whole(text: str, path: str = "") -> ChangeAnswer:
    return ChangeAnswer(idea="x", rationale="y", files=(WholeFile(path=path, text=text),))


def changed(answer: ChangeAnswer, source: str = SOURCE) -> str:
    return apply_change(base(source), answer, SIGNATURE).source


def test_an_exact_block_changes_its_lines_and_nothing_else() -> None:
    new = changed(edits(("        y[i] = 2.0 * x[i];", "        y[i] = 2.0f * x[i];")))
    assert new == SOURCE.replace("2.0 *", "2.0f *")


@pytest.mark.parametrize(
    "search",
    [
        "y[i] = 2.0 * x[i];",
        "\n\n  y[i]  =  2.0 *   x[i];  \n\n",
        "\ty[i] = 2.0 * x[i];",
        "        y[i] = 2.0 * x[i];\r\n",
        " 6|         y[i] = 2.0 * x[i];",
    ],
)
def test_white_space_and_line_numbers_are_forgiven(search: str) -> None:
    new = changed(edits((search, search.replace("2.0", "2.0f"))))
    assert re.search(r"^        y\[i\]\s+=\s+2\.0f \*\s+x\[i\];", new, re.MULTILINE)


def test_a_block_that_was_indented_less_is_moved_to_its_place() -> None:
    new = changed(edits(("if (i < n)\n    y[i] = 2.0 * x[i];", "if (i < n) {\n    y[i] = 2.0f * x[i];\n\n}")))
    assert "    if (i < n) {\n        y[i] = 2.0f * x[i];\n\n    }\n" in new


def test_exact_comes_before_forgiving() -> None:
    source = SOURCE.replace("    if (i < n)\n        y[i] += 1.0f;", "        y[i]  = 2.0 * x[i];")
    assert "        y[i] = 3.0f;\n        y[i]  = 2.0" in changed(
        edits(("        y[i] = 2.0 * x[i];", "        y[i] = 3.0f;")), source
    )


def test_lines_can_be_deleted_and_the_last_line_keeps_its_missing_break() -> None:
    assert "+= 1.0f" not in changed(edits(("    if (i < n)\n        y[i] += 1.0f;", "")))
    source = SOURCE.removesuffix("\n")
    new = changed(
        edits(("    k<<<(n + 127) / 128, 128>>>(x, y, n);\n}", "    k<<<(n + 63) / 64, 64>>>(x, y, n);\n}")),
        source,
    )
    assert new.endswith("(x, y, n);\n}")


def test_the_style_of_line_breaks_is_kept() -> None:
    source = SOURCE.replace("\n", "\r\n")
    new = changed(
        edits(("        y[i] = 2.0 * x[i];", "        float v = x[i];\n        y[i] = 2.0f * v;")), source
    )
    assert new.count("\r\n") == new.count("\n") == SOURCE.count("\n") + 1
    new = changed(whole(SOURCE.replace("2.0 *", "2.0f *")), source)
    assert new == source.replace("2.0 *", "2.0f *")


def test_blocks_of_several_places_and_files() -> None:
    answer = ChangeAnswer(
        idea="x",
        rationale="y",
        edits=(
            SearchReplace(path="./scale.cuh", search="#define WIDTH 4", replace="#define WIDTH 8"),
            SearchReplace(path="kernel.cu", search="        y[i] += 1.0f;", replace="        y[i] += 2.0f;"),
        ),
    )
    new = apply_change(base(), answer, SIGNATURE)
    assert "WIDTH 8" in new.text_of("scale.cuh")
    assert "+= 2.0f" in new.source


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (edits(("    if (i < n)", "    if (i <= n)")), "stands at 2 places of 'kernel.cu' (lines 5, 7); take more lines"),
        (edits(("    if (i > n)", "")), "stands nowhere in 'kernel.cu'"),
        (edits(("y[i] = 2.0", "y[i] = 2.0f")), "stands nowhere"),
        (edits(("  \n", "int a;")), "is empty"),
        (edits(("{", "{"),), "stands at 2 places"),
        (
            edits(("    if (i < n)\n        y[i] = 2.0 * x[i];", "a"), ("        y[i] = 2.0 * x[i];", "b")),
            "overlap",
        ),
        (edits(("        y[i] = 2.0 * x[i];", "        y[i] = 2.0 * x[i];")), "changes nothing"),
        (edits(("__global__ void kept(float *y) { y[0] = 1.0f; }", "")), "is locked"),
        (edits(("// kernelskill: off", "")), "must stay"),
        (edits(("int a;", "int b;"), path="other.cu"), "there is no file 'other.cu'; the files are kernel.cu, scale.cuh"),
        (whole("int a;", path="../../etc/passwd"), "there is no file"),
        (whole(" \n"), "is empty"),
        (whole(SOURCE.replace("y[0] = 1.0f", "y[0] = 2.0f")), "must stay"),
        (whole(SOURCE.replace("scale(const", "other(const")), "the launcher 'scale' is gone"),
        (whole(SOURCE.replace("float *y, int n)\n{\n    k", "float *y, long n)\n{\n    k")), "the signature of 'scale' must stay"),
        (whole(SOURCE.replace('extern "C" ', "")), "the signature of 'scale' must stay"),
        (whole(SOURCE.replace('"C" void', '"C" int')), "the signature of 'scale' must stay"),
        (whole(SOURCE.replace("const float *x, float *y, int n)\n{\n    k", "float *y, const float *x, int n)\n{\n    k")), "the signature"),
        (whole(SOURCE + "// " + "x" * 1_000_001), "longer than"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_out_is_refused_with_a_reason(answer: ChangeAnswer, reason: str) -> None:
    with pytest.raises(ChangeRefused) as caught:
        changed(answer)
    assert reason in caught.value.reason


def test_a_launcher_in_a_header_keeps_its_signature_too() -> None:
    main = '#include "launch.cuh"\n__global__ void k(float *y) { y[0] = 1.0f; }\n'
    header = 'extern "C" void scale(float *y, int n) { k<<<1, 1>>>(y); }\n'
    candidate = Candidate.of("kernel.cu", {"kernel.cu": main, "launch.cuh": header})
    with pytest.raises(ChangeRefused) as caught:
        apply_change(candidate, whole(header.replace("int n", "long n"), path="launch.cuh"), SIGNATURE)
    assert "must stay" in caught.value.reason


def test_a_file_is_given_once() -> None:
    file = WholeFile(text=SOURCE.replace("2.0 *", "2.0f *"))
    with pytest.raises(ChangeRefused, match="twice"):
        changed(ChangeAnswer(idea="x", rationale="y", files=(file, file)))


def test_the_layout_of_the_signature_may_change() -> None:
    new = SOURCE.replace(
        'extern "C" void scale(const float *x, float *y, int n)\n',
        'extern "C" void scale(const float* x,\n    float* y, int n)\n',
    )
    assert changed(whole(new)) == new


_LINES = st.lists(
    st.sampled_from(["int a;", "  int a;", "int  a;", "", "x = 1;", "\tx = 1;", "y();"]),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(_LINES, st.data())
def test_a_block_of_the_source_replaces_just_itself_or_is_ambiguous(
    lines: list[str], data: st.DataObject
) -> None:
    """Whatever is taken from a text stands there; the rest of the text stays byte for byte."""
    text = "\n".join(lines)
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    block = lines[start:end]
    candidate = Candidate.of("k.cu", {"k.cu": text})
    places = [i for i in range(len(lines)) if lines[i : i + len(block)] == block]
    answer = edits(("\n".join(block), "NEW();"))
    if len(places) > 1 or not "".join(block).strip():
        with pytest.raises(ChangeRefused):
            apply_change(candidate, answer, SIGNATURE)
        return
    try:
        new = apply_change(candidate, answer, SIGNATURE).source
    except ChangeRefused as refused:
        # Without its blank ends the block may stand at several places.
        if "places" in refused.reason:
            return
        raise
    while not block[0].strip():
        start, block = start + 1, block[1:]
    while not block[-1].strip():
        end, block = end - 1, block[:-1]
    assert new == "\n".join([*lines[:start], "NEW();", *lines[end:]])
