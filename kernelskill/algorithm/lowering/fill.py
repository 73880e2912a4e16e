"""Code that fills tiles in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kernelskill.algorithm.expression import Binary, Expression, Loop, Sym
from kernelskill.algorithm.integers import add, compared, multiply, subtract, value_of
from kernelskill.algorithm.lowering.async_copy import buffer_count
from kernelskill.algorithm.lowering.context import Context, StagedTile, coordinate_symbol
from kernelskill.algorithm.lowering.staging import Fill, inner_loops, upper_end
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import cuda_name, size_of

_MOST_UNROLLED = 16
"""Rounds of a fill that are unrolled whole."""


_ASYNC_BYTES = (4, 8, 16)


def zero_of(kind: str) -> str:
    """Return the text of a zero of a type."""
    return {"float": "0.0f", "double": "0.0", "half": "__half{}", "bfloat16": "__nv_bfloat16{}"}.get(
        kind, "0"
    )


@dataclass(frozen=True)
class Place:
    """Where one access of a fill goes, as texts."""

    element: str
    """Number of the access within the tile."""
    relative: tuple[str, ...]
    """Name of the place within the tile, a dimension of the footprint each."""
    coordinates: tuple[str, ...]
    """Name of the coordinate in the buffer, a dimension each."""


class Filler:
    """Writes the code that fills one tile."""

    def __init__(self, context: Context, fill: Fill, thread: str, starts: Mapping[str, Expression]) -> None:
        """Prepare.

        Args:
            context: The lowering.
            fill: How the work is shared.
            thread: Text of the thread's number in the block.
            starts: First value of every symbol that varies over the tile.
        """
        self._context, self._fill, self._tile, self._thread = context, fill, fill.tile, thread
        self._starts = starts

    @property
    def register_type(self) -> str:
        """Type of what one access moves."""
        kind = cuda_name(self._tile.kind)
        width = self._fill.vector
        return f"{self._context.pack}<{kind}, {width}>" if width > 1 else kind

    def declare(self) -> None:
        """Declare the array in shared memory, or a name for its place in the dynamic memory."""
        out, tile = self._context.out, self._tile
        sizes = [str(tile.sizes[d]) for d in tile.order]
        if tile.pad:
            sizes[-1] += f" + {tile.pad}"
        count = buffer_count(self._context.schedule) if tile.loop else 1
        twice = f"[{count}]" if count > 1 else ""
        tensor = self._context.schedule.tensor
        align = (
            "__align__(128) "
            if tensor
            else "__align__(16) "
            if self._fill.vector > 1 or self._reads_packs()
            else ""
        )
        body = twice + "".join(f"[{size}]" for size in sizes)
        kind = cuda_name(tile.kind)
        if tile.place:
            out.line(f"{kind} (&{tile.name}){body} = *reinterpret_cast<{kind}(*){body}>({tile.place});")
        else:
            out.line(f"__shared__ {align}{kind} {tile.name}{body};")

    def _reads_packs(self) -> bool:
        return any(plan.vector > 1 for plan in self._context.schedule.axes)

    def direct(self) -> None:
        """Write a loop from global to shared memory."""
        with self._rounds() as place:
            held = self._context.local("in")
            self._load(place, f"const {self.register_type} {held}", held)
            self._put(place, "", held)

    def fetch(self) -> None:
        """Write a loop from global memory into the thread's registers."""
        with self._rounds() as place:
            self._load(place, "", self._register)

    def keep(self, buffer: str) -> None:
        """Write a loop from the thread's registers into shared memory."""
        with self._rounds(reads=False) as place:
            self._put(place, buffer, self._register)

    def stream(self, buffer: str) -> None:
        """Write a loop that starts asynchronous copies; elements too small for them are copied at once."""
        out, width, size = self._context.out, self._fill.vector, size_of(self._tile.kind)
        with self._rounds() as place, ExitStack() as stack:
            if not self._fill.is_even:
                stack.enter_context(out.block(f"if ({place.element} < {self._fill.total})"))
            if width == 1:
                self._stream_one(place, buffer, "")
                return
            if self._is_contiguous and size * width in _ASYNC_BYTES:
                with out.block(f"if ({self._context.aligned_flag})"):
                    self._stream_call(place, buffer, size * width, "")
                stack.enter_context(out.block("else"))
            j = self._context.local("j")
            with out.unrolled(f"for (int {j} = 0; {j} < {width}; ++{j})"):
                self._stream_one(place, buffer, j)

    def _stream_one(self, place: Place, buffer: str, lane: str) -> None:
        """Copy one element, asynchronously where it is large enough."""
        size = size_of(self._tile.kind)
        if size in _ASYNC_BYTES:
            self._stream_call(place, buffer, size, lane)
            return
        tests = self._stream_tests(place, lane)
        text = f"{self._tile.buffer}[{self._index(place, Sym(lane) if lane else None)}]"
        value = f"{tests} ? {text} : {zero_of(self._tile.kind)}" if tests else text
        self._context.out.line(f"{self._element(place, buffer, lane)} = {value};")

    def _stream_call(self, place: Place, buffer: str, size: int, lane: str) -> None:
        base, index = self._tile.buffer, self._index(place, Sym(lane) if lane else None)
        function, take = self._context.helper_names["copy_async"], self._context.local("take")
        target = f"&{self._element(place, buffer, lane)}"
        tests = self._stream_tests(place, lane)
        if not tests:
            self._context.out.line(f"{function}<{size}>({target}, &{base}[{index}], true);")
            return
        # The address is formed only where the element exists.
        self._context.out.line(f"const bool {take} = {tests};")
        source = f"{take} ? &{base}[{index}] : {base}"
        self._context.out.line(f"{function}<{size}>({target}, {source}, {take});")

    def _stream_tests(self, place: Place, lane: str) -> str:
        tests = self._tests(place, Sym(lane) if lane else None)
        return " && ".join(tests if self._fill.is_even else tests[1:])

    @property
    def _is_contiguous(self) -> bool:
        """Whether neighbours in global memory are neighbours in the tile, rows kept aligned."""
        unit = self._fill.walk[-1]
        whole = (self._tile.sizes[unit] + self._tile.pad) % self._fill.vector == 0
        return self._tile.order[-1] == unit and whole

    def _element(self, place: Place, buffer: str, lane: str) -> str:
        unit = self._fill.walk[-1]
        shift = f" + {lane}" if lane else ""
        places = [place.relative[d] + (shift if d == unit else "") for d in self._tile.order]
        number = f"[{buffer}]" if buffer else ""
        return f"{self._tile.name}{number}" + "".join(f"[{text}]" for text in places)

    @property
    def _register(self) -> str:
        if self._fill.rounds == 1:
            return f"{self._tile.next}[0]"
        return f"{self._tile.next}[{self._context.local('i')}]"

    @contextmanager
    def _rounds(self, *, reads: bool = True) -> Iterator[Place]:
        context, fill = self._context, self._fill
        element, number = context.local("e"), context.local("i")
        with ExitStack() as stack:
            if fill.rounds > 1 and fill.rounds <= _MOST_UNROLLED:
                stack.enter_context(
                    context.out.unrolled(f"for (int {number} = 0; {number} < {fill.rounds}; ++{number})")
                )
                text = f"{self._thread} + {number} * {context.block_threads}"
            elif fill.rounds > 1:
                head = f"for (int {number} = 0; {number} < {fill.rounds}; ++{number})"
                stack.enter_context(context.out.block(head))
                text = f"{self._thread} + {number} * {context.block_threads}"
            else:
                stack.enter_context(context.out.block(""))
                text = self._thread
            context.out.line(f"const int {element} = {text};")
            yield self._decode(element, reads)

    def _decode(self, element: str, reads: bool) -> Place:
        """Declare the place within the tile, a dimension at a time, the fastest of the walk first."""
        fill, tile = self._fill, self._tile
        names = [""] * len(tile.sizes)
        rest = element
        for number, dimension in enumerate(reversed(fill.walk)):
            width = fill.vector if number == 0 else 1
            steps = tile.sizes[dimension] // width
            is_slowest = number == len(fill.walk) - 1
            text = rest if is_slowest else f"{rest} % {steps}"
            names[dimension] = name = self._label(dimension)
            scaled = f"{text} * {width}" if width > 1 else text
            self._context.out.line(f"const int {name} = {scaled};")
            rest = element if steps == 1 else f"{rest} / {steps}"
        coordinates = [self._global(d, names[d]) for d in range(len(names))] if reads else names
        return Place(element, tuple(names), tuple(coordinates))

    def _global(self, dimension: int, relative: str) -> str:
        """Declare the coordinate in the buffer; return its name."""
        origin = self._context.show(self._tile.footprint.dimensions[dimension].coordinate(self._starts))
        if origin == "0":
            return relative
        name = self._context.local(f"load_{self._symbol(dimension)}")
        self._context.out.line(f"const {self._context.index_type} {name} = {origin} + {relative};")
        return name

    def _symbol(self, dimension: int) -> str:
        symbols = sorted(self._tile.footprint.dimensions[dimension].symbols)
        axes = [name for name in self._context.axes if name in symbols]
        return (axes or symbols or ["field"])[0]

    def _label(self, dimension: int) -> str:
        return self._context.local(f"{self._symbol(dimension)}_at")

    def _coordinate(self, dimension: int, place: Place, shift: Expression | None = None) -> Expression:
        coordinate: Expression = Sym(place.coordinates[dimension])
        return add(coordinate, shift) if shift is not None else coordinate

    def _index(self, place: Place, shift: Expression | None = None) -> str:
        total = self._tile.footprint.base
        for position, dimension in enumerate(self._tile.footprint.dimensions):
            moved = shift if position == self._fill.walk[-1] else None
            total = add(total, multiply(dimension.stride, self._coordinate(position, place, moved)))
        return self._context.show(total)

    def _tests(self, place: Place, shift: Expression | None = None) -> list[str]:
        """Return the tests that an element of the tile is one that the kernel reads."""
        tests = [] if self._fill.is_even else [f"{place.element} < {self._fill.total}"]
        coordinates = {
            coordinate_symbol(d): self._coordinate(d, place, shift if d == self._fill.walk[-1] else None)
            for d in range(len(self._tile.sizes))
        }
        for dimension in range(len(self._tile.sizes)):
            if not self._is_whole(dimension) and not self._is_tested(dimension):
                end = upper_end(self._context.algorithm, self._tile, dimension)
                test = compared("<", coordinates[coordinate_symbol(dimension)], end)
                if value_of(test) != 1:
                    tests.append(self._context.show(test, 3))
        tests += [self._context.show(substitute(c, coordinates), 3) for c in self._tile.conditions]
        return tests

    def _is_whole(self, dimension: int) -> bool:
        """Whether only loops of constant range move along a dimension: no tile is a partial one."""
        loops = inner_loops(self._context.algorithm)
        followed = self._tile.loop
        return all(
            name in loops and name != followed and value_of(loops[name].upper) is not None
            for name in self._tile.footprint.dimensions[dimension].symbols
        )

    def _is_tested(self, dimension: int) -> bool:
        """Whether a condition of the user's keeps the coordinate below the end already."""
        symbol = coordinate_symbol(dimension)
        end = upper_end(self._context.algorithm, self._tile, dimension)
        for condition in self._tile.conditions:
            if not isinstance(condition, Binary) or condition.op not in ("<", "<="):
                continue
            if not condition.depends_on(symbol):
                continue
            left = subtract(condition.left, condition.right)
            excess = value_of(substitute(left, {symbol: end}))
            if excess is not None and excess >= (0 if condition.op == "<" else 1):
                return True
        return False

    def _load(self, place: Place, declaration: str, target: str) -> None:
        out, width, tile = self._context.out, self._fill.vector, self._tile
        zero = zero_of(tile.kind)
        if width == 1:
            tests = " && ".join(self._tests(place))
            text = f"{tile.buffer}[{self._index(place)}]"
            value = f"{tests} ? {text} : {zero}" if tests else text
            out.line(f"{declaration or target} = {value};")
            return
        out.line(f"{self.register_type} {target} = {{}};" if declaration else f"{target} = {{}};")
        wide = f"*reinterpret_cast<const {self.register_type}*>(&{tile.buffer}[{self._index(place)}])"
        tests = " && ".join(self._tests(place))
        with out.block(f"if ({self._context.aligned_flag})"):
            out.line(f"if ({tests}) {target} = {wide};" if tests else f"{target} = {wide};")
        j = self._context.local("j")
        with out.block("else"), out.unrolled(f"for (int {j} = 0; {j} < {width}; ++{j})"):
            tests = " && ".join(self._tests(place, Sym(j)))
            single = f"{target}.at[{j}] = {tile.buffer}[{self._index(place, Sym(j))}];"
            out.line(f"if ({tests}) {single}" if tests else single)

    def _put(self, place: Place, buffer: str, source: str) -> None:
        out, fill, tile = self._context.out, self._fill, self._tile
        number = f"[{buffer}]" if buffer else ""
        unit = fill.walk[-1]

        def element(shift: str) -> str:
            places = [place.relative[d] + (shift if d == unit else "") for d in tile.order]
            return f"{tile.name}{number}" + "".join(f"[{text}]" for text in places)

        with ExitStack() as stack:
            if not fill.is_even:
                stack.enter_context(out.block(f"if ({place.element} < {fill.total})"))
            if fill.vector == 1:
                out.line(f"{element('')} = {source};")
            elif tile.order[-1] == unit and (tile.sizes[unit] + tile.pad) % fill.vector == 0:
                out.line(f"*reinterpret_cast<{self.register_type}*>(&{element('')}) = {source};")
            else:
                j = self._context.local("j")
                with out.unrolled(f"for (int {j} = 0; {j} < {fill.vector}; ++{j})"):
                    out.line(f"{element(f' + {j}')} = {source}.at[{j}];")


def tile_starts(context: Context, tile: StagedTile, loop_start: str) -> dict[str, Expression]:
    """Return the first value of every symbol that varies over a tile."""
    loops: dict[str, Loop] = inner_loops(context.algorithm)
    starts: dict[str, Expression] = {}
    for name, _ in tile.counts:
        if name in context.axes:
            starts[name] = Sym(context.axes[name].start)
        elif name == tile.loop:
            starts[name] = Sym(loop_start)
        else:
            starts[name] = loops[name].lower
    return starts
