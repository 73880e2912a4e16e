"""Wide accesses: neighbouring elements that one load or store moves, and what must hold for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import Expression, Fold, Load, Loop, Reduce, Sym
from kernelskill.algorithm.integers import (
    add,
    coefficient,
    constant,
    multiply,
    product,
    subtract,
    terms_of,
    value_of,
)
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.staging import known_at_launch, note_divisible
from kernelskill.algorithm.lowering.text import pack_alignment
from kernelskill.algorithm.model import Store
from kernelskill.algorithm.types import cuda_name, size_of

_MOST_BYTES = 64
"""Bytes of one pack: four accesses of 16."""


@dataclass(frozen=True)
class Run:
    """A symbol that takes `width` neighbouring values together."""

    name: str
    lower: Expression
    width: int


@dataclass(frozen=True)
class PackKey:
    """Neighbouring elements that belong to one run."""

    buffer: str
    kind: str
    step: int
    """Elements from one value of the run's symbol to the next."""
    base: Expression
    """Index of the first element where the run's symbol is zero."""


Place = tuple[PackKey, int]
"""A pack and the offset of an element within one step."""


@dataclass
class Packs:
    """Which wide access serves each store and load of a run."""

    run: Run
    written: dict[Store, Place] = field(default_factory=dict)
    read: dict[Load, Place] = field(default_factory=dict)

    @property
    def written_keys(self) -> tuple[PackKey, ...]:
        """The packs that are written."""
        return tuple(dict.fromkeys(key for key, _ in self.written.values()))

    @property
    def read_keys(self) -> tuple[PackKey, ...]:
        """The packs that are read."""
        return tuple(dict.fromkeys(key for key, _ in self.read.values()))

    def note_alignment(self, context: Context) -> None:
        """Note what the launcher must test before these accesses may be used."""
        for key in (*self.read_keys, *self.written_keys):
            size = size_of(key.kind)
            alignment = pack_alignment(key.step * self.run.width * size)
            context.aligned[key.buffer] = max(context.aligned.get(key.buffer, 0), alignment)
            begin = multiply(constant(key.step), self.run.lower)
            for monomial, factor in (*terms_of(key.base).items(), *terms_of(begin).items()):
                if monomial:
                    note_divisible(context, product([constant(factor), *monomial]), alignment // size)

    def type_of(self, context: Context, key: PackKey) -> str:
        """Return the type of a pack."""
        return f"{context.pack}<{cuda_name(key.kind)}, {key.step * self.run.width}>"

    def place_of(self, context: Context, key: PackKey, first: str) -> str:
        """Return the first element of a pack where the run starts at a value."""
        index = add(key.base, multiply(constant(key.step), Sym(first)))
        return f"{key.buffer}[{context.show(index)}]"

    @contextmanager
    def reading(self, context: Context, first: str) -> Iterator[None]:
        """Load the packs; inside, loads of the run's steps are elements of them."""
        before = dict(context.values)
        j = context.local("j")
        names: dict[PackKey, str] = {}
        for key in self.read_keys:
            names[key] = context.names.fresh(f"{key.buffer}_in")
            pack = self.type_of(context, key)
            place = self.place_of(context, key, first)
            context.out.line(f"const {pack} {names[key]} = *reinterpret_cast<const {pack}*>(&{place});")
        for load, (key, offset) in self.read.items():
            context.values[load] = f"{names[key]}.at[{element_text(j, key.step, offset)}]"
        yield
        context.values = before


def element_text(j: str, step: int, offset: int) -> str:
    """Return the subscript of an element of a pack at step j."""
    scaled = f"{step} * {j}" if step > 1 else j
    return f"{scaled} + {offset}" if offset else scaled


def packs_of_stores(context: Context, stores: Sequence[Store], run: Run) -> Packs | None:
    """Return the packs of stores along a run; None if one of the stores cannot be wide."""
    if any(store.mode != "=" or any(g.depends_on(run.name) for g in store.guard) for store in stores):
        return None
    packs = Packs(run)
    for store in stores:
        place = place_in_pack(context, store.buffer, store.kind, store.index, run)
        if place is None:
            return None
        packs.written[store] = place
    for key in packs.written_keys:
        if {offset for other, offset in packs.written.values() if other == key} != set(range(key.step)):
            return None
    packs.read = packs_of_loads(context, [store.value for store in stores], run)
    return packs


def packs_of_loads(context: Context, values: Iterable[Expression], run: Run) -> dict[Load, Place]:
    """Return the packs of the loads that are made in any case when values are computed."""
    found: dict[Load, Place] = {}
    for value in values:
        certain = certain_loads(value)
        for load in _direct_loads(context, value):
            place = place_in_pack(context, load.buffer, load.kind, load.index, run)
            if load in certain and place is not None:
                found[load] = place
    return found


def _direct_loads(context: Context, value: Expression) -> list[Load]:
    """Return the loads that are printed when a value is: not those inside what is computed already."""
    found: dict[Load, None] = {}

    def visit(node: Expression) -> None:
        if context.leaf(node) is not None or isinstance(node, Reduce | Fold):
            return
        if isinstance(node, Load):
            found[node] = None
        for child in node.children:
            visit(child)

    visit(value)
    return list(found)


def place_in_pack(context: Context, buffer: str, kind: str, index: Expression, run: Run) -> Place | None:
    """Return the wide access that holds an element, and its offset there; None where there is none."""
    factor = coefficient(index, run.name)
    step = value_of(factor) if factor is not None else None
    if step is None or not 1 <= step * run.width * size_of(kind) <= _MOST_BYTES:
        return None
    rest = subtract(index, multiply(constant(step), Sym(run.name)))
    begin = multiply(constant(step), run.lower)
    if rest.depends_on(run.name):
        return None
    known = terms_of(rest).get((), 0)
    offset = known % step
    base = add(rest, constant(-offset))
    elements = max(1, pack_alignment(step * run.width * size_of(kind)) // size_of(kind))
    if (known - offset) % elements or terms_of(begin).get((), 0) % elements:
        return None
    if not (_can_divide(context, base, elements) and _can_divide(context, begin, elements)):
        return None
    return PackKey(buffer, kind, step, base), offset


def _can_divide(context: Context, base: Expression, elements: int) -> bool:
    """Whether a test of sizes can tell that a base is aligned: some factor of each term is a parameter."""
    for monomial, factor in terms_of(base).items():
        if monomial and factor % elements:
            known = known_at_launch(context, monomial)
            if not known or not all(isinstance(atom, Sym) for atom in known):
                return False
    return True


@dataclass(frozen=True)
class WideSteps:
    """A loop whose lanes take neighbouring steps together."""

    context: Context
    loop: Loop
    width: int
    first: str

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Write what is done with a whole group of steps."""
        context = self.context
        end = context.show(self.loop.upper, 8)
        tests = [context.aligned_flag, *([context.active] if context.active else [])]
        with context.out.block(f"if ({' && '.join([*tests, f'{self.first} + {self.width} <= {end}'])})"):
            yield

    @contextmanager
    def single(self) -> Iterator[None]:
        """Write what is done with one step of a group that is not whole or not aligned."""
        context, name = self.context, self.loop.name
        end = context.show(self.loop.upper, 8)
        stop = f"{name} < {self.first} + {self.width} && {name} < {end}"
        head = f"for ({context.index_type} {name} = {self.first}; {stop}; ++{name})"
        with context.out.block("else"), context.out.block(head):
            yield


@contextmanager
def wide_steps(context: Context, loop: Loop, width: int) -> Iterator[WideSteps]:
    """Write the head of a loop over groups of steps, shared by lanes and by blocks where they split it."""
    first = context.names.fresh(f"{loop.name}_first")
    low, high = context.show(loop.lower), context.show(loop.upper, 8)
    start = f"{context.lane_start} * {width}"
    begin = start if low == "0" else f"{low} + {start}"
    head = (
        f"for ({context.index_type} {first} = {begin}; {first} < {high}; "
        f"{first} += {context.lane_stride} * {width})"
    )
    with context.out.block(head):
        yield WideSteps(context, loop, width, first)
