"""Points in pairs: windows, arithmetic and stores of two results in one word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import Load, Sym
from kernelskill.algorithm.halves.model import BYTES, Half, Tap, Truth
from kernelskill.algorithm.halves.reading import Reader
from kernelskill.algorithm.halves.sharing import Grid
from kernelskill.algorithm.halves.unrolling import unrolled
from kernelskill.algorithm.integers import constant
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.half_text import HalfText
from kernelskill.algorithm.lowering.packs import Packs, Run, packs_of_stores
from kernelskill.algorithm.lowering.window import Window
from kernelskill.algorithm.lowering.window_fill import fill_window
from kernelskill.algorithm.lowering.window_plans import plan_windows
from kernelskill.algorithm.model import IllegalMove, Store
from kernelskill.algorithm.types import cuda_name, size_of


def lower_halves(context: Context, stores: Sequence[Store]) -> None:
    """Write the stores of inner points, two points of a row in each word.

    The word at place j of a row holds the points j and j + half of the thread's columns: so words are neighbours
    where points are, and no value ever moves from one half to the other.

    Raises:
        IllegalMove: A value needs more than 16 bits or other operations, or elements are not bytes side by side.
    """
    columns = _columns(context)
    stores = [replace(store, value=unrolled(store.value)) for store in stores]
    packs = _packs(context, stores, columns)
    windows = _windows(context, stores, columns)
    parameters = frozenset(p.name for p in context.algorithm.parameters if not p.is_pointer)
    reader = Reader(lambda load: _tap(context, windows, load), parameters)
    values = [reader.value(store.value) for store in stores]
    for store, value in zip(stores, values, strict=True):
        if value.low < 0 or value.high > BYTES.get(store.kind, 255):
            raise IllegalMove(f"a result from {value.low} to {value.high} is stored as {store.kind}")
    packs.note_alignment(context)
    if windows:
        context.out.line(
            f"// Two columns a word, {columns.plan.points // 2} apart, 16 bits each: one instruction computes both."
        )
        context.out.line("// What may be negative is compared 0x8000 higher.")
    for window in windows:
        fill_window(context, window, _firsts(context), columns.plan.points // 2)
    arrays = _declare_values(context, columns, stores, values)
    _Stores(context, columns, packs).write(arrays)


@dataclass(frozen=True)
class _Array:
    """Values of all points of a thread, two a word."""

    store: Store
    name: str
    is_flag: bool
    """Whether words hold conditions, the highest bit of each half, of which the values are made when stored."""


def _columns(context: Context) -> AxisText:
    axes = context.register_axes
    last = axes[-1] if axes else None
    if last is None or last.axis.name != context.algorithm.axes[-1].name or last.plan.points % 4:
        raise IllegalMove("a thread has no four columns side by side")
    if any(text.plan.vector != text.plan.points for text in axes):
        raise IllegalMove("a thread's points are not neighbours")
    return last


def _packs(context: Context, stores: Sequence[Store], columns: AxisText) -> Packs:
    """Return the wide accesses that write the results.

    Raises:
        IllegalMove: Results are no bytes side by side, or under a condition.
    """
    if any(store.guard or store.loops or store.mode != "=" for store in stores):
        raise IllegalMove("elements are written under a condition, or atomically")
    if any(size_of(store.kind) != 1 for store in stores):
        raise IllegalMove("results are no bytes")
    run = Run(columns.axis.name, columns.axis.lower, columns.plan.points)
    packs = packs_of_stores(context, stores, run)
    if packs is None or any(key.step != 1 for key in packs.written_keys) or not context.aligned_flag:
        raise IllegalMove("a thread's results do not lie side by side")
    return replace(packs, read={})


def _windows(context: Context, stores: Sequence[Store], columns: AxisText) -> list[Window]:
    """Return the windows that values read, named."""
    found = []
    for window in plan_windows(context, [store.value for store in stores]):
        own = dict(window.footprint.dimensions[window.unit].coefficients)
        elsewhere = any(columns.axis.name in window.footprint.dimensions[d].symbols for d in window.rows)
        if window.kind not in BYTES or window.width % 4:
            continue
        if own.get(columns.axis.name) != 1 or elsewhere or len(own) > 1:
            continue
        found.append(replace(window, name=context.names.fresh(f"{window.buffer}_pairs")))
    return found


def _firsts(context: Context) -> dict[str, Sym]:
    return {
        name: Sym(f"{name}@first" if text.plan.points > 1 else name) for name, text in context.axes.items()
    }


def _tap(context: Context, windows: Sequence[Window], load: Load) -> Tap | None:
    """Return the word that holds a load; None where none does."""
    points = {
        name: Sym(text.point) if text.plan.points > 1 else constant(0) for name, text in context.axes.items()
    }
    for window in windows:
        if load in window.loads:
            return Tap(window.name, tuple(window.places_of(load, points)), BYTES[window.kind])
    return None


def _declare_values(
    context: Context, columns: AxisText, stores: Sequence[Store], values: Sequence[Half]
) -> list[_Array]:
    """Compute the values of all points before any is stored."""
    axes, half = context.register_axes, columns.plan.points // 2
    words = {text.axis.name: text.plan.points for text in axes} | {columns.axis.name: half}
    named = [
        _Array(s, context.names.fresh("value"), isinstance(v, Truth))
        for s, v in zip(stores, values, strict=True)
    ]
    grid = None
    if len(axes) > 1:
        rows = axes[-2]
        grid = Grid((rows.point, columns.point), (rows.plan.points, half))
    text = HalfText(context, grid)
    text.share(values)
    sizes = "".join(f"[{words[each.axis.name]}]" for each in axes)
    for array in named:
        context.out.line(f"unsigned {array.name}{sizes};")
    place = "".join(f"[{each.point}]" for each in axes)
    with _over(context, axes, words):
        for array, value in zip(named, values, strict=True):
            word = text.flag(value.flag) if isinstance(value, Truth) else text.word(value, 0)
            context.out.lines(text.taken())
            context.out.line(f"{array.name}{place} = {word};")
    return named


@contextmanager
def _over(context: Context, axes: Sequence[AxisText], counts: Mapping[str, int]) -> Iterator[None]:
    """Loop over the words of axes; `counts`: how many along each."""
    with ExitStack() as stack:
        for text in axes:
            count = text.points if counts[text.axis.name] == text.plan.points else str(counts[text.axis.name])
            head = f"for (int {text.point} = 0; {text.point} < {count}; ++{text.point})"
            stack.enter_context(context.out.unrolled(head))
        yield


class _Stores:
    """Writes rows of results."""

    def __init__(self, context: Context, columns: AxisText, packs: Packs) -> None:
        self._context, self._columns, self._packs = context, columns, packs

    def write(self, arrays: Sequence[_Array]) -> None:
        """Write the results of all points, a row at a time."""
        context, columns = self._context, self._columns
        others = tuple(text for text in context.register_axes if text is not columns)
        with context.over_points(others):
            for text in others:
                context.declare_point(text)
            first = context.values[Sym(f"{columns.axis.name}@first")]
            row = "".join(f"[{text.point}]" for text in others)
            for array in arrays:
                key, offset = self._packs.written[array.store]
                assert offset == 0
                place = self._packs.place_of(context, key, first)
                with context.out.block(f"if ({context.aligned_flag})"):
                    self._wide(array, f"{array.name}{row}", place)
                with context.out.block("else"):
                    self._single(array, f"{array.name}{row}", place)

    def _wide(self, array: _Array, row: str, place: str) -> None:
        """Join the results of a row to words of four bytes: each word of pairs gives one byte to either half."""
        context, out = self._context, self._context.out
        words, g = self._columns.plan.points // 4, context.local("g")
        pack = f"{context.pack}<unsigned, {words}>"
        result = context.names.fresh(f"{array.store.buffer}_out")
        out.line(f"{pack} {result};")
        if words == 1:
            out.line(f"{result}.at[0] = {_as_bytes(_woven(array, f'{row}[0]', f'{row}[1]'), array)};")
        else:
            low, high = context.local("low"), context.local("high")
            with out.unrolled(f"for (int {g} = 0; {g} < {words // 2}; ++{g})"):
                for name, at in ((low, 0), (high, 2)):
                    first, second = (f"{row}[{g} * 4{f' + {at + n}' if at + n else ''}]" for n in (0, 1))
                    out.line(f"const unsigned {name} = {_woven(array, first, second)};")
                for step, order in (("", "0x5410"), (f" + {words // 2}", "0x7632")):
                    joined = f"__byte_perm({low}, {high}, {order})"
                    out.line(f"{result}.at[{g}{step}] = {_as_bytes(joined, array)};")
        out.line(f"*reinterpret_cast<{pack}*>(&{place}) = {result};")

    def _single(self, array: _Array, row: str, place: str) -> None:
        context, j = self._context, self._context.local("j")
        half, kind = self._columns.plan.points // 2, cuda_name(array.store.kind)
        start = place.removesuffix("]")
        with context.out.unrolled(f"for (int {j} = 0; {j} < {half}; ++{j})"):
            for more, shift in (
                ("", 15 if array.is_flag else 0),
                (f" + {half}", 31 if array.is_flag else 16),
            ):
                word = f"{row}[{j}] >> {shift}" if shift else f"{row}[{j}]"
                value = f"({kind})({word}{' & 1' if array.is_flag else ''})"
                context.out.line(f"{start} + {j}{more}] = {value};")


def _woven(array: _Array, first: str, second: str) -> str:
    """Return the bytes of two words in turn, in either half: of conditions those with the highest bits."""
    return f"__byte_perm({first}, {second}, 0x7351)" if array.is_flag else f"{first} + {second} * 256"


def _as_bytes(joined: str, array: _Array) -> str:
    """Return a word of results; of conditions one bit a byte is kept."""
    return f"{joined} >> 7 & 0x01010101u" if array.is_flag else joined
