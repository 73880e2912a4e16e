"""Build, apply, undo and merge edits of exact byte ranges; everything outside them stays as it is."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

from tree_sitter import Node

from kernelskill.errors import KernelSkillError
from kernelskill.schema.candidate import Candidate, Edit
from kernelskill.source.syntax import Span, span_of
from kernelskill.source.unit import SourceUnit


class EditConflict(KernelSkillError):
    """Two edits touch the same bytes, or an edit lies outside its file."""


class LockedRegion(KernelSkillError):
    """An edit touches a region that the user locked with `// kernelskill: off`."""


class EditSet:
    """Collects edits of one file, in any order, positions counted in the original text.

    Insertions at one position keep the order in which they were made.
    """

    def __init__(self, unit: SourceUnit) -> None:
        self._unit = unit
        self._edits: list[Edit] = []

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits, by position."""
        return tuple(sorted(self._edits, key=lambda edit: (edit.start, edit.end)))

    def __bool__(self) -> bool:
        return bool(self._edits)

    def replace(self, place: Node | Span, text: str) -> EditSet:
        """Replace a range.

        Raises:
            EditConflict: The range overlaps an earlier edit.
            LockedRegion: The range touches a locked region.
        """
        span = span_of(place)
        if self._unit.is_locked(span):
            line = self._unit.line_of(span)
            raise LockedRegion(
                f"line {line} of {self._unit.path!r} is locked",
                remedy="remove the comment `// kernelskill: off` above it to allow edits",
            )
        if self._unit.newline == "\r\n":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        edit = Edit(path=self._unit.path, start=span.start, end=span.end, text=text)
        check_edits(self._unit.data, [*self._edits, edit])
        self._edits.append(edit)
        return self

    def insert_before(self, place: Node | Span, text: str) -> EditSet:
        """Insert text where a range starts."""
        start = span_of(place).start
        return self.replace(Span(start, start), text)

    def insert_after(self, place: Node | Span, text: str) -> EditSet:
        """Insert text where a range ends."""
        end = span_of(place).end
        return self.replace(Span(end, end), text)

    def insert_line_before(self, place: Node | Span, line: str) -> EditSet:
        """Insert a line of its own above a statement, with the statement's indentation.

        Where the statement does not start its line, the line is split there.
        """
        span = span_of(place)
        indent = self._unit.indent_of(span)
        line_start = self._unit.syntax.line_span(self._unit.line_of(span)).start
        before = self._unit.text_of(Span(line_start, span.start))
        lead = "" if not before.strip() else f"\n{indent}"
        return self.insert_before(span, f"{lead}{line}\n{indent}")

    def delete(self, place: Node | Span) -> EditSet:
        """Delete a range."""
        return self.replace(place, "")

    def delete_line(self, place: Node | Span) -> EditSet:
        """Delete a range, and its line where nothing else stands there."""
        span = span_of(place)
        first = self._unit.syntax.line_span(self._unit.line_of(span.start))
        last = self._unit.syntax.line_span(self._unit.line_of(max(span.start, span.end - 1)))
        outside = self._unit.text_of(Span(first.start, span.start)) + self._unit.text_of(
            Span(min(span.end, last.end), last.end)
        )
        if outside.strip():
            return self.delete(span)
        end = last.end
        rest = self._unit.data[end : end + 2]
        end += 2 if rest == b"\r\n" else 1 if rest[:1] == b"\n" else 0
        return self.delete(Span(first.start, end))

    def text(self) -> str:
        """Return the file's text with the edits applied."""
        return apply_to_text(self._unit.text, self.edits)


def check_edits(data: bytes, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return edits of one file by position.

    Two insertions may share a position; an insertion may stand at the edge of a replacement.

    Raises:
        EditConflict: Two overlap, or one lies outside the file or splits a character.
    """
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    for edit in ordered:
        if not 0 <= edit.start <= edit.end <= len(data):
            raise EditConflict(
                f"edit {edit.start}..{edit.end} lies outside {edit.path!r} of {len(data)} bytes"
            )
        if _splits_character(data, edit.start) or _splits_character(data, edit.end):
            raise EditConflict(f"edit {edit.start}..{edit.end} of {edit.path!r} splits a character")
    for first, second in itertools.pairwise(ordered):
        if second.start < first.end:
            raise EditConflict(
                f"edits {first.start}..{first.end} and {second.start}..{second.end} of {first.path!r} overlap"
            )
    return tuple(ordered)


def _splits_character(data: bytes, offset: int) -> bool:
    return offset < len(data) and data[offset] & 0xC0 == 0x80


def apply_to_text(text: str, edits: Iterable[Edit]) -> str:
    """Return text with edits of one file applied.

    Raises:
        EditConflict: The edits overlap or do not fit the text.
    """
    data = text.encode()
    parts: list[bytes] = []
    position = 0
    for edit in check_edits(data, edits):
        parts += [data[position : edit.start], edit.text.encode()]
        position = edit.end
    parts.append(data[position:])
    return b"".join(parts).decode()


def apply_edits(candidate: Candidate, edits: Iterable[Edit]) -> Candidate:
    """Return the candidate with edits applied; ranges count in its present text.

    Raises:
        EditConflict: The edits overlap, do not fit, or name a file that the candidate lacks.
        LockedRegion: An edit touches a locked region.
    """
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    paths = [file.path for file in candidate.files]
    for path, group in by_path.items():
        if path not in paths:
            raise EditConflict(f"no file {path!r} in the candidate; it has {', '.join(paths)}")
        text = candidate.text_of(path)
        _refuse_locked(text, path, group)
        candidate = candidate.with_text(path, apply_to_text(text, group))
    return candidate


def _refuse_locked(text: str, path: str, edits: list[Edit]) -> None:
    if "kernelskill: off" not in text:
        return
    unit = SourceUnit.parse(text, path)
    for edit in edits:
        if unit.is_locked(Span(edit.start, edit.end)):
            raise LockedRegion(
                f"line {unit.line_of(edit.start)} of {path!r} is locked",
                remedy="remove the comment `// kernelskill: off` above it to allow edits",
            )


def inverse_edits(text: str, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits that lead from the edited text back to `text`; edits of one file."""
    data = text.encode()
    shift = 0
    undone: list[Edit] = []
    for edit in check_edits(data, edits):
        start, size = edit.start + shift, len(edit.text.encode())
        old = data[edit.start : edit.end].decode()
        undone.append(Edit(path=edit.path, start=start, end=start + size, text=old))
        shift += size - (edit.end - edit.start)
    return _joined(undone)


def _joined(edits: list[Edit]) -> tuple[Edit, ...]:
    """Join neighbours that touch, so that deletions undone at one place keep their order."""
    result: list[Edit] = []
    for edit in edits:
        if result and result[-1].path == edit.path and result[-1].end == edit.start:
            last = result.pop()
            edit = Edit(path=edit.path, start=last.start, end=edit.end, text=last.text + edit.text)
        result.append(edit)
    return tuple(result)


def merge_edits(first: Sequence[Edit], second: Sequence[Edit]) -> tuple[Edit, ...]:
    """Join two sets of edits of one base. The same edit in both is made once.

    Raises:
        EditConflict: The sets touch the same bytes, or insert at one place: no order is right then.
    """
    if list(first) == list(second):
        return tuple(first)
    for edit in second:
        for other in first:
            if other != edit and other.path == edit.path and _touch(other, edit):
                raise EditConflict(
                    f"both change {edit.path!r} at {max(edit.start, other.start)}: "
                    f"{other.start}..{other.end} and {edit.start}..{edit.end}"
                )
    # One set may make the same insertion twice; of both together the larger number counts.
    merged = [*first, *(Counter(second) - Counter(first)).elements()]
    return tuple(sorted(merged, key=lambda edit: (edit.path, edit.start, edit.end)))


def _touch(first: Edit, second: Edit) -> bool:
    if first.start == first.end or second.start == second.end:
        return first.start <= second.end and second.start <= first.end
    return first.start < second.end and second.start < first.end


def edits_between(base: str, changed: str, path: str) -> tuple[Edit, ...]:
    """Return line-wise edits that turn one text into another, for texts that a model or person wrote."""
    before, after = _split_lines(base), _split_lines(changed)
    offsets = [0]
    for line in before:
        offsets.append(offsets[-1] + len(line.encode()))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return tuple(
        Edit(path=path, start=offsets[i], end=offsets[j], text="".join(after[k:m]))
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    )


def merge_candidates(base: Candidate, first: Candidate, second: Candidate) -> Candidate:
    """Merge two descendants of one base by source ranges.

    Raises:
        EditConflict: They change the same lines, or one has a file that another lacks.
    """
    paths = [file.path for file in base.files]
    for other in (first, second):
        if [file.path for file in other.files] != paths:
            raise EditConflict("the candidates have different files")
    edits: list[Edit] = []
    for path in paths:
        text = base.text_of(path)
        left = edits_between(text, first.text_of(path), path)
        right = edits_between(text, second.text_of(path), path)
        edits.extend(merge_edits(left, right))
    return apply_edits(base, edits)


def unified_diff(parent: Candidate, child: Candidate) -> str:
    """Return a unified diff over all files, with paths `a/...` and `b/...`; empty where nothing differs."""
    paths = sorted({file.path for file in parent.files} | {file.path for file in child.files})
    parts: list[str] = []
    for path in paths:
        before, after = _lines(parent, path), _lines(child, path)
        # A tab ends a name with spaces for whoever applies the diff, as git writes it.
        end = "\t" if " " in path else ""
        old = f"a/{path}{end}" if before is not None else "/dev/null"
        new = f"b/{path}{end}" if after is not None else "/dev/null"
        for line in difflib.unified_diff(before or [], after or [], old, new):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def _lines(candidate: Candidate, path: str) -> list[str] | None:
    for file in candidate.files:
        if file.path == path:
            return [line for line in _split_lines(file.text) if line]
    return None


def _split_lines(text: str) -> list[str]:
    """Split after line feeds only, so that form feeds and the like stay inside their line."""
    parts = text.split("\n")
    return [*(f"{part}\n" for part in parts[:-1]), parts[-1]]
