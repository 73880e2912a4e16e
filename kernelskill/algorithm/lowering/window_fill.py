"""Fill windows in registers: rows are read by wide accesses, and what is left at their ends one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.integers import add, constant, multiply
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.half_windows import PairCopy
from kernelskill.algorithm.lowering.staging import note_divisible, row_strides
from kernelskill.algorithm.lowering.window import Window
from kernelskill.algorithm.types import cuda_name, size_of


@dataclass(frozen=True)
class _Rows:
    """Neighbouring rows of which the same columns are held."""

    spans: Mapping[int, range]
    """Dimension -> its coordinates."""
    stretch: range


def fill_window(context: Context, window: Window, firsts: Mapping[str, Sym], half: int = 0) -> None:
    """Declare a window and read it; `firsts`: axis -> the thread's first point, which is declared.

    With `half`, each word holds two bytes, which lie that many columns apart.
    """
    _note_alignment(context, window)
    counts = [len(window.span(d)) - (half if d == window.unit else 0) for d in window.dimensions]
    kind = "unsigned" if half else cuda_name(window.kind)
    context.out.line(f"{kind} {window.name}{''.join(f'[{count}]' for count in counts)};")
    for rows in _grouped(window):
        _fill_rows(context, window, rows, firsts, half)


def _note_alignment(context: Context, window: Window) -> None:
    bytes_needed = window.width * size_of(window.kind)
    context.aligned[window.buffer] = max(context.aligned.get(window.buffer, 0), bytes_needed)
    for stride in row_strides(window.footprint, window.unit):
        note_divisible(context, stride, window.width)


def _grouped(window: Window) -> list[_Rows]:
    """Return the rows in stretches of equal columns along the fastest dimension; all at once where they are equal."""
    whole = {d: window.span(d) for d in window.rows}
    boxes = 1
    for span in whole.values():
        boxes *= len(span)
    if len(window.stretches) == boxes and len({stretch for _, stretch in window.stretches}) == 1:
        return [_Rows(whole, window.stretches[0][1])]
    found: list[_Rows] = []
    for row, stretch in window.stretches:
        places = {d: row[d - (d > window.unit)] for d in window.rows}
        found.append(_Rows({d: range(place, place + 1) for d, place in places.items()}, stretch))
    found.sort(key=lambda rows: [rows.spans[d].start for d in window.rows])
    return _joined(found, window.rows[-1])


def _joined(rows: Sequence[_Rows], fastest: int) -> list[_Rows]:
    """Join rows with the one before where they are neighbours along the fastest dimension."""
    found: list[_Rows] = []
    for each in rows:
        last = found[-1] if found else None
        if last is not None and last.stretch == each.stretch:
            others = all(last.spans[d] == each.spans[d] for d in each.spans if d != fastest)
            if others and last.spans[fastest].stop == each.spans[fastest].start:
                longer = range(last.spans[fastest].start, each.spans[fastest].stop)
                found[-1] = _Rows({**last.spans, fastest: longer}, last.stretch)
                continue
        found.append(each)
    return found


def _fill_rows(context: Context, window: Window, rows: _Rows, firsts: Mapping[str, Sym], half: int) -> None:
    out, kind, part = context.out, context.index_type, window.aligned_part(rows.stretch)
    begin = part.start if part else rows.stretch.start
    index: Expression = add(
        window.footprint.base, add(window.coordinate(window.unit, firsts), constant(begin))
    )
    subscripts: dict[int, str] = {}
    with ExitStack() as stack:
        for d in window.rows:
            span, low = rows.spans[d], window.span(d).start
            place: Expression = constant(span.start)
            if len(span) > 1:
                name = context.names.fresh("r")
                stack.enter_context(
                    out.unrolled(
                        f"for ({kind} {name} = {span.start - low}; {name} < {span.stop - low}; ++{name})"
                    )
                )
                place = add(Sym(name), constant(low))
                subscripts[d] = f"[{name}]"
            else:
                subscripts[d] = f"[{span.start - low}]"
            place = add(window.coordinate(d, firsts), place)
            index = add(index, multiply(window.footprint.dimensions[d].stride, place))
        row = context.names.fresh(f"{window.buffer}_row")
        out.line(f"const {cuda_name(window.kind)}* const {row} = &{window.buffer}[{context.show(index)}];")
        target = window.name + "".join(subscripts[d] for d in window.rows if d in window.dimensions)
        if half:
            PairCopy(context, window, row, begin, target, half).write(rows.stretch, part)
        else:
            _Copy(context, window, row, begin, target).write(rows.stretch, part)


@dataclass(frozen=True)
class _Copy:
    """Copies one row: `row` points at the column `begin`, `target` is the row of the array."""

    context: Context
    window: Window
    row: str
    begin: int
    target: str

    def write(self, stretch: range, part: range) -> None:
        """Write the copy of a stretch of which a part is aligned."""
        out = self.context.out
        if part:
            with out.block(f"if ({self.context.aligned_flag})"):
                self._wide(part)
            with out.block("else"):
                self._single(part)
            self._single(range(stretch.start, part.start))
            self._single(range(part.stop, stretch.stop))
        else:
            self._single(stretch)

    def _wide(self, part: range) -> None:
        context, width = self.context, self.window.width
        groups, group = len(part) // width, context.local("g")
        if groups == 1:
            self._access(part.start, "", self.row)
            return
        with context.out.unrolled(f"for (int {group} = 0; {group} < {groups}; ++{group})"):
            self._access(part.start, f"{group} * {width} + ", f"&{self.row}[{group} * {width}]")

    def _access(self, column: int, group: str, place: str) -> None:
        """Write one wide access; `column` is that of the first group's first element."""
        context, j, packed = self.context, self.context.local("j"), self.context.local("packed")
        kind, value, count = cuda_name(self.window.kind), f"{packed}.at[{j}]", self.window.width
        if self.window.kind in ("unsigned char", "signed char", "char"):
            # Compilers load bytes of a structure again, one by one; words they take apart in registers.
            size = min(4, count)
            value = f"({kind})({packed}.at[{j} / {size}] >> {j} % {size} * 8)"
            kind, count = "unsigned" if size == 4 else "unsigned short", count // size
        pack = f"{context.pack}<{kind}, {count}>"
        context.out.line(f"const {pack} {packed} = *reinterpret_cast<const {pack}*>({place});")
        with context.out.unrolled(f"for (int {j} = 0; {j} < {self.window.width}; ++{j})"):
            context.out.line(f"{self._place(column, group + j)} = {value};")

    def _single(self, columns: range) -> None:
        context, j = self.context, self.context.local("j")
        if not columns:
            return
        offset = columns.start - self.begin
        if len(columns) == 1:
            context.out.line(f"{self._place(columns.start)} = {self.row}[{offset}];")
            return
        source = f"{j} + {offset}" if offset > 0 else f"{j} - {-offset}" if offset else j
        with context.out.unrolled(f"for (int {j} = 0; {j} < {len(columns)}; ++{j})"):
            context.out.line(f"{self._place(columns.start, j)} = {self.row}[{source}];")

    def _place(self, column: int, step: str = "") -> str:
        if self.window.unit not in self.window.dimensions:
            return self.target
        number = column - self.window.span(self.window.unit).start
        if not step:
            return f"{self.target}[{number}]"
        return f"{self.target}[{step} + {number}]" if number else f"{self.target}[{step}]"
