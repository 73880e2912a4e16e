"""The interpreter: arithmetic, order, choices and memory as C and CUDA have them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Cast,
    Expression,
    Fold,
    Load,
    Loop,
    Num,
    Reduce,
    Select,
    Sym,
    Unary,
)
from kernelskill.algorithm.interpret import InterpretError, evaluate, interpret
from kernelskill.algorithm.interpreting.values import fused
from kernelskill.algorithm.model import Algorithm, Axis, Parameter, Store

ZERO, ONE = integers.constant(0), integers.constant(1)
N, POINT, K = Sym("n"), Sym("i"), Sym("k")
FLOAT_ZERO = Num("0.0f", "float")


def pointer(name: str, kind: str) -> Parameter:
    return Parameter(f"{kind}* {name}", name, kind, True)


def algorithm(*stores: Store, axes: tuple[Axis, ...] | None = None, **buffers: str) -> Algorithm:
    pointers = tuple(pointer(name, kind) for name, kind in buffers.items())
    scalar = Parameter("int n", "n", "int", False)
    return Algorithm("kernel", (*pointers, scalar), axes or (Axis("i", ZERO, N),), stores)


def values(expression: Expression, **arrays: Any) -> np.ndarray:
    """Return an expression over `i` at every element of the arrays."""
    given = {name: np.atleast_1d(array) for name, array in arrays.items()}
    kinds = {np.dtype("f4"): "float", np.dtype("f2"): "half", np.dtype("f8"): "double", np.dtype("i4"): "int"}
    kinds |= {np.dtype("u4"): "unsigned", np.dtype("u1"): "unsigned char", np.dtype("i8"): "long long"}
    pointers = {name: kinds[array.dtype] for name, array in given.items()}
    count = max(len(array) for array in given.values())
    out = np.zeros(count, next(d for d, kind in kinds.items() if kind == expression.type))
    made = algorithm(Store("out", POINT, expression, kind=expression.type), out=expression.type, **pointers)
    return interpret(made, {"out": out, **given}, {"n": count})["out"]


def x(kind: str, name: str = "x") -> Load:
    return Load(name, POINT, kind)


def test_sums_of_floats_keep_their_precision_and_order() -> None:
    data = np.random.default_rng(0).standard_normal(1000).astype("f4")
    total = Reduce("+", (Loop("k", ZERO, N),), Load("x", K, "float"), FLOAT_ZERO, "float")
    made = algorithm(Store("out", ZERO, total), axes=(Axis("i", ZERO, ONE),), x="float", out="float")
    wanted = np.float32(0)
    for value in data:
        wanted = wanted + value
    result = interpret(made, {"x": data, "out": np.zeros(1, "f4")}, {"n": 1000})["out"]
    assert result[0] == wanted
    assert result[0] != data.astype("f8").sum()


def test_half_is_rounded_at_every_operation() -> None:
    sums = Binary("+", Binary("+", x("half"), x("half"), "half"), x("half"), "half")
    assert values(sums, x=np.array([1.001], "f2"))[0] == np.float16(np.float16(2.002) + np.float16(1.001))


def test_an_accumulator_is_narrower_than_its_values() -> None:
    body = Binary("*", Cast("double", Load("x", K, "float")), Num("0.1", "double"), "double")
    total = Reduce("+", (Loop("k", ZERO, N),), body, FLOAT_ZERO, "float")
    made = algorithm(Store("out", ZERO, total), axes=(Axis("i", ZERO, ONE),), x="float", out="float")
    data = np.array([1e8, 1.0, -1e8, 3.0], "f4")
    wanted = np.float32(0)
    for value in data:
        wanted = np.float32(np.float64(wanted) + np.float64(value) * 0.1)
    assert interpret(made, {"x": data, "out": np.zeros(1, "f4")}, {"n": 4})["out"][0] == wanted


@pytest.mark.parametrize(
    ("op", "a", "b", "wanted"),
    [
        ("/", -7, 2, -3),
        ("%", -7, 2, -1),
        ("/", 7, -2, -3),
        ("%", 7, -2, 1),
        ("<<", 3, 4, 48),
        (">>", -9, 1, -5),
    ],
)
def test_integers_divide_towards_zero(op: str, a: int, b: int, wanted: int) -> None:
    result = values(Binary(op, x("int"), x("int", "y"), "int"), x=np.array([a], "i4"), y=np.array([b], "i4"))
    assert result[0] == wanted


def test_unsigned_arithmetic_wraps() -> None:
    product = Binary("*", x("unsigned"), x("unsigned"), "unsigned")
    assert values(product, x=np.array([0x9E3779B9], "u4"))[0] == 0x9E3779B9**2 % 2**32
    below = Binary("-", x("unsigned"), Cast("unsigned", ONE), "unsigned")
    assert (
        values(Binary(">", below, Cast("unsigned", ZERO), "bool").left, x=np.array([0], "u4"))[0] == 2**32 - 1
    )


def test_mixed_signs_compare_as_unsigned() -> None:
    less = Cast("int", Binary("<", x("int"), x("unsigned", "y"), "bool"))
    assert values(less, x=np.array([-1, 1], "i4"), y=np.array([5, 5], "u4")).tolist() == [0, 1]


def test_casts_cut_and_saturate() -> None:
    given = np.array([1.9, -1.9, 3e9, -3e9, np.nan], "f4")
    assert values(Cast("int", x("float")), x=given).tolist() == [1, -1, 2**31 - 1, -(2**31), 0]
    assert values(Cast("float", x("int")), x=np.array([2**24 + 1], "i4"))[0] == np.float32(2**24)
    assert values(Cast("int", x("unsigned char")), x=np.array([200], "u1"))[0] == 200


def test_only_the_chosen_side_is_read() -> None:
    left = Load("x", integers.add(POINT, integers.constant(-1)), "float")
    edge = Select(integers.compared(">", POINT, ZERO), left, Num("7.0f", "float"))
    assert values(edge, x=np.array([1, 2, 3], "f4")).tolist() == [7, 1, 2]
    both = Binary(
        "&&", integers.compared(">", POINT, ZERO), Binary(">", left, Num("1.5f", "float"), "bool"), "bool"
    )
    assert values(Cast("int", both), x=np.array([1, 2, 3], "f4")).tolist() == [0, 0, 1]
    with pytest.raises(InterpretError, match=r"reads x\[-1\] of 3"):
        values(left, x=np.array([1, 2, 3], "f4"))


def test_guards_come_before_what_they_guard() -> None:
    inside = integers.compared("<", integers.add(POINT, ONE), N)
    right = Load("x", integers.add(POINT, ONE), "float")
    guard = (inside, Binary(">", right, FLOAT_ZERO, "bool"))
    made = algorithm(Store("out", POINT, right, guard=guard), x="float", out="float")
    result = interpret(made, {"x": np.array([1, -2, 3], "f4"), "out": np.zeros(3, "f4")}, {"n": 3})
    assert result["out"].tolist() == [0, 3, 0]


def test_ragged_loops_follow_offsets() -> None:
    first, after = Load("rows", POINT, "int"), Load("rows", integers.add(POINT, ONE), "int")
    total = Reduce("+", (Loop("k", first, after),), Load("x", K, "float"), FLOAT_ZERO, "float")
    made = algorithm(Store("out", POINT, total), x="float", rows="int", out="float")
    arrays = {"x": np.arange(6, dtype="f4"), "rows": np.array([0, 2, 2, 6], "i4"), "out": np.ones(3, "f4")}
    assert interpret(made, arrays, {"n": 3})["out"].tolist() == [1, 0, 14]


def test_inner_loops_may_depend_on_outer_ones() -> None:
    j = Sym("j")
    loops = (Loop("k", ZERO, N), Loop("j", ZERO, integers.add(K, ONE)))
    product = integers.add(integers.multiply(K, integers.constant(10)), j)
    last = Reduce("+", loops, Cast("float", product), FLOAT_ZERO, "float")
    made = algorithm(Store("out", ZERO, last), axes=(Axis("i", ZERO, ONE),), out="float")
    wanted = sum(10 * k + j for k in range(4) for j in range(k + 1))
    assert interpret(made, {"out": np.zeros(1, "f4")}, {"n": 4})["out"][0] == wanted


def test_maxima_differ_on_nan() -> None:
    data = np.array([1.0, np.nan, 0.5], "f4")
    results = []
    for op in ("fmax", "max"):
        loops = (Loop("k", ZERO, N),)
        best = Reduce(op, loops, Load("x", K, "float"), Load("x", ONE, "float"), "float")
        made = algorithm(Store("out", ZERO, best), axes=(Axis("i", ZERO, ONE),), x="float", out="float")
        results.append(interpret(made, {"x": data, "out": np.zeros(1, "f4")}, {"n": 3})["out"][0])
    assert results[0] == 1.0
    assert np.isnan(results[1])


@pytest.mark.parametrize("length", [5, 200])
@pytest.mark.parametrize("op", ["+", "*", "fmax", "fmin", "max", "min"])
def test_long_and_short_runs_agree_with_the_serial_loop(op: str, length: int) -> None:
    rng = np.random.default_rng(3)
    data = rng.standard_normal((7, length)).astype("f4")
    data[2, 3], data[4, 4] = np.nan, -0.0
    body = Load("x", integers.add(integers.multiply(POINT, N), K), "float")
    seven = integers.constant(7)
    start = Num("0.0f", "float")
    made = algorithm(
        Store("out", POINT, Reduce(op, (Loop("k", ZERO, N),), body, start, "float")),
        axes=(Axis("i", ZERO, seven),),
        x="float",
        out="float",
    )
    found = interpret(made, {"x": data, "out": np.zeros(7, "f4")}, {"n": length})["out"]
    steps = {
        "+": lambda a, b: a + b,
        "*": lambda a, b: a * b,
        "fmax": np.fmax,
        "fmin": np.fmin,
        "max": lambda a, b: b if b > a else a,
        "min": lambda a, b: b if b < a else a,
    }
    for row, value in zip(data, found, strict=True):
        wanted = np.float32(0)
        for element in row:
            wanted = np.float32(steps[op](wanted, element))
        np.testing.assert_array_equal(value, wanted)


def test_folds_carry_several_states() -> None:
    best, at = Sym("best", "float"), Sym("at", "int")
    element = Load("x", K, "float")
    better = Binary(">", element, best, "bool")
    fold = Fold(
        (Loop("k", ZERO, N),),
        (best, at),
        (Num("-INFINITY", "float"), integers.constant(-1)),
        (Select(better, element, best), Select(better, K, at)),
        1,
    )
    made = algorithm(Store("out", ZERO, fold, kind="int"), axes=(Axis("i", ZERO, ONE),), x="float", out="int")
    arrays = {"x": np.array([1, 5, 2, 5], "f4"), "out": np.zeros(1, "i4")}
    assert interpret(made, arrays, {"n": 4})["out"][0] == 1


def test_loads_mean_memory_at_entry() -> None:
    grown = Binary("+", x("float"), Num("1.0f", "float"), "float")
    made = algorithm(Store("x", POINT, grown), Store("out", POINT, x("float")), x="float", out="float")
    result = interpret(made, {"x": np.zeros(3, "f4"), "out": np.ones(3, "f4")}, {"n": 3})
    assert result["x"].tolist() == [1, 1, 1]
    assert result["out"].tolist() == [0, 0, 0]


def test_stores_come_in_their_order() -> None:
    made = algorithm(
        Store("out", POINT, Num("1.0f", "float")),
        Store("out", POINT, Num("2.0f", "float"), guard=(integers.compared(">", POINT, ZERO),)),
        out="float",
    )
    assert interpret(made, {"out": np.zeros(2, "f4")}, {"n": 2})["out"].tolist() == [1, 2]


@pytest.mark.parametrize(("mode", "wanted"), [("+", 6), ("max", 3), ("min", 0), ("|", 3), ("^", 0)])
def test_atomics_combine_all_points(mode: Any, wanted: int) -> None:
    made = algorithm(Store("out", ZERO, POINT, mode=mode, kind="int"), out="int")
    assert interpret(made, {"out": np.zeros(1, "i4")}, {"n": 4})["out"][0] == wanted


def test_races_and_stray_writes_are_errors() -> None:
    racing = algorithm(Store("out", ZERO, Cast("float", POINT)), out="float")
    with pytest.raises(InterpretError, match=r"different values to out\[0\]"):
        interpret(racing, {"out": np.zeros(1, "f4")}, {"n": 2})
    stray = algorithm(Store("out", POINT, FLOAT_ZERO), out="float")
    with pytest.raises(InterpretError, match=r"writes out\[1\] of 1"):
        interpret(stray, {"out": np.zeros(1, "f4")}, {"n": 2})
    with pytest.raises(InterpretError, match="no array for the pointer 'out'"):
        interpret(stray, {}, {"n": 2})
    with pytest.raises(InterpretError, match="'out' is float, its array float64"):
        interpret(stray, {"out": np.zeros(2)}, {"n": 2})


def test_a_polynomial_that_wraps_is_an_error() -> None:
    below = integers.typed(integers.add(Sym("n", "unsigned"), integers.constant(-1)), "unsigned")
    made = algorithm(Store("out", ZERO, Cast("float", below)), axes=(Axis("i", ZERO, ONE),), out="float")
    with pytest.raises(InterpretError, match="outside unsigned"):
        interpret(made, {"out": np.zeros(1, "f4")}, {"n": 0})


def test_no_points_do_nothing() -> None:
    made = algorithm(Store("out", POINT, Load("x", POINT, "float")), x="float", out="float")
    assert interpret(made, {"x": np.zeros(0, "f4"), "out": np.ones(2, "f4")}, {"n": 0})["out"].tolist() == [
        1,
        1,
    ]


def test_fused_products_are_rounded_once() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 500))
    c = -(a * b) * (1 + rng.integers(-2, 3, 500) * 2.0 ** -rng.integers(20, 60, 500))
    for kind, dtype in (("double", "f8"), ("float", "f4"), ("half", "f2")):
        first, second, third = (value.astype(dtype) for value in (a, b, c))
        found = fused(first, second, third, kind)
        exact = [
            Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r))
            for p, q, r in zip(first, second, third, strict=True)
        ]
        if kind == "double":
            assert found.tolist() == [float(value) for value in exact]
        else:
            step = np.spacing(np.abs(found)).astype(float)
            errors = [abs(float(f) - float(e)) for f, e in zip(found, exact, strict=True)]
            assert (np.array(errors) <= 0.5 * step * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("name", "argument", "wanted"),
    [("sqrtf", 2.0, np.float32(np.sqrt(2.0))), ("rsqrtf", 4.0, 0.5), ("fabsf", -2.0, 2.0), ("erff", 0.0, 0.0),
     ("tanhf", 0.5, np.float32(np.tanh(0.5))), ("expf", 1.0, np.float32(np.e)), ("roundf", 2.5, 3.0), ("rintf", 2.5, 2.0)],
)  # fmt: skip
def test_functions(name: str, argument: float, wanted: float) -> None:
    assert values(Call(name, (x("float"),), "float"), x=np.array([argument], "f4"))[0] == np.float32(wanted)


def test_unknown_functions_and_names_are_errors() -> None:
    with pytest.raises(InterpretError, match="no function 'frobnicate'"):
        values(Call("frobnicate", (x("float"),), "float"), x=np.array([1], "f4"))
    with pytest.raises(InterpretError, match="no value for 'm'"):
        values(Cast("float", Sym("m")), x=np.array([1], "f4"))


def test_negative_zero_and_not() -> None:
    assert np.signbit(values(Unary("-", x("float"), "float"), x=np.array([0.0], "f4"))[0])
    assert values(Cast("int", Unary("!", x("int"), "bool")), x=np.array([0, 3], "i4")).tolist() == [1, 0]


def test_host_values_are_evaluated() -> None:
    rounded = integers.divide(integers.add(N, integers.constant(31)), integers.constant(32))
    assert evaluate(rounded, {"n": 33}) == 2
