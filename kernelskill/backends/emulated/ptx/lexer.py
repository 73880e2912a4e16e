"""PTX text to tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelskill.backends.emulated.ptx.syntax import PtxError

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|//[^\n]*)
      | (?P<newline>\n)
      | (?P<comment>/\*.*?\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<float>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|\d+\.\d*(?:[eE][+-]?\d+)?)
      | (?P<integer>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?\b)
      | (?P<word>[%$_A-Za-z][\w$%]*(?:(?:\.|::)[\w$]+)*)
      | (?P<directive>\.(?:reg|param|local|shared|global|const|v[248])(?=\.)  # `.reg.b32` is two
                    |\.[A-Za-z_][\w]*(?:(?:\.|::)[\w]+)*)
      | (?P<mark>[{}\[\]()<>,;:|!+\-@=*])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `kind` is the name of its pattern, or `end`."""

    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a PTX text, an `end` token last.

    Raises:
        PtxError: A character belongs to no token.
    """
    tokens: list[Token] = []
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PtxError(f"unexpected character {text[position]!r}", line)
        kind = match.lastgroup or ""
        if kind not in ("space", "newline", "comment"):
            tokens.append(Token(kind, match[0], line))
        line += match[0].count("\n")
        position = match.end()
    tokens.append(Token("end", "", line))
    return tokens
