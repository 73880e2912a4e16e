"""Carry out a model's change: blocks at their one place, whole files, and nothing that must stay is touched."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelskill.agents.answers import ChangeAnswer, SearchReplace
from kernelskill.schema.candidate import Candidate, Edit
from kernelskill.schema.task import Signature
from kernelskill.skills.parsed_files import parsed
from kernelskill.source.edits import EditConflict, LockedRegion, apply_edits
from kernelskill.source.signature import LauncherDecl, find_launchers

LARGEST_FILE = 1_000_000
"""Characters of a source."""

_NUMBER = re.compile(r"[ \t]*\d+\| ?")
_INDENT = re.compile(r"[ \t]*")
_MOST_PLACES = 4


class ChangeRefused(Exception):
    """A change cannot be carried out, with the reason for whoever wrote it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def apply_change(candidate: Candidate, answer: ChangeAnswer, signature: Signature) -> Candidate:
    """Return what a change makes of a candidate.

    Raises:
        ChangeRefused: A block fits nowhere or in several places, a file is unknown, a locked region or the
            launcher's signature changes, or nothing changes at all.
    """
    changed = _with_files(candidate, answer) if answer.files else _with_edits(candidate, answer.edits)
    for file in changed.files:
        if len(file.text) > LARGEST_FILE:
            raise ChangeRefused(f"{file.path!r} becomes longer than {LARGEST_FILE} characters")
    if changed.digest == candidate.digest:
        raise ChangeRefused("it changes nothing")
    require_kept(candidate, changed, signature)
    return changed


def require_kept(before: Candidate, after: Candidate, signature: Signature) -> None:
    """Refuse a change of what must stay.

    Raises:
        ChangeRefused: A locked region or the launcher's signature differs.
    """
    _require_locked_text(before, after)
    _require_signature(before, after, signature)


def _with_files(candidate: Candidate, answer: ChangeAnswer) -> Candidate:
    seen: set[str] = set()
    changed = candidate
    for file in answer.files:
        path = _known_path(candidate, file.path)
        if path in seen:
            raise ChangeRefused(f"the file {path!r} is given twice")
        seen.add(path)
        if not file.text.strip():
            raise ChangeRefused(f"the file {path!r} is empty")
        changed = changed.with_text(path, _in_style(_whole_text(file.text), candidate.text_of(path)))
    return changed


def _with_edits(candidate: Candidate, blocks: Sequence[SearchReplace]) -> Candidate:
    edits = []
    for number, block in enumerate(blocks, 1):
        path = _known_path(candidate, block.path)
        edits.append(_edit(candidate.text_of(path), path, block, number))
    try:
        return apply_edits(candidate, edits)
    except EditConflict:
        raise ChangeRefused("two SEARCH blocks overlap; make them one") from None
    except LockedRegion as locked:
        raise ChangeRefused(f"{locked.message} and must stay as it is") from None


def _known_path(candidate: Candidate, path: str) -> str:
    wanted = path.strip().strip("`\"'").removeprefix("./")
    if not wanted:
        return candidate.main
    paths = [file.path for file in candidate.files]
    if wanted in paths:
        return wanted
    raise ChangeRefused(
        f"there is no file {wanted!r}; the files are {', '.join(paths)}, and none can be added"
    )


def _edit(text: str, path: str, block: SearchReplace, number: int) -> Edit:
    """Return the exact edit that a block means."""
    old, new = _trimmed(block.search), block.replace.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if not old:
        raise ChangeRefused(f"SEARCH block {number} is empty; give the lines that are to be replaced")
    if all(_NUMBER.match(line) for line in old):
        old = [_NUMBER.sub("", line, count=1) for line in old]
        new = [_NUMBER.sub("", line, count=1) for line in new]
    lines = _lines(text)
    plain = [line.rstrip("\r\n") for line in lines]
    place = _place(plain, old, path, number)
    matched = plain[place : place + len(old)]
    new = _reindented(new, old, matched) if matched != old else new
    if block.replace.strip("\r\n") == "":
        new = []
    offset = sum(len(line.encode()) for line in lines[:place])
    length = sum(len(line.encode()) for line in lines[place : place + len(old)])
    ending = _ending(lines[place])
    replaced = "".join(line + ending for line in new)
    if lines[place + len(old) - 1] == plain[place + len(old) - 1] and new:
        replaced = replaced.removesuffix(ending)  # the file's last line has no line break, and keeps none
    return Edit(path=path, start=offset, end=offset + length, text=replaced)


def _place(plain: Sequence[str], old: Sequence[str], path: str, number: int) -> int:
    """Return where the lines stand: exactly, else up to white space; never one of several places."""
    for form in (str, str.rstrip, _collapsed):
        wanted = [form(line) for line in old]
        having = [form(line) for line in plain]
        found = [
            start
            for start in range(len(having) - len(wanted) + 1)
            if having[start] == wanted[0] and having[start : start + len(wanted)] == wanted
        ]
        if len(found) > 1:
            shown = ", ".join(str(start + 1) for start in found[:_MOST_PLACES])
            raise ChangeRefused(
                f"SEARCH block {number} stands at {len(found)} places of {path!r} (lines {shown}); take more lines"
            )
        if found:
            return found[0]
    raise ChangeRefused(
        f"SEARCH block {number} stands nowhere in {path!r}; it begins {old[0].strip()[:80]!r}"
    )


def _trimmed(search: str) -> list[str]:
    """Return the lines of a SEARCH text without blank ones around them."""
    lines = search.replace("\r\n", "\n").split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _reindented(new: Sequence[str], old: Sequence[str], matched: Sequence[str]) -> list[str]:
    """Return new lines moved as far as the matched ones stand from what the answer took them for."""
    asked, real = _indent(old[0]), _indent(matched[0])
    if asked == real:
        return list(new)
    return [real + line[len(asked) :] if line.strip() and line.startswith(asked) else line for line in new]


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match[0] if match else ""


def _collapsed(line: str) -> str:
    return " ".join(line.split())


def _lines(text: str) -> list[str]:
    """Split after line feeds only, breaks kept."""
    parts = text.split("\n")
    return [*(f"{part}\n" for part in parts[:-1]), *([parts[-1]] if parts[-1] else [])]


def _ending(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n"


def _whole_text(text: str) -> str:
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if all(_NUMBER.match(line) for line in lines):
        lines = [_NUMBER.sub("", line, count=1) for line in lines]
    return "\n".join(lines)


def _in_style(text: str, like: str) -> str:
    """Return a whole file with the line breaks of the one it replaces, the last one included."""
    carriage = like.count("\r\n") * 2 > like.count("\n")
    whole = text.removesuffix("\n") + ("\n" if like.endswith("\n") or not like else "")
    return whole.replace("\n", "\r\n") if carriage else whole


def _require_locked_text(before: Candidate, after: Candidate) -> None:
    for file in before.files:
        if "kernelskill: off" not in file.text:
            continue
        changed = after.text_of(file.path)
        if changed != file.text and _locked(file.text, file.path) != _locked(changed, file.path):
            raise ChangeRefused(
                f"what stands under `// kernelskill: off` in {file.path!r} must stay as it is"
            )


def _locked(text: str, path: str) -> list[str]:
    unit = parsed(text, path)
    return [unit.text_of(span).replace("\r\n", "\n").rstrip() for span in unit.locked]


def _require_signature(before: Candidate, after: Candidate, signature: Signature) -> None:
    old, new = _launcher(before, signature.symbol), _launcher(after, signature.symbol)
    if old is None:
        return  # the compiler found it where the parser does not; the build will tell
    if new is None:
        raise ChangeRefused(f"the launcher {signature.symbol!r} is gone")
    if _declaration(old) != _declaration(new):
        raise ChangeRefused(
            f"the signature of {signature.symbol!r} must stay {_spelled(old)}, not {_spelled(new)}"
        )


def _launcher(candidate: Candidate, symbol: str) -> LauncherDecl | None:
    files = sorted(candidate.files, key=lambda file: file.path != candidate.main)
    units = [parsed(file.text, file.path) for file in files]
    named = [d for unit in units for d in find_launchers(unit) if symbol in (d.name, d.qualified_name)]
    return named[0] if named else None


def _declaration(launcher: LauncherDecl) -> tuple[object, ...]:
    parameters = tuple((p.name, _tight(p.type_text), p.pointer_depth) for p in launcher.parameters)
    return launcher.qualified_name, parameters, _tight(launcher.return_type), launcher.c_linkage


def _tight(text: str) -> str:
    return re.sub(r"\s*([*&<>,])\s*", r"\1", " ".join(text.split()))


def _spelled(launcher: LauncherDecl) -> str:
    inside = ", ".join(f"{p.type_text.strip()} {p.name}" for p in launcher.parameters)
    linkage = 'extern "C" ' if launcher.c_linkage else ""
    return f"{linkage}{launcher.return_type} {launcher.name}({inside})"
