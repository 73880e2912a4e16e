"""What all parts of one lowering share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from kernelskill.algorithm.access import Footprint, footprint
from kernelskill.algorithm.expression import (
    Cast,
    Expression,
    Load,
    Sym,
)
from kernelskill.algorithm.integers import add, constant
from kernelskill.algorithm.lowering.text import Names, Writer, capital
from kernelskill.algorithm.lowering.widths import must_be_narrowed, prints_wide
from kernelskill.algorithm.lowering.window import Window
from kernelskill.algorithm.model import Algorithm, Axis
from kernelskill.algorithm.printing import COUNTER, Leaf, Widened, show
from kernelskill.algorithm.schedule import AxisPlan, Schedule
from kernelskill.algorithm.types import is_wide


@dataclass(frozen=True)
class AxisText:
    """The names round one parallel axis."""

    axis: Axis
    plan: AxisPlan
    start: str
    """First point of the block."""
    thread: str
    """The thread's number along the axis."""
    point: str
    """Loop variable over the thread's points."""
    tile: str
    """Constant: points of a block."""
    threads: str
    """Constant: threads of a block."""
    points: str
    """Constant: points of a thread."""

    @property
    def offset(self) -> str:
        """Text of the point's place within the block's tile."""
        plan = self.plan
        if plan.points == 1:
            return self.thread if plan.threads > 1 else "0"
        if plan.vector == 1:
            return self._strided(self.point)
        if plan.vector == plan.points:
            return f"{self.thread} * {plan.points} + {self.point}" if plan.threads > 1 else self.point
        group = self._strided(f"{self.point} / {plan.vector}")
        group = f"({group})" if plan.threads > 1 else group
        return f"{group} * {plan.vector} + {self.point} % {plan.vector}"

    def _strided(self, number: str) -> str:
        return f"{number} * {self.threads} + {self.thread}" if self.plan.threads > 1 else number


@dataclass(frozen=True)
class StagedTile:
    """A tile in shared memory and the loads that read it."""

    name: str
    buffer: str
    kind: str
    loads: frozenset[Load]
    footprint: Footprint
    """Of the first element; offsets are the smallest ones."""
    spreads: tuple[int, ...]
    order: tuple[int, ...]
    """Dimensions of the footprint as the array's dimensions, slowest first."""
    sizes: tuple[int, ...]
    """Elements along each dimension of the footprint."""
    pad: int
    loop: str
    """Loop whose tiles it follows; empty: filled once."""
    conditions: tuple[Expression, ...]
    """What must hold besides ranges for an element to be read; over `coordinate_symbol`s."""
    counts: tuple[tuple[str, int], ...] = ()
    """Symbols that vary over the tile with their counts."""
    next: str = ""
    """Registers that hold the thread's part of the next tile."""
    place: str = ""
    """Text of the address in the block's dynamic memory; empty for an array of fixed size."""


@dataclass(frozen=True)
class KeptRows:
    """Elements that each lane holds in registers over all loops along a row."""

    flag: str
    """Name of the variable that says whether the row is short enough."""
    upper: Expression
    """End of the loops; they start at zero."""
    arrays: tuple[tuple[Load, str], ...]
    """Loads, with `step_symbol()` for the loop variable, and the registers that hold them."""


def step_symbol() -> Sym:
    """Return the symbol that stands for the loop variable in `KeptRows.arrays`."""
    return Sym("#step")


def coordinate_symbol(position: int) -> str:
    """Return the symbol that stands for the coordinate of one dimension in `StagedTile.conditions`."""
    return f"@{position}"


def offset_symbol(name: str) -> str:
    """Return the symbol that stands for the place of a point or step within its tile."""
    return f"{name}@offset"


@dataclass
class Context:
    """State of one lowering."""

    algorithm: Algorithm
    schedule: Schedule
    names: Names
    out: Writer
    index_type: str
    axes: dict[str, AxisText] = field(default_factory=dict)
    tiles: list[StagedTile] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    """What the points of a thread hold in registers, while their values are computed."""
    values: dict[Expression, str] = field(default_factory=dict)
    """Texts of reductions that are computed already, and of loads held in registers."""
    constants: dict[str, int] = field(default_factory=dict)
    """Named constants of the tile shape, in order."""
    aligned: dict[str, int] = field(default_factory=dict)
    """Buffer -> alignment in bytes that wide accesses need."""
    divisible: dict[Expression, int] = field(default_factory=dict)
    """Value -> number that must divide it for wide accesses."""
    pack: str = ""
    """Name of the vector type, once it is needed."""
    aligned_flag: str = ""
    """Name of the template parameter that says whether wide accesses are allowed."""
    helpers: dict[str, str] = field(default_factory=dict)
    """Text of device functions by key."""
    helper_names: dict[str, str] = field(default_factory=dict)
    active: str = ""
    """Name of the flag that says whether the thread's point lies in range; empty where it always does."""
    lane: str = ""
    kept: KeptRows | None = None
    split: str = ""
    """The block's number among those that share each point's loops; empty where none do."""
    split_count: str = ""
    depth: int = 0
    """How many loops of reductions or stores are open; what runs inside one is not shared by lanes again."""
    block_threads: str = "1"
    shared_memory: str = ""
    """Name of the block's dynamic memory; empty where tiles are arrays of fixed size."""
    shared_bytes: str = ""
    """Constant: bytes of it."""
    is_inner: bool = False
    """Whether what is written runs for threads all of whose points and windows lie in range."""
    one_point: bool = False
    """Whether the points of a thread are taken one at a time: their coordinates are declared."""
    tile_buffer: str = ""
    """Index of the tile buffer that is read, where there are two."""
    open_axes: frozenset[str] = frozenset()
    """Axes over whose points a loop is open: what a step computes there is the current point's alone."""
    narrow: frozenset[str] = frozenset()
    """Open loops whose counters are of type `int` where indices have 64 bits."""
    locals: dict[str, str] = field(default_factory=dict)
    """Names of short-lived variables by what they are called where nothing is in the way."""
    step_names: dict[str, str] = field(default_factory=dict)
    """Loop -> name of the step within its tile."""

    @property
    def register_axes(self) -> tuple[AxisText, ...]:
        """Axes along which a thread has several points together, outermost first."""
        if self.one_point:
            return ()
        return tuple(text for text in self.axes.values() if text.plan.points > 1)

    def constant(self, base: str, value: int) -> str:
        """Return the name of a constant of the tile shape, made at its first use."""
        for name, known in self.constants.items():
            if known == value and (name == base or name.startswith(f"{base}_")):
                return name
        name = self.names.fresh(base)
        self.constants[name] = value
        return name

    @property
    def shares_loops(self) -> bool:
        """Whether the loops written now are shared by lanes."""
        return self.schedule.lanes > 1 and self.depth == 0

    @property
    def lane_start(self) -> str:
        """The lane's number among all that share a loop."""
        if not self.split:
            return self.lane
        lanes = self.constant("kLanes", self.schedule.lanes)
        return f"({self.split} * {lanes} + {self.lane})"

    @property
    def lane_stride(self) -> str:
        """How many lanes share a loop, those of other blocks included."""
        lanes = self.constant("kLanes", self.schedule.lanes)
        return f"({lanes} * {self.split_count})" if self.split else lanes

    def local(self, base: str) -> str:
        """Return the name that every inner block uses for a short-lived variable."""
        if base not in self.locals:
            self.locals[base] = self.names.fresh(base)
        return self.locals[base]

    def leaf(self, expression: Expression) -> str | None:
        """Return the text of what is held under a name already."""
        known = self.values.get(expression)
        if known is not None:
            return known
        if isinstance(expression, Load):
            return self._window_text(expression) or self.tile_text(expression)
        if isinstance(expression, Sym) and expression.name.endswith("@offset"):
            return self._offset_text(expression.name.removesuffix("@offset"))
        if isinstance(expression, Widened):
            return self._to_widen(expression.operand)
        if isinstance(expression, Cast) and expression.kind == "unsigned" and self.index_type == "long long":
            wide = must_be_narrowed(expression.operand, self._is_coordinate, self.values)
            return f"static_cast<unsigned>({self.show(expression.operand)})" if wide else None
        return None

    def _is_coordinate(self, symbol: Sym) -> bool:
        return symbol.name in self.axes or symbol.name in self.algorithm.ranges

    def is_wide_name(self, symbol: Sym) -> bool:
        """Whether a symbol is declared with 64 bits."""
        if self._is_coordinate(symbol):
            return self.index_type == "long long" and symbol.name not in self.narrow
        return is_wide(self.parameter_kinds.get(symbol.name, symbol.kind))

    @cached_property
    def parameter_kinds(self) -> dict[str, str]:
        """The types of the kernel's parameters, of elements for pointers."""
        return {parameter.name: parameter.kind for parameter in self.algorithm.parameters}

    def _to_widen(self, atom: Expression) -> str | None:
        """Return `COUNTER` or `value` for what is printed in 32 bits though indices have 64; None for the rest."""
        if self.index_type != "long long" or prints_wide(atom, self.is_wide_name):
            return None
        if not isinstance(atom, Sym):
            return "value"
        if "@" in atom.name:
            return None  # the place in a tile is small
        return COUNTER if atom.name in self.narrow else "value"

    def _offset_text(self, name: str) -> str:
        if name in self.axes:
            text = self.axes[name].offset
            return f"({text})" if " " in text else text
        return self.step_names.get(name, "0")

    def _window_text(self, load: Load) -> str | None:
        """Return the register that holds a load; None where none does."""
        window = next((window for window in self.windows if load in window.loads), None)
        if window is None:
            return None
        points = {
            name: Sym(text.point) if text.plan.points > 1 else constant(0) for name, text in self.axes.items()
        }
        return window.name + "".join(f"[{show(place)}]" for place in window.places_of(load, points))

    def tile_text(self, load: Load) -> str | None:
        """Return the element of a shared tile that holds a load; None where it is not staged."""
        tile = next((tile for tile in self.tiles if load in tile.loads), None)
        if tile is None:
            return None
        places = tile_places(tile, load)
        buffer = f"[{self.tile_buffer}]" if self.tile_buffer and tile.loop else ""
        return f"{tile.name}{buffer}" + "".join(f"[{show(places[d], self.leaf)}]" for d in tile.order)

    def show(self, expression: Expression, context: int = 0, leaf: Leaf | None = None) -> str:
        """Return the text of an expression with everything known under its name."""
        return show(expression, leaf or self.leaf, context)

    def dims_of(self, *expressions: Expression) -> tuple[AxisText, ...]:
        """Return the register axes on which expressions depend, those with an open loop left out."""
        symbols = frozenset().union(*(each.symbols for each in expressions)) - self.open_axes
        return tuple(text for text in self.register_axes if text.axis.name in symbols)

    @contextmanager
    def over_points(self, axes: Iterable[AxisText], needed: Iterable[Expression] = ()) -> Iterator[None]:
        """Loop over the points of register axes; declare the coordinates that expressions print."""
        symbols = self.printed_symbols(needed)
        with ExitStack() as stack:
            listed = tuple(axes)
            for text in listed:
                head = f"for (int {text.point} = 0; {text.point} < {text.points}; ++{text.point})"
                stack.enter_context(self.out.unrolled(head))
            for text in listed:
                if text.axis.name in symbols:
                    self.declare_point(text)
            yield

    def declare_point(self, text: AxisText) -> None:
        """Declare the coordinate of the current point."""
        self.out.line(f"const {self.index_type} {text.axis.name} = {text.start} + {text.offset};")

    def printed_symbols(self, expressions: Iterable[Expression]) -> frozenset[str]:
        """Return the symbols that the text of expressions will hold."""
        found: set[str] = set()

        def visit(node: Expression) -> None:
            if self.leaf(node) is not None:
                return
            if isinstance(node, Sym):
                found.add(node.name)
            for child in node.children:
                visit(child)

        for expression in expressions:
            visit(expression)
        return frozenset(found)

    def in_range(self, axes: Iterable[AxisText]) -> list[str]:
        """Return the tests that coordinates of axes lie below their ends."""
        if self.is_inner:
            return []
        return [f"{text.axis.name} < {self.show(text.axis.upper, 8)}" for text in axes]


def tile_places(tile: StagedTile, load: Load) -> list[Expression]:
    """Return where in a tile a load finds its element, a dimension each, over `offset_symbol`s."""
    counts = dict(tile.counts)
    own = footprint(load.index, counts)
    assert own is not None
    places = []
    for position, dimension in enumerate(own.dimensions):
        low = tile.footprint.dimensions[position].offset
        origins: dict[str, Expression] = {
            name: constant(0) if counts[name] == 1 else Sym(offset_symbol(name)) for name in dimension.symbols
        }
        places.append(add(dimension.coordinate(origins), constant(-low)))
    return places


def axis_texts(algorithm: Algorithm, schedule: Schedule, context: Context) -> dict[str, AxisText]:
    """Name what belongs to each axis."""
    found: dict[str, AxisText] = {}
    for axis in algorithm.axes:
        plan = schedule.axis(axis.name)
        title = capital(axis.name)
        fresh = context.names.fresh
        found[axis.name] = AxisText(
            axis=axis,
            plan=plan,
            start=fresh(f"{axis.name}_start") if plan.tile > 1 else axis.name,
            thread=fresh(f"{axis.name}_thread") if plan.threads > 1 else "0",
            point=fresh(f"{axis.name}_i") if plan.points > 1 else "0",
            tile=context.constant(f"k{title}Tile", plan.tile) if plan.tile > 1 else "1",
            threads=context.constant(f"k{title}Threads", plan.threads) if plan.threads > 1 else "1",
            points=context.constant(f"k{title}Points", plan.points) if plan.points > 1 else "1",
        )
    return found
