"""What nvcc, its front end, g++ and ptxas said, as records; errors first, in their order."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelskill.schema.build import Diagnostic

LOG_BYTES = 8192
_MAX_DIAGNOSTICS = 50

_EDG = re.compile(
    r"^(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): (?P<kind>(?:catastrophic |fatal |internal )?error|warning)"
    r"(?: #[\w-]+)?: (?P<message>.*)$"
)
_GXX = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?P<kind>(?:fatal )?error|Error|warning|Warning): (?P<message>.*)$"
)
_PTXAS_LINE = re.compile(
    r"^ptxas (?P<file>.+), line (?P<line>\d+); (?P<kind>error|fatal|warning)\s*: (?P<message>.*)$"
)
_TOOL = re.compile(
    r"^(?P<tool>nvcc|ptxas|nvlink|fatbinary|cicc|gcc|g\+\+|cc1plus|as)(?: *:)? *(?P<kind>error|fatal(?: error)?|warning)\s*:\s*"
    r"(?P<message>.*)$"
)
_END_OF_SOURCE = re.compile(
    r"^At end of source: error: (?P<message>[^\n]*)"
    r"(?:\n(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): note[^\n]*)?",
    re.MULTILINE,
)
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
_HOST_COMPILER = re.compile(r"^\S*/host_config\.h:\d+:\d+: error: #error -- (unsupported .*)$", re.MULTILINE)
_DIED = re.compile(r"died due to signal|out of memory|Killed \(program")
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')


@dataclass(frozen=True)
class _Message:
    file: str
    line: int
    is_error: bool
    text: str


class SourceNames:
    """Knows which of the user's files a path in a compiler's message means.

    Args:
        files: Path relative to the candidate's root, to text.
        main: The main file; what is wrong in the generated file is the end of this one.
        folder: Absolute folder that the files were compiled in.
        generated: Name of the generated file.
    """

    def __init__(self, files: Mapping[str, str], main: str, folder: str, generated: str) -> None:
        self._files = files
        self._main = main
        self._folder = folder
        self.generated = generated

    def place(self, path: str, line: int) -> tuple[str, int]:
        """Return the user's file and line, or the path as it is where it is none of the user's."""
        absolute = posixpath.normpath(posixpath.join(self._folder, _unescaped(path)))
        relative = posixpath.relpath(absolute, self._folder)
        if relative in self._files:
            return relative, line
        if posixpath.basename(absolute) == self.generated:
            return self._main, max(1, self._files[self._main].count("\n"))
        return path, line

    def excerpt(self, path: str, line: int) -> str:
        """Return the source line, or nothing."""
        lines = self._files.get(path, "").splitlines()
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def parse_errors(log: str, names: SourceNames, ptx: str = "") -> tuple[Diagnostic, ...]:
    """Return the errors of a failed compilation, in the order in which they were printed.

    Where no line looks like an error, the last line that says anything stands for one.

    Args:
        log: Output of the compiler.
        names: Finds the user's files again.
        ptx: The PTX that ptxas read, to find the source lines of its messages.
    """
    errors = find_errors(log, names, ptx)
    if errors:
        return errors
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return (
        Diagnostic(file="", line=0, message=lines[-1] if lines else "the compiler failed without a message"),
    )


def find_errors(log: str, names: SourceNames, ptx: str = "") -> tuple[Diagnostic, ...]:
    """Return the lines of a log that are errors; an unclosed brace comes first, as all else follows from it."""
    errors = [message for message in _messages(log, ptx) if message.is_error]
    placed = [*find_unclosed(log, names), *(_diagnostic(error, names) for error in errors)]
    return tuple(dict.fromkeys(placed))[:_MAX_DIAGNOSTICS]


def find_unclosed(log: str, names: SourceNames) -> list[Diagnostic]:
    """Return where a brace is open at the end; the generated file begins with a namespace to find out."""
    found = _END_OF_SOURCE.search(log)
    if found is not None and found["file"] is not None:
        opened = _Message(found["file"], int(found["line"]), True, f"{found['message']} for this one")
        return [_diagnostic(opened, names)]
    if found is None and f"{names.generated}(2): error: namespace definition is not allowed" not in log:
        return []
    return [
        _diagnostic(_Message(names.generated, 1, True, 'a "{" is not closed at the end of the file'), names)
    ]


def parse_warnings(log: str, names: SourceNames) -> tuple[str, ...]:
    """Return the warnings as lines of text, each once."""
    warnings = [_diagnostic(m, names) for m in _messages(log, "") if not m.is_error]
    return tuple(dict.fromkeys(f"{w.file}:{w.line}: {w.message}" if w.file else w.message for w in warnings))


def compiler_was_killed(log: str) -> bool:
    """Whether the compiler itself died, so that the same source may compile another time."""
    return _DIED.search(log) is not None


def unsupported_host_compiler(log: str) -> str:
    """Return what nvcc's headers say of a host compiler that they do not support, or nothing."""
    found = _HOST_COMPILER.search(log)
    return found[1] if found else ""


def first_bytes(log: str) -> str:
    """Return the start of a log, as records keep it."""
    return log.encode()[:LOG_BYTES].decode(errors="ignore")


def _messages(log: str, ptx: str) -> Iterator[_Message]:
    for line in log.splitlines():
        if found := _EDG.match(line) or _GXX.match(line):
            yield _Message(found["file"], int(found["line"]), "rror" in found["kind"], found["message"])
        elif found := _PTXAS_LINE.match(line):
            place = _source_of_ptx_line(ptx, int(found["line"])) or ("", 0)
            yield _Message(*place, found["kind"] != "warning", f"ptxas: {found['message']}")
        elif found := _TOOL.match(line):
            yield _Message("", 0, found["kind"] != "warning", f"{found['tool']}: {found['message']}")


def _unescaped(path: str) -> str:
    """Undo the octal escapes that PTX has for bytes beyond ASCII."""
    if "\\" not in path:
        return path
    return _OCTAL.sub(lambda found: bytes([int(found[1], 8)]), path.encode()).decode(errors="replace")


def _diagnostic(message: _Message, names: SourceNames) -> Diagnostic:
    file, line = names.place(message.file, message.line) if message.file else ("", 0)
    return Diagnostic(file=file, line=line, message=message.text, excerpt=names.excerpt(file, line))


def _source_of_ptx_line(ptx: str, line: int) -> tuple[str, int] | None:
    """Find the nearest `.loc` above a line of PTX."""
    lines = ptx.splitlines()
    files = {found[1]: found[2] for text in lines if (found := _FILE.match(text))}
    for text in reversed(lines[: max(0, line)]):
        if found := _LOC.match(text):
            file = files.get(found[1])
            return (file, int(found[2])) if file is not None else None
    return None
