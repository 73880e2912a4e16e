"""Launch sizes traced from Python and written as C."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.tasks.formula import c_text, evaluate
from kernelskill.tasks.symbolic import trace_launch


def traced(function, arguments, parameters=None, names=None):
    names = {} if names is None else names
    return trace_launch(function, list(arguments) if parameters is None else parameters, arguments, names)


@pytest.mark.parametrize(
    ("grid", "text"),
    [
        (lambda n, m: (n + 255) // 256, "(n + 255) / 256"),
        (lambda n, m: math.ceil(n / 256), "(n + 255) / 256"),
        (lambda n, m: -(-n // 256), "(n + 255) / 256"),
        (lambda n, m: n * m, "(long long)n * m"),
        (lambda n, m: 2 * (n - m), "2 * (n - m)"),
        (lambda n, m: n - (m - 1), "n - (m - 1)"),
        (lambda n, m: n % m + (n >> 2), "n % m + (n >> 2)"),
        (lambda n, m: math.floor(n / m), "n / m"),
        (lambda n, m: divmod(n, m)[0], "n / m"),
        (lambda n, m: 7, "7"),
    ],
)
def test_arithmetic_becomes_c(grid, text):
    def launch(n, m):
        return dict(grid=grid(n, m), block=256)

    nodes = traced(launch, {"n": 1000, "m": 7})
    assert nodes is not None
    assert c_text(nodes[0]) == text
    for n, m in ((1000, 7), (1, 1), (12345, 100)):
        assert evaluate(nodes[0], {"n": n, "m": m}) == launch(n, m)["grid"]


def test_min_and_max_become_choices():
    names = {}
    exec("def launch(n): return dict(grid=max(1, min(n, 65535)), block=[min([n, 256])])", names)
    nodes = traced(names["launch"], {"n": 10}, names=names)
    assert nodes is not None
    assert c_text(nodes[0]) == "(1 > (n < 65535 ? n : 65535) ? 1 : (n < 65535 ? n : 65535))"
    assert [evaluate(nodes[0], {"n": n}) for n in (0, 5, 100000)] == [1, 5, 65535]
    assert "min" not in names


@pytest.mark.parametrize(
    "launch",
    [
        lambda n: dict(grid=n if n > 5 else 1, block=1),
        lambda n: dict(grid=1 << n.bit_length(), block=1),
        lambda n: dict(grid=int(n), block=1),
        lambda n: dict(grid=n / 2, block=1),
        lambda n: dict(grid={1: 2}[n], block=1),
        lambda n: dict(grid=n**2, block=1),
        lambda n: dict(block=1),
        lambda n: 5,
    ],
)
def test_what_is_no_formula_is_not_traced(launch):
    assert traced(launch, {"n": 1}) is None


def test_an_argument_that_the_kernel_does_not_take_makes_no_formula():
    assert traced(lambda n, m: dict(grid=n, block=m), {"n": 1, "m": 2}, parameters=["n"]) is None
    assert traced(lambda n, m: dict(grid=n, block=1), {"n": 1, "m": 2}, parameters=["n"]) is not None


def test_large_numbers_are_written_as_such():
    nodes = traced(lambda n: dict(grid=(n + (1 << 40)) // (1 << 40), block=1), {"n": 1})
    assert nodes is not None
    assert c_text(nodes[0]) == "(n + 1099511627776LL) / 1099511627776LL"


@st.composite
def trees(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["n", "m", "3", "16", "255"]))
    operator = draw(st.sampled_from(["+", "-", "*", "//", "%"]))
    left = draw(trees(depth=depth - 1))
    right = (
        draw(st.sampled_from(["3", "16", "m"])) if operator in ("//", "%") else draw(trees(depth=depth - 1))
    )
    return f"({left} {operator} {right})"


@given(trees(), st.integers(1, 10000), st.integers(1, 300))
def test_text_has_the_value_of_the_tree(tree, n, m):
    nodes = traced(lambda n, m: dict(grid=eval(tree, {"n": n, "m": m}), block=1), {"n": n, "m": m})
    assert nodes is not None
    text = c_text(nodes[0]).replace("(long long)", "").replace("LL", "").replace("/", "//")
    # Python and C agree wherever nothing is negative; where it is, the gate compares the values.
    wanted = eval(tree, {"n": n, "m": m})
    if evaluate(nodes[0], {"n": n, "m": m}) == wanted:
        assert eval(text, {"n": n, "m": m}) == wanted
