"""Names that meet no other name, and lines with indentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

RESERVED = frozenset(
    [
        "alignas",
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "constexpr",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "false",
        "float",
        "for",
        "half",
        "if",
        "inline",
        "int",
        "long",
        "new",
        "operator",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "template",
        "this",
        "true",
        "typename",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "threadIdx",
        "blockIdx",
        "blockDim",
        "gridDim",
        "warpSize",
        "min",
        "max",
        "abs",
    ]
)


class Names:
    """Hands out names that are not taken. One service for a whole file: a shadowed name is a wrong kernel."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {*taken, *RESERVED}

    def fresh(self, base: str) -> str:
        """Return the base, or the base with a number, and take it."""
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name


class Writer:
    """Collects lines of CUDA with four spaces a level."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._level = 0

    def line(self, text: str) -> None:
        """Add a line, or several; directives of the preprocessor keep the indentation too."""
        for each in text.split("\n"):
            self._lines.append("    " * self._level + each if each.strip() else "")

    def lines(self, texts: Iterable[str]) -> None:
        """Add lines."""
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Put braces round what is added inside."""
        self.line(f"{head} {{" if head else "{")
        self._level += 1
        yield
        self._level -= 1
        self.line(tail)

    @contextmanager
    def unrolled(self, head: str) -> Iterator[None]:
        """Like `block`, for a loop that the compiler shall unroll whole."""
        self.line("#pragma unroll")
        with self.block(head):
            yield

    @property
    def text(self) -> str:
        """Everything so far, with a line break at the end."""
        return "\n".join(self._lines) + "\n"


def capital(name: str) -> str:
    """Return `row_end` as `RowEnd`, for constants such as `kRowEndTile`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def bracketed(text: str) -> str:
    """Return a text in parentheses unless it is a name, a number or a call."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        outside = depth == 0 and not (character.isalnum() or character in "_.:)]")
        if outside and position < len(text):
            return f"({text})"
    return text


PACK = """// V neighbouring elements, moved by the widest access that their alignment allows.
template <typename T, int V>
struct alignas(sizeof(T) * V % 16 == 0 ? 16 : sizeof(T) * V % 8 == 0 ? 8 : sizeof(T) * V % 4 == 0 ? 4 : sizeof(T)) {name} {{
    T at[V];
}};
"""
"""Text of the vector type; format it with a name."""


def pack_alignment(size: int) -> int:
    """Return the alignment in bytes of a pack of that many bytes."""
    return next((width for width in (16, 8, 4, 2) if size % width == 0), 1)
