"""A position in a token list, and the operands that start there."""

from __future__ import annotations

import struct

from kernelskill.backends.emulated.ptx.lexer import Token
from kernelskill.backends.emulated.ptx.syntax import (
    Float,
    Group,
    Integer,
    Name,
    Negated,
    Opaque,
    Operand,
    Pair,
    Place,
    PtxError,
    Sum,
    Vector,
)

_DEEPEST = 32


class Cursor:
    """Walk a token list; every error is a `PtxError` at the current line."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def token(self) -> Token:
        """The token to be read next."""
        return self._tokens[self._at]

    @property
    def following(self) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def error(self, message: str) -> PtxError:
        """Return an error at the current line."""
        if self.token.kind == "end":
            message = "the text ends too early"
        return PtxError(message, self.token.line)

    def take(self) -> Token:
        """Read one token.

        Raises:
            PtxError: The text ends here.
        """
        token = self.token
        if token.kind == "end":
            raise self.error("the text ends too early")
        self._at += 1
        return token

    def accept(self, text: str) -> bool:
        """Read the token if it is `text`."""
        if self.token.text == text and self.token.kind not in ("string", "end"):
            self._at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Read `text`.

        Raises:
            PtxError: Another token stands here.
        """
        if not self.accept(text):
            raise self.error(f"expected {text!r}, found {self.token.text!r}")

    def word(self) -> str:
        """Read a name."""
        if self.token.kind != "word":
            raise self.error(f"expected a name, found {self.token.text!r}")
        return self.take().text

    def integer(self) -> int:
        """Read an integer with an optional sign."""
        sign = -1 if self.accept("-") else 1
        token = self.token
        if token.kind != "integer":
            raise self.error(f"expected an integer, found {token.text!r}")
        self._at += 1
        return sign * integer_value(token.text)

    def skip_braces(self) -> None:
        """Read a balanced `{ ... }`."""
        self.expect("{")
        depth = 1
        while depth:
            text = self.take().text
            depth += {"{": 1, "}": -1}.get(text, 0)

    def skip_statement(self) -> None:
        """Read up to and with the next semicolon."""
        while self.take().text != ";":
            pass

    def operands(self, end: str, depth: int = 0) -> tuple[Operand, ...]:
        """Read operands between commas up to and with `end`."""
        found: list[Operand] = []
        if self.accept(end):
            return ()
        while True:
            found.append(self.operand(depth))
            if self.accept(end):
                return tuple(found)
            self.expect(",")

    def operand(self, depth: int = 0) -> Operand:
        """Read one operand.

        Raises:
            PtxError: No operand stands here.
        """
        if depth > _DEEPEST:
            raise self.error("operands are nested too deeply")
        if self.accept("{"):
            return Vector(self.operands("}", depth + 1))
        if self.accept("("):
            return Group(self.operands(")", depth + 1))
        if self.accept("["):
            return self._place()
        if self.accept("!"):
            return Negated(Name(self.word()))
        if self.token.kind == "word":
            return self._named()
        return self._literal()

    def _literal(self) -> Operand:
        negative = self.accept("-")
        token = self.take()
        if token.kind == "integer":
            value = integer_value(token.text)
            return Integer(-value if negative else value)
        if token.kind == "float":
            return float_value(token.text, negative)
        raise PtxError(f"expected an operand, found {token.text!r}", token.line)

    def _named(self) -> Operand:
        name = Name(self.word())
        if self.accept("|"):
            return Pair(name, Name(self.word()))
        if self.token.text in ("+", "-"):
            return Sum(name, self._signed_offset())
        return name

    def _signed_offset(self) -> int:
        total = 0
        while self.token.text in ("+", "-"):
            sign = -1 if self.take().text == "-" else 1
            total += sign * self.integer()
        return total

    def _place(self) -> Operand:
        start = self._at
        base = Name(self.word()) if self.token.kind == "word" else None
        offset = self.integer() if base is None and self.token.kind == "integer" else 0
        offset += self._signed_offset()
        if self.accept("]"):
            return Place(base, offset)
        depth = 1
        while depth:
            depth += {"[": 1, "]": -1}.get(self.take().text, 0)
        return Opaque(" ".join(token.text for token in self._tokens[start : self._at - 1]))


def integer_value(text: str) -> int:
    """Return the value of an integer literal."""
    digits = text.rstrip("U")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if digits[:2] in ("0b", "0B"):
        return int(digits[2:], 2)
    if len(digits) > 1 and digits[0] == "0" and all(c in "01234567" for c in digits):
        return int(digits, 8)
    return int(digits[:40])


def float_value(text: str, negative: bool = False) -> Float:
    """Return a floating literal; decimal ones are double precision."""
    if text[:2] in ("0f", "0F"):
        return Float(int(text[2:], 16) ^ (1 << 31 if negative else 0), 32)
    if text[:2] in ("0d", "0D"):
        return Float(int(text[2:], 16) ^ (1 << 63 if negative else 0), 64)
    value = -float(text) if negative else float(text)
    return Float(int.from_bytes(struct.pack("<d", value), "little"), 64)
