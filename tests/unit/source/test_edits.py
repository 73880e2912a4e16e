import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelskill.schema.candidate import Candidate, Edit
from kernelskill.source.edits import (
    EditConflict,
    EditSet,
    LockedRegion,
    apply_edits,
    apply_to_text,
    edits_between,
    inverse_edits,
    merge_candidates,
    merge_edits,
    unified_diff,
)
from kernelskill.source.syntax import Span
from kernelskill.source.unit import SourceUnit

TEXT = st.text(alphabet="ab\né\r\t{", max_size=40)


def _edit(start, end, text):
    return Edit(path="k.cu", start=start, end=end, text=text)


@st.composite
def text_and_edits(draw):
    text = draw(TEXT)
    bounds = [0]
    for character in text:
        bounds.append(bounds[-1] + len(character.encode()))
    cuts = sorted(draw(st.lists(st.sampled_from(bounds), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return text, [_edit(start, end, draw(TEXT)) for start, end in pairs]


@given(text_and_edits())
def test_inverse_undoes(given_):
    text, edits = given_
    changed = apply_to_text(text, edits)
    assert apply_to_text(changed, inverse_edits(text, edits)) == text


@given(text_and_edits())
def test_bytes_outside_stay(given_):
    text, edits = given_
    data, changed = text.encode(), apply_to_text(text, edits).encode()
    position = shift = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        assert changed[position + shift : edit.start + shift] == data[position : edit.start]
        position = edit.end
        shift += len(edit.text.encode()) - (edit.end - edit.start)
    assert changed[position + shift :] == data[position:]


@given(text_and_edits())
@example(("a", [_edit(0, 0, ""), *[_edit(1, 1, "a")] * 3]))
def test_merging_disjoint_sets_commutes(given_):
    text, edits = given_
    first, second = edits[::2], edits[1::2]
    try:
        merged = merge_edits(first, second)
    except EditConflict:
        with pytest.raises(EditConflict):
            merge_edits(second, first)
        return
    assert apply_to_text(text, merged) == apply_to_text(text, merge_edits(second, first))


@given(TEXT, TEXT)
def test_edits_between_texts(before, after):
    assert apply_to_text(before, edits_between(before, after, "k.cu")) == after


def test_overlap_is_refused():
    edits = EditSet(SourceUnit.parse("int a = 1;\n")).replace(Span(0, 5), "x")
    with pytest.raises(EditConflict, match="overlap"):
        edits.delete(Span(4, 6))
    with pytest.raises(EditConflict, match="outside"):
        edits.delete(Span(4, 600))
    with pytest.raises(EditConflict, match="splits"):
        apply_to_text("é", [_edit(1, 1, "x")])


def test_locked_regions_are_refused():
    text = "int a;\n// kernelskill: off\nint b;\n// kernelskill: on\nint c;\n"
    unit = SourceUnit.parse(text, "k.cu")
    inside = Span(text.index("int b"), text.index("int b") + 3)
    with pytest.raises(LockedRegion, match="line 3"):
        EditSet(unit).delete(inside)
    with pytest.raises(LockedRegion, match="line 3"):
        EditSet(unit).insert_before(inside, "x")
    with pytest.raises(LockedRegion):
        apply_edits(Candidate.of("k.cu", {"k.cu": text}), [_edit(inside.start, inside.end, "")])
    assert EditSet(unit).replace(Span(0, 3), "long").text() == text.replace("int a", "long a")


def test_newlines_and_lines():
    unit = SourceUnit.parse("void f() {\r\n\tint a;\r\n\tint b; int c;\r\n}\r\n")
    first, second, third = unit.functions[0].body.named_children
    assert (
        EditSet(unit).insert_line_before(first, "// x").text().startswith("void f() {\r\n\t// x\r\n\tint a;")
    )
    assert EditSet(unit).delete_line(first).text() == "void f() {\r\n\tint b; int c;\r\n}\r\n"
    assert EditSet(unit).delete_line(second).text() == "void f() {\r\n\tint a;\r\n\t int c;\r\n}\r\n"
    assert "int b; \r\n\t// x\r\n\tint c;" in EditSet(unit).insert_line_before(third, "// x").text()


def test_merge_candidates_and_diff():
    base = Candidate.of("k.cu", {"k.cu": "a\nb\nc\nd\n"})
    first, second = base.with_text("k.cu", "A\nb\nc\nd\n"), base.with_text("k.cu", "a\nb\nc\nD")
    merged = merge_candidates(base, first, second)
    assert merged.source == "A\nb\nc\nD"
    assert "-a\n+A\n" in unified_diff(base, merged)
    assert "\\ No newline at end of file" in unified_diff(base, merged)
    assert unified_diff(base, base) == ""
    with pytest.raises(EditConflict, match="both change"):
        merge_candidates(base, first, base.with_text("k.cu", "B\nb\nc\nd\n"))


def test_unknown_file_is_refused():
    with pytest.raises(EditConflict, match=r"no file .x\.cu."):
        apply_edits(Candidate.of("k.cu", {"k.cu": ""}), [Edit(path="x.cu", start=0, end=0, text="")])
