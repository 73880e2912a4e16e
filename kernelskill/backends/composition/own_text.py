"""The candidate's own text in what the preprocessor made: macros expanded, headers of others left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kernelskill.backends.entry import ENTRY_FILE, SOURCES

_GENERATED = (f"../{ENTRY_FILE}", ENTRY_FILE.replace(".cu", ".cudafe1.stub.c"))
_FIRST = f'"../{SOURCES}/'
# What precedes a marker may be a string that only looks like one, so strings are read along.
_MARKER_OR_STRING = re.compile(
    r"""
    (?P<raw>(?<![0-9A-Za-z_])(?:u8|[uUL])?R"(?P<delimiter>[^ ()\\\t\v\f\n"]{0,16})\(.*?\)(?P=delimiter)")
    |"(?:\\[^\n]|[^"\\\n])*"
    |(?<![0-9A-Za-z_])(?:u8|[uUL])?'(?:\\[^\n]|[^'\\\n])+'
    |^\#[ ](?P<line>\d+)(?:[ ]"(?P<file>(?:\\.|[^"\\\n])*)"[ 0-9]*)?$
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_BODY_OPENS, _BODY_ENDS = "#if 0", "#endif"


@dataclass(frozen=True)
class OwnPart:
    """A run of lines that come from one file of the candidate."""

    file: str
    """Relative to the candidate's root."""
    line: int
    """Number of the first line."""
    text: str


def own_parts(preprocessed: str, folder: str) -> Iterator[OwnPart]:
    """Yield what a preprocessed text holds of the candidate's own files.

    Trusts line markers; a source that makes its own with `#line` is a finding in itself.

    Args:
        preprocessed: Output of the preprocessor run in the folder of the sources.
        folder: The private folder that holds the sources' folder, as the compiler knows it.
    """
    start = preprocessed.find(_FIRST)
    if start < 0:
        return
    start = preprocessed.rfind("\n", 0, start) + 1
    file, line, begin = "", 0, start
    for match in _MARKER_OR_STRING.finditer(preprocessed, start):
        if match["line"] is None:
            continue
        if file:
            yield OwnPart(file, line, preprocessed[begin : match.start()])
        if match["file"] is not None:
            file = _own_file(match["file"], folder)
        line, begin = int(match["line"]), match.end() + 1
    if file:
        yield OwnPart(file, line, preprocessed[begin:])


def host_parts(generated: str, folder: str) -> Iterator[OwnPart]:
    """Yield the candidate's own host code from what nvcc hands to the host compiler: no device bodies.

    Args:
        generated: Text of the `.cudafe1.cpp` file.
        folder: As for `own_parts`.
    """
    yield from own_parts("\n".join(_without_device_bodies(generated.split("\n"))), folder)


def _without_device_bodies(lines: Iterable[str]) -> Iterator[str]:
    """Blank what is left out of the host's code; the body of a lambda stands inside that of its kernel."""
    depth = 0
    for line in lines:
        if line == _BODY_OPENS or (depth and line.startswith("#if")):
            depth += 1
        yield "" if depth else line
        if depth and line == _BODY_ENDS:
            depth -= 1


def _own_file(path: str, folder: str) -> str:
    """Return a path relative to the sources, or nothing for files that are not the candidate's."""
    for prefix in (f"../{SOURCES}/", f"{folder}/{SOURCES}/"):
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    return "" if path.startswith(("/", "<")) or path in _GENERATED else path
