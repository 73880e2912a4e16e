"""Make the copy of a source that the parser reads: same length, friendlier spelling.

The grammar reads `x < 0 || y >= (h)` as a template and knows neither `__align__(16)` nor a macro that
stands for `__restrict__`. The copy spells such places in a way that parses to the same structure. Text
is always taken from the original, so that a mask is never seen outside this room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

BLANKED_CALLS = frozenset({b"__align__", b"__cluster_dims__", b"__maxnreg__", b"__block_size__", b"_Pragma"})
"""Attributes with arguments that the grammar does not know."""
BLANKED_WORDS = frozenset({b"__grid_constant__", b"__nv_pure__", b"__extension__"})
QUALIFIER_WORDS = frozenset(
    {
        *("__restrict__", "__restrict", "const", "volatile", "inline", "static", "constexpr"),
        *("__global__", "__device__", "__host__", "__forceinline__", "__noinline__", "__inline__"),
    }
)
"""Words that a macro may stand for and still be left out of the structure."""

_BOM = b"\xef\xbb\xbf"
_WORD_START = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$")
_DIGITS = frozenset(b"0123456789")
_WORD = _WORD_START | _DIGITS

_SIZED = {b"unsigned": b"uint32_t", b"signed": b"size_t", b"short": b"float", b"long": b"char"}
"""Types that the grammar reads as the beginning of a declaration in `(unsigned(i) + 1)`, with others as long."""


@dataclass(frozen=True)
class Mask:
    """A range that the parsed copy spells differently, with what stands there in the original."""

    start: int
    end: int
    kind: str
    """operator, qualifier, type or pragma."""
    meaning: str = ""
    """The qualifiers or attribute meant, macros replaced by their value; the text of a pragma."""


class Lexeme(NamedTuple):
    """A word, number, literal, comment or single punctuation byte; a tuple, since sources have thousands."""

    kind: str
    """word, number, string, comment or punctuation."""
    start: int
    end: int


def lexemes(data: bytes) -> Iterator[Lexeme]:
    """Yield the lexemes of C++ text; white space is skipped."""
    position, size = 0, len(data)
    while position < size:
        byte = data[position]
        if byte in b" \t\r\n\f\v":
            position += 1
            continue
        kind, end = _lexeme_end(data, position)
        yield Lexeme(kind, position, end)
        position = end


def _lexeme_end(data: bytes, position: int) -> tuple[str, int]:
    byte = data[position]
    pair = data[position : position + 2]
    if pair == b"//":
        return "comment", _line_comment_end(data, position)
    if pair == b"/*":
        end = data.find(b"*/", position + 2)
        return "comment", len(data) if end < 0 else end + 2
    if byte in _WORD_START:
        return _word_or_raw_string(data, position)
    if byte in _DIGITS or (byte == ord(".") and data[position + 1 : position + 2].isdigit()):
        return "number", _number_end(data, position)
    if byte in b"\"'":
        return "string", _quoted_end(data, position)
    return "punctuation", position + 1


def _line_comment_end(data: bytes, position: int) -> int:
    while True:
        end = data.find(b"\n", position)
        if end < 0:
            return len(data)
        if not data[position:end].rstrip(b"\r").endswith(b"\\"):
            return end
        position = end + 1


def _word_or_raw_string(data: bytes, position: int) -> tuple[str, int]:
    end = position
    while end < len(data) and data[end] in _WORD:
        end += 1
    if data[position:end] in (b"R", b"LR", b"uR", b"UR", b"u8R") and data[end : end + 1] == b'"':
        opening = data.find(b"(", end)
        if opening >= 0:
            closing = data.find(b")" + data[end + 1 : opening] + b'"', opening)
            return "string", len(data) if closing < 0 else closing + opening - end + 1
    return "word", end


def _number_end(data: bytes, position: int) -> int:
    end = position + 1
    while end < len(data):
        byte = data[end]
        signed_exponent = byte in b"+-" and data[end - 1] in b"eEpP"
        separator = byte == ord("'") and data[end + 1 : end + 2].isalnum()
        if not (byte in _WORD or byte == ord(".") or separator or signed_exponent):
            break
        if signed_exponent and data[position : position + 2].lower() == b"0x" and data[end - 1] in b"eE":
            break
        end += 1
    return end


def _quoted_end(data: bytes, position: int) -> int:
    quote, end = data[position], position + 1
    while end < len(data) and data[end] != quote and data[end] != ord("\n"):
        end += 2 if data[end] == ord("\\") else 1
    return min(end + 1, len(data))


def mask_source(data: bytes, qualifier_macros: Mapping[str, str]) -> tuple[bytes, tuple[Mask, ...]]:
    """Return the copy to parse and the ranges that differ from the original.

    Args:
        data: UTF-8 text.
        qualifier_macros: Macros that stand for nothing but qualifiers, with their value.
    """
    copy = bytearray(data)
    masks: list[Mask] = []
    if data.startswith(_BOM):
        masks.append(Mask(0, len(_BOM), "operator"))
    tokens = [token for token in lexemes(data) if token.kind not in ("comment", "string")]
    for index, token in enumerate(tokens):
        word = data[token.start : token.end]
        if token.kind == "word":
            mask = _word_mask(data, tokens, index, word, qualifier_macros)
            if mask is not None:
                masks.append(mask)
        elif word == b">" and _is_greater_equal(data, token.start):
            copy[token.start] = ord("<")
            masks.append(Mask(token.start, token.start + 1, "operator"))
        elif word == b"#":
            pragma = _pragma_mask(data, token.start)
            if pragma is not None:
                masks.append(pragma)
    for mask in masks:
        if copy[mask.start : mask.end] == data[mask.start : mask.end]:
            text = data[mask.start : mask.end]
            copy[mask.start : mask.end] = _SIZED[text] if mask.kind == "type" else _blank(text)
    return bytes(copy), tuple(masks)


def _is_cast(data: bytes, tokens: list[Lexeme], index: int) -> bool:
    """Whether a type is called with a value: `unsigned(i)`, and no `unsigned long (*)(int)`."""
    following = [data[token.start : token.end] for token in tokens[index + 1 : index + 3]]
    before = tokens[index - 1] if index else None
    stands_alone = before is None or before.kind != "word" or data[before.start : before.end] == b"return"
    return stands_alone and following[:1] == [b"("] and following[1:] not in ([], [b"*"], [b"&"], [b")"])


def _blank(data: bytes) -> bytes:
    return bytes(byte if byte in b"\r\n" else ord(" ") for byte in data)


def _pragma_mask(data: bytes, start: int) -> Mask | None:
    """Blank `#pragma` lines: between a loop and its body the grammar takes them for the body."""
    line_start = data.rfind(b"\n", 0, start) + 1
    if data[line_start:start].strip() or not data[start + 1 :].lstrip(b" \t").startswith(b"pragma"):
        return None
    end = _line_comment_end(data, start)
    return Mask(start, end, "pragma", data[start:end].decode().strip())


def _is_greater_equal(data: bytes, start: int) -> bool:
    before = data[start - 1 : start]
    return (
        data[start + 1 : start + 2] == b"="
        and data[start + 2 : start + 3] != b"="
        and before not in (b">", b"-")
    )


def _word_mask(
    data: bytes, tokens: list[Lexeme], index: int, word: bytes, qualifier_macros: Mapping[str, str]
) -> Mask | None:
    token = tokens[index]
    if word in BLANKED_CALLS:
        end = _closing_parenthesis(data, tokens, index + 1)
        kind = "pragma" if word == b"_Pragma" else "qualifier"
        return Mask(token.start, end, kind, data[token.start : end].decode()) if end else None
    if word in BLANKED_WORDS:
        return Mask(token.start, token.end, "qualifier", word.decode())
    if word in _SIZED and _is_cast(data, tokens, index):
        return Mask(token.start, token.end, "type")
    name = word.decode()
    if name in qualifier_macros and not _is_directive_name(data, tokens, index):
        return Mask(token.start, token.end, "qualifier", qualifier_macros[name])
    return None


def _is_directive_name(data: bytes, tokens: list[Lexeme], index: int) -> bool:
    line_start = data.rfind(b"\n", 0, tokens[index].start) + 1
    return data[line_start : tokens[index].start].lstrip().startswith(b"#")


def _closing_parenthesis(data: bytes, tokens: list[Lexeme], index: int) -> int:
    depth = 0
    for token in tokens[index:]:
        byte = data[token.start : token.end]
        depth += (byte == b"(") - (byte == b")")
        if depth == 0:
            return token.end if byte == b")" else 0
    return 0


def mask_false_templates(copy: bytes, closers: Sequence[int]) -> bytes:
    """Return the copy with each `>` that closes a false template spelled `<`, which binds the same."""
    changed = bytearray(copy)
    for closer in closers:
        changed[closer] = ord("<")
    return bytes(changed)
