"""Values in halves of words: bounds hold, and the text computes both halves as if each were alone."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.algorithm.expression import Sym
from kernelskill.algorithm.halves.model import (
    Bits,
    Both,
    Chosen,
    Equal,
    Extreme,
    Flag,
    Half,
    Linear,
    Magnitude,
    Not,
    NotNegative,
    Shifted,
    Tap,
    Truth,
    number,
    require_halves,
    require_signed,
    total,
)
from kernelskill.algorithm.halves.sharing import Grid, Shared, share_sums
from kernelskill.algorithm.integers import add, constant
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.half_text import HalfText
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import IllegalMove

TAPS = [Tap("x", (constant(k),)) for k in range(4)]
MASK = 0xFFFFFFFF


class Word(int):
    """Unsigned arithmetic of 32 bits."""

    def __new__(cls, value: int) -> Word:
        return super().__new__(cls, value & MASK)

    def __invert__(self) -> Word:
        return Word(~int(self))

    def __neg__(self) -> Word:
        return Word(-int(self))


for _name in ("add", "sub", "mul", "and", "or", "xor", "rshift", "radd", "rsub", "rmul", "rand"):

    def _operation(self: int, other: int, name: str = f"__{_name}__") -> Word:
        return Word(getattr(int, name)(int(self), int(other)))

    setattr(Word, f"__{_name}__", _operation)


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "max": max, "min": min, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


def halves_of(word: int) -> tuple[int, int]:
    return int(word) & 0xFFFF, int(word) >> 16 & 0xFFFF


def paired(function: Any, *words: int) -> Word:
    low, high = (function(*each) for each in zip(*map(halves_of, words), strict=True))
    return Word((low & 0xFFFF) | (high & 0xFFFF) << 16)


FUNCTIONS = {
    "__vmaxu2": lambda a, b: paired(max, a, b),
    "__vminu2": lambda a, b: paired(min, a, b),
    "__viaddmax_u16x2": lambda a, b, c: paired(lambda x, y, z: max(x + y & 0xFFFF, z), a, b, c),
    "__viaddmin_u16x2": lambda a, b, c: paired(lambda x, y, z: min(x + y & 0xFFFF, z), a, b, c),
}


def evaluated(value: Half, bytes_of: tuple[list[int], list[int]]) -> tuple[int, int]:
    """Return what the text of a value computes of the bytes of two points."""
    names = Names(["x"])
    text = HalfText(cast(Context, SimpleNamespace(names=names)), None)
    word = text.word(value, value.bias)
    lines = [*text.taken(), f"const unsigned result = {word};"]
    scope: dict[str, Any] = {**FUNCTIONS, "x": [Word(a | b << 16) for a, b in zip(*bytes_of, strict=True)]}
    for line in lines:
        statement = line.removeprefix("const unsigned ").removesuffix(";")
        name, _, right = statement.partition(" = ")
        scope[name] = eval(re.sub(r"(0x[0-9a-f]+)u", r"Word(\1)", right), {"Word": Word}, scope)
    low, high = halves_of(scope["result"])
    return low - value.bias, high - value.bias


def meant(value: Half | Flag, x: list[int]) -> int:
    """Return a value of one point."""
    sides = [meant(getattr(value, name), x) for name in ("left", "right") if hasattr(value, name)]
    match value:
        case Tap():
            return x[TAPS.index(value)]
        case Linear():
            return value.number + sum(factor * meant(term, x) for term, factor in value.terms)
        case Chosen():
            return meant(value.first if meant(value.flag, x) else value.second, x)
        case Extreme() | Bits() | Both():
            return OPERATIONS[value.op](*sides)
        case Equal():
            return int(sides[0] == sides[1])
        case Truth() | Not():
            return meant(value.flag, x) ^ isinstance(value, Not)
    inner = meant(value.value, x) if isinstance(value, Magnitude | Shifted | NotNegative) else 0
    if isinstance(value, NotNegative):
        return int(inner >= 0)
    return inner >> value.count if isinstance(value, Shifted) else abs(inner)


def fits(value: Half, *, signed: bool = False, positive: bool = False) -> bool:
    try:
        (require_signed if signed else require_halves)(value)
    except IllegalMove:
        return False
    return value.low >= 0 or not positive


def flags(values: st.SearchStrategy[Half]) -> st.SearchStrategy[Flag]:
    simple = values.filter(lambda v: fits(v, signed=True)).map(NotNegative)
    small = values.filter(lambda v: fits(v, signed=True, positive=True))
    equal = st.builds(Equal, small, small)
    one = st.one_of(simple, equal)
    return st.one_of(one, one.map(Not), st.builds(Both, st.sampled_from(["&", "|"]), one, one))


def grown(values: st.SearchStrategy[Half]) -> st.SearchStrategy[Half]:
    term = st.tuples(values, st.integers(-9, 9))
    signed = values.filter(lambda v: fits(v, signed=True) and v.low > -32768)
    positive = values.filter(lambda v: v.low >= 0)
    found = st.one_of(
        st.builds(total, st.lists(term, min_size=1, max_size=4), st.integers(-300, 300)),
        st.builds(Extreme, st.sampled_from(["max", "min"]), signed, signed),
        st.builds(Extreme, st.sampled_from(["max", "min"]), positive, positive),
        signed.map(Magnitude),
        st.builds(Bits, st.sampled_from("&|^"), positive, positive),
        st.builds(Shifted, positive, st.integers(1, 15)),
        flags(values).map(Truth),
        st.builds(Chosen, flags(values), signed, signed),
        st.builds(Chosen, flags(values), positive, positive),
    )
    return found.filter(fits)


VALUES = st.recursive(
    st.one_of(st.sampled_from(TAPS), st.integers(0, 300).map(number)).map(lambda v: cast(Half, v)),
    grown,
    max_leaves=8,
)
BYTES = st.lists(st.integers(0, 255), min_size=4, max_size=4)


@given(VALUES, BYTES, BYTES)
def test_both_halves_are_what_each_would_be_alone(value: Half, low: list[int], high: list[int]) -> None:
    wanted = meant(value, low), meant(value, high)
    assert all(value.low <= each <= value.high for each in wanted)
    assert evaluated(value, (low, high)) == wanted


@pytest.mark.parametrize("ends", [(0, 0), (0, 255), (255, 0), (255, 255)])
def test_values_at_their_bounds_do_not_meet(ends: tuple[int, int]) -> None:
    difference = total([(TAPS[0], 128), (TAPS[1], -128)])
    assert (difference.low, difference.high) == (-32640, 32640)
    for value in (difference, Magnitude(difference), total([(TAPS[0], 257)]), NotNegative(difference)):
        half = Truth(value) if isinstance(value, Flag) else value
        x = [ends[0], ends[1], 0, 0], [ends[1], ends[0], 0, 0]
        assert evaluated(half, x) == (meant(half, x[0]), meant(half, x[1]))


def window(row: int, column: int) -> Tap:
    return Tap("w", (add(Sym("i"), constant(row)), add(Sym("j"), constant(column))))


def test_what_a_row_or_a_column_has_in_common_is_found() -> None:
    grid = Grid(("i", "j"), (4, 8))
    box = tuple((window(row, column), 1) for row in range(3) for column in range(3))
    ((_, parts),) = share_sums([box], grid).items()
    assert len(parts) == 3
    assert {factor for _, factor in parts} == {1}
    patterns = {term.pattern for term, _ in parts if isinstance(term, Shared)}
    assert [pattern.parts for pattern in patterns] == [((0, 1), (1, 1), (2, 1))]
    weighted = tuple(
        (window(r, c), a * b) for r, a in enumerate((1, 2, 1)) for c, b in enumerate((-1, 0, 1)) if b
    )
    ((_, parts),) = share_sums([weighted], grid).items()
    assert sorted(factor for _, factor in parts) == [-1, 1]
    # Nothing in common: two elements, or a window that moves otherwise.
    assert share_sums([box[:2]], grid) == {}
    assert share_sums([tuple((Tap("w", (Sym("i"), constant(c))), 1) for c in range(3))], grid) == {}
