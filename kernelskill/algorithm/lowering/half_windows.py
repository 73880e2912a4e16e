"""Fill rows of windows with pairs: the bytes of two columns in the halves of each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.window import Window


@dataclass(frozen=True)
class _Byte:
    """Where a byte lies in registers."""

    word: str
    number: int
    """Its place in the word."""
    is_alone: bool
    """Whether the other bytes of the word are zero."""


@dataclass(frozen=True)
class PairCopy:
    """Copies one row: `row` points at the column `begin`, `target` is the row of the array."""

    context: Context
    window: Window
    row: str
    begin: int
    target: str
    half: int
    """Columns from the lower half's to the upper half's."""

    def write(self, stretch: range, part: range) -> None:
        """Write the copy of a stretch of which a part is aligned."""
        out = self.context.out
        columns = range(stretch.start, stretch.stop - self.half)
        if not part:
            self._single(columns)
            return
        with out.block(f"if ({self.context.aligned_flag})"):
            self._wide(stretch, part, columns)
        with out.block("else"):
            self._single(columns)

    def _place(self, column: int) -> int:
        return column - self.window.span(self.window.unit).start

    def _wide(self, stretch: range, part: range, columns: range) -> None:
        context, width = self.context, self.window.width
        pack = f"{context.pack}<unsigned, {width // 4}>"
        held: dict[int, _Byte] = {}
        for start in part[::width]:
            name, offset = context.names.fresh("packed"), start - self.begin
            place = f"{self.row}[{offset}]" if offset else ""
            source = f"&{place}" if place else self.row
            context.out.line(f"const {pack} {name} = *reinterpret_cast<const {pack}*>({source});")
            held.update({start + n: _Byte(f"{name}.at[{n // 4}]", n % 4, False) for n in range(width)})
        for column in sorted(set(stretch) - set(part)):
            name = context.names.fresh(f"{self.window.buffer}_end")
            context.out.line(f"const unsigned {name} = {self.row}[{column - self.begin}];")
            held[column] = _Byte(name, 0, True)
        for column in columns:
            text = _pair(held[column], held[column + self.half])
            context.out.line(f"{self.target}[{self._place(column)}] = {text};")

    def _single(self, columns: Sequence[int]) -> None:
        context, j = self.context, self.context.local("j")
        offset, number = columns[0] - self.begin, self._place(columns[0])
        with context.out.unrolled(f"for (int {j} = 0; {j} < {len(columns)}; ++{j})"):
            low, high = (f"{self.row}[{_moved(j, offset + more)}]" for more in (0, self.half))
            context.out.line(f"{self.target}[{_moved(j, number)}] = {low} | {high} << 16;")


def _moved(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset > 0 else f"{name} - {-offset}" if offset else name


def _pair(low: _Byte, high: _Byte) -> str:
    """Return two bytes in the halves of a word, by as few permutations as the words they come from allow."""
    if low.is_alone and high.is_alone:
        return f"{low.word} | {high.word} << 16"
    if low.word == high.word:
        return f"__byte_perm({low.word}, 0, 0x4{high.number}4{low.number})"
    if low.is_alone:  # its second byte is zero
        return f"__byte_perm({low.word}, {high.word}, 0x1{4 + high.number}10)"
    if high.is_alone:
        return f"__byte_perm({low.word}, {high.word}, 0x545{low.number})"
    if low.number != high.number:
        return f"__byte_perm({low.word}, {high.word}, 0x0{4 + high.number}0{low.number}) & 0x00ff00ffu"
    # Two bytes of each at once: the next column takes the same ones apart.
    even = low.number & 2
    both = f"__byte_perm({low.word}, {high.word}, 0x{4 + even + 1}{4 + even}{even + 1}{even})"
    return f"__byte_perm({both}, 0, {'0x4341' if low.number & 1 else '0x4240'})"
