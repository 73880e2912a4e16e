"""Plain CUDA text of an algorithm, as a person writes it who does not think of speed."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.algorithm.expression import (
    Expression,
    Fold,
    Load,
    Loop,
    Poly,
    Reduce,
    Select,
    Sym,
    reductions,
    walk,
)
from kernelskill.algorithm.model import Algorithm, Store
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import cuda_name


@dataclass(frozen=True)
class Style:
    """How a person spells a kernel."""

    serial: int = 0
    """How many of the inner axes are loops in a thread."""
    flat: bool = False
    """One thread index, taken apart by / and %."""
    index: str = "int"
    """Type of thread indices."""
    early_return: bool = False
    in_memory: bool = False
    """Whether sums that are stored as they are grow in the output itself."""
    branches: bool = False
    """Whether a choice is an if with an assignment each way."""
    loop: str = "for"
    """`for`, `while` or `inclusive` (`<= last`)."""
    forward: bool = False
    """Whether an earlier store's value is read back from memory."""
    restrict: bool = False
    block: int = 128
    reads_first: bool = True
    """Whether all values are computed before the first store (forced where needed)."""


@dataclass
class _Block:
    """Lines of one nesting level, and what is already in a variable there."""

    lines: list[str]
    indent: str
    known: dict[Expression, str] = field(default_factory=dict)

    def put(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def inner(self) -> _Block:
        return _Block(self.lines, self.indent + "    ", dict(self.known))


_COMPOUND = {"+": "+=", "*": "*=", "&": "&=", "|": "|=", "^": "^="}
_ATOMIC = {"+": "Add", "max": "Max", "min": "Min", "&": "And", "|": "Or", "^": "Xor"}


class NaivePrinter:
    """Writes a kernel and its launcher `f`, whose parameters are the kernel's."""

    def __init__(self, algorithm: Algorithm, style: Style) -> None:
        self.algorithm, self.style = algorithm, style
        self._count = 0

    def text(self) -> str:
        """Return the whole file."""
        body = _Block([], "    ")
        self._indices(body)
        parameters = ", ".join(parameter.text for parameter in self.algorithm.parameters)
        kernel = (
            f"__global__ void {self.algorithm.kernel}({parameters})\n{{\n" + "\n".join(body.lines) + "\n}\n"
        )
        arguments = ", ".join(parameter.name for parameter in self.algorithm.parameters)
        grid, block = self._launch()
        launch = f"    {self.algorithm.kernel}<<<{grid}, {block}>>>({arguments});\n"
        head = "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <math.h>\n\n"
        return f'{head}{kernel}\nextern "C" void f({parameters})\n{{\n{launch}}}\n'

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    @property
    def _parallel(self) -> int:
        return max(len(self.algorithm.axes) - self.style.serial, 1)

    def _launch(self) -> tuple[str, str]:
        axes = self.algorithm.axes[: self._parallel]
        if self.style.flat or len(axes) == 1:
            size = " * ".join(show(axis.upper, context=11) for axis in axes)
            return f"({size} + {self.style.block - 1}) / {self.style.block}", str(self.style.block)
        threads = (16, 8) if len(axes) == 2 else (8, 4, 4)
        upper = [show(axis.upper, context=11) for axis in reversed(axes)]
        blocks = [f"({u} + {t - 1}) / {t}" for u, t in zip(upper, threads, strict=True)]
        return f"dim3({', '.join(blocks)})", f"dim3({', '.join(map(str, threads))})"

    @property
    def _needs_sign(self) -> bool:
        """Whether an axis takes part in anything but sums that index buffers."""
        names = tuple(axis.name for axis in self.algorithm.axes)
        return any(
            _is_signed(e, names, e == store.index)
            for store in self.algorithm.stores
            for e in store.expressions
        )

    def _indices(self, block: _Block) -> None:
        axes = self.algorithm.axes[: self._parallel]
        kind = "int" if self._needs_sign else self.style.index
        if self.style.flat and len(axes) > 1:
            size = " * ".join(show(axis.upper, context=11) for axis in axes)
            block.put(f"{kind} flat_id = blockIdx.x * blockDim.x + threadIdx.x;")
            inner = self._guarded(block, [f"flat_id < {size}"], [f"flat_id >= {size}"])
            rest = "flat_id"
            for axis in reversed(axes[1:]):
                extent = show(axis.upper, context=11)
                inner.put(f"{kind} {axis.name} = {rest} % {extent};")
                rest = f"{rest} / {extent}"
            inner.put(f"{kind} {axes[0].name} = {rest};")
        else:
            for axis, letter in zip(reversed(axes), "xyz", strict=False):
                block.put(f"{kind} {axis.name} = blockIdx.{letter} * blockDim.{letter} + threadIdx.{letter};")
            limits = [f"{axis.name} < {show(axis.upper)}" for axis in axes]
            inner = self._guarded(block, limits, [limit.replace(" < ", " >= ") for limit in limits])
        self._serial(inner, [axis.loop for axis in self.algorithm.axes[self._parallel :]])
        if inner is not block and not self.style.early_return:
            block.put("}")

    def _guarded(self, block: _Block, holds: list[str], fails: list[str]) -> _Block:
        if self.style.early_return:
            block.put(f"if ({' || '.join(fails)}) return;")
            return block
        block.put(f"if ({' && '.join(holds)}) {{")
        return block.inner()

    def _serial(self, block: _Block, loops: list[Loop]) -> None:
        if not loops:
            self._stores(block)
            return
        inner = self._open(block, loops[0])
        self._serial(inner, loops[1:])
        self._close(block, inner, loops[0])

    def _open(self, block: _Block, loop: Loop) -> _Block:
        lower, upper = self._shown(loop.lower, block), self._shown(loop.upper, block, 8)
        if self.style.loop == "while":
            block.put(f"int {loop.name} = {lower};")
            block.put(f"while ({loop.name} < {upper}) {{")
        elif self.style.loop == "inclusive":
            block.put(f"for (int {loop.name} = {lower}; {loop.name} <= {upper} - 1; {loop.name}++) {{")
        else:
            block.put(f"for (int {loop.name} = {lower}; {loop.name} < {upper}; ++{loop.name}) {{")
        return block.inner()

    def _close(self, block: _Block, inner: _Block, loop: Loop) -> None:
        if self.style.loop == "while":
            inner.put(f"{loop.name} += 1;")
        block.put("}")

    def _stores(self, block: _Block) -> None:
        stores = self.algorithm.stores
        first = self._must_read_first or self.style.reads_first
        if not first:
            for store in stores:
                self._store(store, block, None)
                if self._can_forward(store):
                    block.known[store.value] = f"{store.buffer}[{self._shown(store.index, block)}]"
            return
        values: list[str | None] = []
        for store in stores:
            if store.guard or store.loops or self._grows_in_memory(store):
                values.append(None)  # computed where it is stored
            else:
                values.append(self._named(store.value, block))
        for store, value in zip(stores, values, strict=True):
            self._store(store, block, value)

    def _can_forward(self, store: Store) -> bool:
        later = self.algorithm.stores[self.algorithm.stores.index(store) + 1 :]
        plain = (
            self.style.forward and not store.guard and store.mode == "=" and store.value.type == store.kind
        )
        return plain and all(other.buffer != store.buffer for other in later)

    @property
    def _must_read_first(self) -> bool:
        written: set[str] = set()
        for store in self.algorithm.stores:
            read = {node.buffer for e in store.expressions for node in walk(e) if isinstance(node, Load)}
            if read & written:
                return True
            written.add(store.buffer)
        return False

    def _grows_in_memory(self, store: Store) -> bool:
        value = store.value
        return (
            self.style.in_memory
            and isinstance(value, Reduce)
            and store.mode == "="
            and not store.guard
            and not store.loops
            and value.kind == store.kind
            and value.op in _COMPOUND
            and all(
                getattr(node, "buffer", "") != store.buffer for e in store.expressions for node in walk(e)
            )
            and not reductions(value.initial)
        )

    def _store(self, store: Store, block: _Block, value: str | None) -> None:
        if store.loops:
            for node in reductions(store.value):
                if not node.depends_on(*(loop.name for loop in store.loops)) and self._is_free(node):
                    self._prepare(node, block)
            opened = [block]
            for loop in store.loops:
                opened.append(self._open(opened[-1], loop))
            self._put_store(store, opened[-1], value)
            for outer, inside, loop in reversed(list(zip(opened, opened[1:], store.loops, strict=False))):
                self._close(outer, inside, loop)
        elif store.guard:
            conditions = " && ".join(show(condition, context=3) for condition in store.guard)
            block.put(f"if ({conditions}) {{")
            self._put_store(store, block.inner(), value)
            block.put("}")
        else:
            self._put_store(store, block, value)

    def _is_free(self, node: Expression) -> bool:
        """Whether a node depends on nothing but parameters and axes."""
        bound = {axis.name for axis in self.algorithm.axes} | {p.name for p in self.algorithm.parameters}
        return node.symbols <= bound

    def _put_store(self, store: Store, block: _Block, value: str | None) -> None:
        target = f"{store.buffer}[{self._shown(store.index, block)}]"
        if value is None and self._grows_in_memory(store):
            assert isinstance(store.value, Reduce)
            block.put(f"{target} = {self._shown(store.value.initial, block)};")
            self._accumulate(store.value, target, block)
            return
        text = value if value is not None else self._shown(store.value, block)
        if store.mode == "=":
            block.put(f"{target} = {text};")
        else:
            block.put(f"atomic{_ATOMIC[store.mode]}(&{target}, {text});")

    def _named(self, value: Expression, block: _Block) -> str:
        name = self._fresh("v")
        text = self._shown(value, block)
        block.put(f"{cuda_name(value.type)} {name} = {text};")
        block.known[value] = name
        return name

    def _shown(self, node: Expression, block: _Block, context: int = 0) -> str:
        """Return the text of an expression; loops that it needs go to the block first."""
        self._prepare(node, block)
        return show(node, lambda inner: block.known.get(inner), context)

    def _prepare(self, node: Expression, block: _Block) -> None:
        if node in block.known:
            return
        if isinstance(node, Reduce):
            name = self._fresh("acc")
            start = self._shown(node.initial, block)
            block.put(f"{cuda_name(node.kind)} {name} = {start};")
            self._accumulate(node, name, block)
            block.known[node] = name
        elif isinstance(node, Fold):
            self._fold(node, block)
        elif isinstance(node, Select) and self.style.branches:
            self._branch(node, block)
        else:
            for child in node.children:
                self._prepare(child, block)

    def _branch(self, node: Select, block: _Block) -> None:
        name = self._fresh("pick")
        condition = self._shown(node.condition, block)
        block.put(f"{cuda_name(node.type)} {name};")
        block.put(f"if ({condition}) {{")
        inner = block.inner()
        inner.put(f"{name} = {self._shown(node.first, inner)};")
        block.put("} else {")
        inner = block.inner()
        inner.put(f"{name} = {self._shown(node.second, inner)};")
        block.put("}")
        block.known[node] = name

    def _accumulate(self, node: Reduce, target: str, block: _Block) -> None:
        opened = [block]
        for loop in node.loops:
            opened.append(self._open(opened[-1], loop))
        inner = opened[-1]
        body = self._shown(node.body, inner)
        if node.op in _COMPOUND:
            inner.put(f"{target} {_COMPOUND[node.op]} {body};")
        elif node.op in ("fmax", "fmin"):
            inner.put(f"{target} = {node.op}{'f' if node.kind == 'float' else ''}({target}, {body});")
        else:
            sign = ">" if node.op == "max" else "<"
            name = self._named(node.body, inner)
            inner.put(f"if ({name} {sign} {target}) {target} = {name};")
        for outer, inside, loop in reversed(list(zip(opened, opened[1:], node.loops, strict=False))):
            self._close(outer, inside, loop)

    def _fold(self, node: Fold, block: _Block) -> None:
        """Write all states of a recurrence as variables under their own names."""
        for state, initial in zip(node.states, node.initials, strict=True):
            block.put(f"{cuda_name(state.kind)} {state.name} = {self._shown(initial, block)};")
        opened = [block]
        for loop in node.loops:
            opened.append(self._open(opened[-1], loop))
        inner = opened[-1]
        fresh = []
        for state, update in zip(node.states, node.updates, strict=True):
            name = self._fresh("next")
            inner.put(f"{cuda_name(state.kind)} {name} = {self._shown(update, inner)};")
            fresh.append(f"{state.name} = {name};")
        for line in fresh:
            inner.put(line)
        for outer, inside, loop in reversed(list(zip(opened, opened[1:], node.loops, strict=False))):
            self._close(outer, inside, loop)
        for index, state in enumerate(node.states):
            block.known[Fold(node.loops, node.states, node.initials, node.updates, index)] = state.name


def _is_signed(node: Expression, names: tuple[str, ...], is_index: bool) -> bool:
    """Whether an unsigned axis could change what an expression means."""
    if not node.depends_on(*names):
        return False
    if isinstance(node, Load):
        return _is_signed(node.index, names, True)
    if isinstance(node, Sym | Poly):
        negative = isinstance(node, Poly) and any(factor < 0 for _, factor in node.terms)
        atoms = [child for child in node.children if not isinstance(child, Sym)]
        return negative or not is_index or any(_is_signed(atom, names, True) for atom in atoms)
    return any(_is_signed(child, names, False) for child in node.children)


def naive_text(algorithm: Algorithm, style: Style | None = None) -> str:
    """Return the file of a plain kernel with its launcher `f`."""
    return NaivePrinter(algorithm, style or Style()).text()
