"""How far accesses reach, and the test of a launcher that arrays lie apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Load, Sym, walk
from kernelskill.algorithm.extents import apart_test, extent_of
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import Algorithm, IllegalMove
from tests.unit.algorithm.lifting_samples import body

SUM = "float s = 0.0f; for (int j = 0; j < {end}; ++j) s += a[{index}]; c[i] = s;"
KNOWN = {
    "a row": SUM.format(end="m", index="i * m + j"),
    "a column": SUM.format(end="m", index="j * n + i"),
    "a triangle": SUM.format(end="i + 1", index="i * n + j"),
    "backwards": SUM.format(end="m", index="i * m + m - 1 - j"),
    "every other one": SUM.format(end="m", index="2 * j + 1"),
    "a prefix": SUM.format(end="n", index="j"),
    "the same for all": "c[i] = a[0] + b[i];",
    "neighbours": "c[i] = a[i] + a[i + 1] + a[i + 2];",
    "two strides": "c[2 * i] = a[3 * i]; c[2 * i + 1] = a[3 * i + 2];",
}
UNKNOWN = {
    "read from memory": ("c[i] = a[(int)b[i]];", "it is not known how far"),
    "a remainder": ("c[i] = a[i % m];", "it is not known how far"),
    "before the first": ("c[i] = i > 0 ? a[i - 1] : 0.0f;", "before its first element"),
    "from a parameter on": ("c[i] = a[i - m];", "before its first element"),
}


def values_of(expression: Expression, env: Mapping[str, int], ranges: integers.Ranges) -> Iterator[int]:
    """Yield an index for every value of the range variables in it, by counting."""
    names = [name for name in ranges if expression.depends_on(name)]
    # The bounds of inner loops name outer variables: those have to be counted too.
    names = [n for n in ranges if n in names or any(b.depends_on(n) for m in names for b in ranges[m])]

    def count(left: list[str], known: dict[str, int]) -> Iterator[int]:
        if not left:
            yield number(expression, known)
            return
        ready = next(n for n in left if not any(b.depends_on(*left) for b in ranges[n]))
        low, high = (number(bound, known) for bound in ranges[ready])
        for value in range(low, high):
            yield from count([n for n in left if n != ready], {**known, ready: value})

    yield from count(names, dict(env))


def number(expression: Expression, env: Mapping[str, int]) -> int:
    total = 0
    for monomial, factor in integers.terms_of(expression).items():
        for atom in monomial:
            assert isinstance(atom, Sym)
            factor *= env[atom.name]
        total += factor
    return total


def reached(algorithm: Algorithm, buffer: str, env: Mapping[str, int]) -> set[int]:
    indices = [store.index for store in algorithm.stores if store.buffer == buffer]
    for store in algorithm.stores:
        nodes = (node for expression in store.expressions for node in walk(expression))
        indices += [node.index for node in nodes if isinstance(node, Load) and node.buffer == buffer]
    return {value for index in indices for value in values_of(index, env, algorithm.ranges)}


@pytest.mark.parametrize("name", KNOWN)
def test_the_farthest_element_is_the_one_that_counting_finds(name: str) -> None:
    algorithm = body(KNOWN[name])
    for n, m in product((1, 2, 5), (1, 3, 4)):
        env = {"n": n, "m": m}
        for buffer in ("a", "c"):
            found = max(number(end, env) for end in extent_of(algorithm, buffer).ends)
            assert found == max(reached(algorithm, buffer, env)) + 1, (buffer, env)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_refused(name: str) -> None:
    statements, reason = UNKNOWN[name]
    with pytest.raises(IllegalMove) as refused:
        extent_of(body(statements), "a")
    assert reason in refused.value.reason


def test_a_stride_that_may_be_negative_is_looked_at() -> None:
    test = apart_test(
        body("c[i * m] = a[i];"), [("c", "a")], {"a": "x", "c": "p + 1", "n": "n", "m": "inc"}, Names(())
    )
    assert "inc >= 0" in "\n".join(test.lines)
    assert "reinterpret_cast<size_t>(p + 1)" in "\n".join(test.lines)


@given(
    name=st.sampled_from(sorted(KNOWN)),
    n=st.integers(1, 6),
    m=st.integers(1, 6),
    distance=st.integers(-200, 200),
)
def test_arrays_are_apart_exactly_where_no_element_is_shared(
    name: str, n: int, m: int, distance: int
) -> None:
    algorithm = body(KNOWN[name])
    arguments = {each: each for each in ("a", "b", "c", "n", "m")}
    test = apart_test(algorithm, [("c", "a")], arguments, Names(arguments))
    env = {"a": 4096, "c": 4096 + 4 * distance, "n": n, "m": m}
    mine = {env["c"] + 4 * index for index in reached(algorithm, "c", env)}
    theirs = {env["a"] + 4 * index for index in reached(algorithm, "a", env)}
    apart = decided(test.lines, test.name, env)
    # Between the first element of an array and its last, everything counts as accessed.
    spans = min(env["c"], *mine), max(mine) + 4, min(env["a"], *theirs), max(theirs) + 4
    assert apart == (spans[1] <= spans[2] or spans[3] <= spans[0])
    assert not apart or not mine & theirs


def decided(lines: tuple[str, ...], name: str, env: dict[str, int]) -> bool:
    """Evaluate the statements as C++ would, in numbers large enough not to wrap."""
    known: dict[str, object] = dict(env)
    for line in lines:
        text = re.sub(r"reinterpret_cast<size_t>\((\w+)\)", r"\1", line).replace("sizeof(float)", "4")
        text = text.replace("&&", " and ").replace("||", " or ").replace("\n", " ")
        target, _, value = text.removesuffix(";").partition(" = ")
        known[target.split()[-1]] = eval(value, {}, known)
    return bool(known[name])
