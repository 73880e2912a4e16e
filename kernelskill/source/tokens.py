"""Tokens of C++ and CUDA text: comments, strings, raw strings and line splices read as the compiler does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

_SPLICE = r"(?:\\[ \t]*\r?\n)"
_SPLICES = re.compile(_SPLICE)
_BODY = rf"(?:{_SPLICE}|\\[^\n]|[^\\{{quote}}\n])*"
_WORD = r"[A-Za-z_$\u0080-\U0010ffff]"
_TOKEN = re.compile(
    rf"""
    (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^ ()\\\t\v\f\r\n"]{{0,16}})\((?P<inside>.*?)\)(?P=delimiter)")
    |(?P<comment>/{_SPLICE}*/(?:{_SPLICE}|[^\n])*|/{_SPLICE}*\*.*?(?:\*{_SPLICE}*/|\Z))
    |(?P<string>(?:u8|[uUL])?"{_BODY.format(quote='"')}")
    |(?P<character>(?:u8|[uUL])?'{_BODY.format(quote="'")}')
    |(?P<number>\.?{_SPLICE}*\d(?:{_SPLICE}*(?:[eEpP]{_SPLICE}*[+-]|'\w|[\w.]))*)
    |(?P<identifier>(?:{_WORD}|\\u[0-9A-Fa-f]{{4}})(?:{_SPLICE}*(?:{_WORD}|\d|\\u[0-9A-Fa-f]{{4}}))*)
    |(?P<space>(?:\s|{_SPLICE})+)
    |(?P<punctuator>::|->|\#\#|<<<|>>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_UNIVERSAL = re.compile(r"\\u([0-9A-Fa-f]{4})")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]+)|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b"}


class TokenKind(StrEnum):
    """What a token is."""

    IDENTIFIER = "identifier"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    PUNCTUATOR = "punctuator"


@dataclass(frozen=True)
class Token:
    """One token."""

    kind: TokenKind
    text: str
    """As the compiler reads it: without splices; of a string its contents, with escapes resolved."""
    line: int
    """Of its first character, counted from 1."""


def tokens(text: str, line: int = 1) -> Iterator[Token]:
    """Yield the tokens of a text; what is left open at the end is read as far as it goes.

    Args:
        text: Any text, preprocessed or not. Macros are not expanded: give it the compiler's `-E` output.
        line: Number of the first line.
    """
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "raw":
            yield Token(TokenKind.STRING, match["inside"], line)
        elif kind not in ("comment", "space"):
            written = _SPLICES.sub("", match.group())
            yield Token(TokenKind(kind or "punctuator"), _read(kind, written), line)
        line += match.group().count("\n")


def _read(kind: str | None, written: str) -> str:
    if kind == "identifier":
        return _UNIVERSAL.sub(lambda found: chr(int(found[1], 16)), written)
    if kind == "string":
        return _ESCAPE.sub(_unescape, written[written.index('"') + 1 : -1])
    return written


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        return chr(min(int(found[1], 16), 0x10FFFF))
    if found[2]:
        return chr(int(found[2], 8))
    return _LETTERS.get(found[3], found[3])
