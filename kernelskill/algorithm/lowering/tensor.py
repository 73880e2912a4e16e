"""Products of matrices on tensor cores, through the warp matrix functions of CUDA."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm.expression import Binary, Cast, Expression, Load, Reduce
from kernelskill.algorithm.lowering.context import AxisText, Context, StagedTile
from kernelskill.algorithm.lowering.hoisting import hoistable
from kernelskill.algorithm.lowering.lanes import has_start
from kernelskill.algorithm.lowering.tile_loop import TileLoop
from kernelskill.algorithm.lowering.values import print_values
from kernelskill.algorithm.model import Algorithm, IllegalMove, Store
from kernelskill.algorithm.types import cuda_name

SIDE = 16
"""Rows, columns and steps of one product of a warp."""
_KINDS = ("half", "bfloat16")


@dataclass(frozen=True)
class Product:
    """A sum of products of two matrices, and the store that uses it."""

    store: Store
    reduction: Reduce
    left: Load
    right: Load
    row: str
    """Axis along which only the left operand moves."""
    col: str


def find_product(algorithm: Algorithm) -> Product:
    """Return the one product of matrices that a kernel computes.

    Raises:
        IllegalMove: It computes something else, or operands or sums have other types.
    """
    if len(algorithm.stores) != 1 or algorithm.stores[0].loops or algorithm.stores[0].mode != "=":
        raise IllegalMove("the kernel does more than one plain store")
    store = algorithm.stores[0]
    found = list(dict.fromkeys(r for e in (store.value, *store.guard) for r in hoistable(e)))
    if len(found) != 1 or not isinstance(found[0], Reduce):
        raise IllegalMove("the kernel is not one sum of products")
    reduction = found[0]
    body = reduction.body
    if reduction.op != "+" or reduction.kind != "float" or len(reduction.loops) != 1:
        raise IllegalMove("the sum is not one of floats over one loop")
    if not isinstance(body, Binary) or body.op != "*":
        raise IllegalMove("what is summed is not a product of two operands")
    left, right = _operand(body.left), _operand(body.right)
    for first, second in ((left, right), (right, left)):
        rows = [a.name for a in algorithm.axes if first.depends_on(a.name) and not second.depends_on(a.name)]
        cols = [a.name for a in algorithm.axes if second.depends_on(a.name) and not first.depends_on(a.name)]
        if rows and cols and _comes_first(algorithm, rows[-1], cols[-1]):
            return Product(store, reduction, first, second, rows[-1], cols[-1])
    raise IllegalMove("the operands do not span rows and columns")


def _comes_first(algorithm: Algorithm, row: str, col: str) -> bool:
    names = [axis.name for axis in algorithm.axes]
    return names.index(row) < names.index(col)


def _operand(node: Expression) -> Load:
    inner = node.operand if isinstance(node, Cast) and node.kind == "float" else node
    if isinstance(inner, Load) and inner.kind in _KINDS:
        return inner
    raise IllegalMove("operands are not half or bfloat16 elements taken as floats")


@dataclass(frozen=True)
class Operand:
    """One side of a product."""

    load: Load
    use: str
    """`matrix_a` or `matrix_b`."""
    axis: AxisText
    """The axis along which it moves beside the sum."""


class TensorBody:
    """Writes the body of a kernel whose warps multiply fragments."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._product = find_product(context.algorithm)
        product = self._product
        if product.left.kind != product.right.kind:
            raise IllegalMove("the operands have two types")
        self._row, self._col = context.axes[product.row], context.axes[product.col]
        self._loop = product.reduction.loops[0]
        self._sum = context.names.fresh(dict(context.algorithm.names).get(product.reduction, "sum"))
        self.left = Operand(product.left, "matrix_a", self._row)
        self.right = Operand(product.right, "matrix_b", self._col)

    def write(self) -> None:
        """Write accumulators, the loop over tiles and the stores."""
        context = self._context
        depth_value = context.schedule.loop(self._loop.name).depth
        for text in (self._row, self._col):
            if text.plan.points % SIDE or depth_value % SIDE:
                raise IllegalMove(f"tiles are not multiples of {SIDE}")
        rows, cols = self._row.plan.points // SIDE, self._col.plan.points // SIDE
        side = f"{SIDE}, {SIDE}, {SIDE}"
        kind = f"nvcuda::wmma::fragment<nvcuda::wmma::accumulator, {side}, float>"
        i, j = context.local("i"), context.local("j")
        context.out.line(f"{kind} {self._sum}[{rows}][{cols}];")
        with (
            context.out.unrolled(f"for (int {i} = 0; {i} < {rows}; ++{i})"),
            context.out.unrolled(f"for (int {j} = 0; {j} < {cols}; ++{j})"),
        ):
            context.out.line(f"nvcuda::wmma::fill_fragment({self._sum}[{i}][{j}], 0.0f);")
        depth = context.constant("kDepth", depth_value)
        start = context.names.fresh(f"{self._loop.name}_start")
        tiles = [tile for tile in context.tiles if tile.loop == self._loop.name]
        tile_loop = TileLoop(context, self._loop, tiles, start, depth)
        if context.schedule.copy == "async" and depth_value // SIDE % 2 == 0:
            tile_loop.write_pipelined(_FragmentSteps(context, self, depth_value // SIDE, rows, cols))
        else:
            tile_loop.write(lambda: self._steps(depth, rows, cols))
        self._store(rows, cols)

    def _tile(self, load: Load) -> StagedTile:
        tile = next((tile for tile in self._context.tiles if load in tile.loads), None)
        if tile is None:
            raise IllegalMove(f"{load.buffer} is not staged")
        if len(tile.sizes) != 2:
            raise IllegalMove(f"the tile of {load.buffer} is not a matrix")
        return tile

    def _steps(self, depth: str, rows: int, cols: int) -> None:
        context = self._context
        step, i, j = context.names.fresh(f"{self._loop.name}_i"), context.local("i"), context.local("j")
        left, right = context.names.fresh("left"), context.names.fresh("right")
        with context.out.unrolled(f"for (int {step} = 0; {step} < {depth}; {step} += {SIDE})"):
            for name, operand, number, count in ((left, self.left, i, rows), (right, self.right, j, cols)):
                context.out.line(f"{self.fragment(operand)} {name}[{count}];")
                self.load_fragments(name, operand, step, count, number)
            self.multiply(left, right, rows, cols)

    def multiply(self, left: str, right: str, rows: int, cols: int) -> None:
        """Write the products of all fragments of two operands."""
        context = self._context
        i, j = context.local("i"), context.local("j")
        with (
            context.out.unrolled(f"for (int {i} = 0; {i} < {rows}; ++{i})"),
            context.out.unrolled(f"for (int {j} = 0; {j} < {cols}; ++{j})"),
        ):
            target = f"{self._sum}[{i}][{j}]"
            context.out.line(f"nvcuda::wmma::mma_sync({target}, {left}[{i}], {right}[{j}], {target});")

    def _is_along_loop(self, operand: Operand) -> bool:
        """Whether neighbours in the rows of the tile are neighbours along the sum."""
        tile = self._tile(operand.load)
        return self._loop.name in tile.footprint.dimensions[tile.order[-1]].symbols

    def fragment(self, operand: Operand) -> str:
        """Return the type of a fragment of an operand."""
        is_row_major = self._is_along_loop(operand) == (operand.use == "matrix_a")
        layout = "row_major" if is_row_major else "col_major"
        kind, side = cuda_name(operand.load.kind), f"{SIDE}, {SIDE}, {SIDE}"
        return f"nvcuda::wmma::fragment<nvcuda::wmma::{operand.use}, {side}, {kind}, nvcuda::wmma::{layout}>"

    def load_fragments(self, name: str, operand: Operand, step: str, count: int, number: str) -> None:
        """Write the loading of a warp's fragments of an operand, from the tile that is in use."""
        context, tile, axis = self._context, self._tile(operand.load), operand.axis
        place = f"{axis.thread} * {axis.points} + {number} * {SIDE}"
        places = f"[{place}][{step}]" if self._is_along_loop(operand) else f"[{step}][{place}]"
        buffer = f"[{context.tile_buffer}]" if context.tile_buffer else ""
        pitch = tile.sizes[tile.order[-1]] + tile.pad
        with context.out.unrolled(f"for (int {number} = 0; {number} < {count}; ++{number})"):
            source = f"&{tile.name}{buffer}{places}"
            context.out.line(f"nvcuda::wmma::load_matrix_sync({name}[{number}], {source}, {pitch});")

    def _store(self, rows: int, cols: int) -> None:
        """Write each product of a warp to shared memory, from where its lanes finish single elements."""
        context = self._context
        i, j, element = context.local("i"), context.local("j"), context.local("e")
        warps = context.schedule.threads // 32
        block = context.names.fresh("results")
        context.out.line(f"__shared__ __align__(128) float {block}[{warps}][{SIDE}][{SIDE}];")
        with (
            context.out.unrolled(f"for (int {i} = 0; {i} < {rows}; ++{i})"),
            context.out.unrolled(f"for (int {j} = 0; {j} < {cols}; ++{j})"),
        ):
            warp, lane = context.step_names["warp"], context.lane
            target = f"&{block}[{warp}][0][0], {self._sum}[{i}][{j}], {SIDE}"
            context.out.line(f"nvcuda::wmma::store_matrix_sync({target}, nvcuda::wmma::mem_row_major);")
            context.out.line("__syncwarp();")
            head = f"for (int {element} = {lane}; {element} < {SIDE * SIDE}; {element} += 32)"
            with context.out.unrolled(head):
                for text, number, within in (
                    (self._row, i, f"{element} / {SIDE}"),
                    (self._col, j, f"{element} % {SIDE}"),
                ):
                    place = f"{text.thread} * {text.points} + {number} * {SIDE} + {within}"
                    context.out.line(f"const {context.index_type} {text.axis.name} = {text.start} + {place};")
                tests = context.in_range((self._row, self._col))
                with context.out.block(f"if ({' && '.join(tests)})"):
                    self._element(f"{block}[{warp}][{element} / {SIDE}][{element} % {SIDE}]")
            context.out.line("__syncwarp();")

    def _element(self, text: str) -> None:
        context, store, reduction = self._context, self._product.store, self._product.reduction
        value = text
        if has_start(reduction):
            value = f"({context.show(reduction.initial, 9)} + {text})"
        context.values[reduction] = value
        printed = print_values(context, [store.value, *store.guard])
        context.out.lines(printed.declarations)
        line = f"{store.buffer}[{context.show(store.index)}] = {printed.texts[0]};"
        tests = " && ".join(f"({test})" for test in printed.texts[1:])
        context.out.line(f"if ({tests}) {line}" if tests else line)
        del context.values[reduction]


class _FragmentSteps:
    """Steps of sixteen along the sum, the fragments of the next one loaded while one is multiplied."""

    def __init__(self, context: Context, body: TensorBody, count: int, rows: int, cols: int) -> None:
        self.count = count
        self._context, self._body, self._rows, self._cols = context, body, rows, cols
        self._left, self._right, self._read = (
            context.names.fresh(name) for name in ("left", "right", "load_step")
        )

    def declare(self) -> None:
        """Declare the fragments of two steps and the function that loads one."""
        context, body = self._context, self._body
        into, tile, start = (context.names.fresh(name) for name in ("into", "tile", "start"))
        sides = ((self._left, body.left, self._rows), (self._right, body.right, self._cols))
        for name, operand, count in sides:
            context.out.line(f"{body.fragment(operand)} {name}[2][{count}];")
        with context.out.block(f"auto {self._read} = [&](int {into}, int {tile}, int {start})", "};"):
            context.tile_buffer = tile
            for name, operand, count in sides:
                body.load_fragments(f"{name}[{into}]", operand, start, count, context.local("i"))
            context.tile_buffer = ""

    def read(self, into: str, tile: str, step: str) -> None:
        """Load the fragments of a step."""
        start = "0" if step == "0" else f"{step} * {SIDE}"
        self._context.out.line(f"{self._read}({into}, {tile}, {start});")

    def compute(self, held: str) -> None:
        """Multiply the fragments of a step."""
        self._body.multiply(f"{self._left}[{held}]", f"{self._right}[{held}]", self._rows, self._cols)
