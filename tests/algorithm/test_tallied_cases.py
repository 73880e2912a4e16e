"""Constants added by cases: counted a word at a time, in every spelling, and what is declined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.case_amounts import case_count
from kernelskill.algorithm.expression import Binary, Sym
from kernelskill.algorithm.integers import constant
from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule, plain_schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected

DRAW = "state = state * 1664525u + 1013904223u;"
SWITCH = "switch (c) { case 0: p += 1; break; case 1: p -= 1; break; case 2: q += 2; break; default: q -= 1; break; }"
SPELLINGS = {
    "switch": f"{DRAW} unsigned c = (state >> 16) % 4; {SWITCH}",
    "default_first": f"{DRAW} switch (state >> 30) {{ default: q--; break; case 2: p += 7; break; case 1: break; case 0: p--; }}",
    "chain": f"{DRAW} int c = state >> 9 & 3; if (c == 0) p++; else if (c == 3) q -= 5; else if (c == 1) {{ p -= 2; q++; }}",
    "choice": f"{DRAW} unsigned c = state % 3u; p += c == 0 ? 1 : c == 1 ? -1 : 0; q = c > 1 ? q - 1 : q;",
    "two": f"{DRAW} if (state >> 31) p += 3; else q--;",
    "eight": f"{DRAW} unsigned c = state >> 29; if (c < 3) p += 100; else if (c == 5) q -= 7; else if (c & 1) p--;",
    "nested": f"{DRAW} int c = state >> 11 & 3; if (c & 1) {{ if (c & 2) p++; else p--; }} else {{ if (c & 2) q++; else q--; }}",
    "five": f"{DRAW} int c = (state >> 8) % 5u; if (c == 4) p += 40; if (c == 2) p -= 9; if (c != 0) q++;",
    "loads": f"unsigned c = a[w * steps + s]; c &= 3; {SWITCH}",
    "signed": f"int c = a[w * steps + s] & 3; {SWITCH}",
    "counter": f"{DRAW} int c = (state ^ (unsigned)s) & 3; {SWITCH}",
    "also": f"{DRAW} state ^= state >> 7; unsigned c = state & 3; {SWITCH} state += 3u;",
}
SPELLINGS["arithmetic"] = (
    f"{DRAW} int c = state >> 16 & 3; p += (c == 0) - (c == 1); q += (c == 2) - (c == 3);"
)
SPELLINGS["negated"] = (
    f"{DRAW} int c = state >> 16 & 3; if (!(c & 1)) p += 1; else if (!(c & 2)) q -= 3; else q--;"
)
SPELLINGS["read"] = SPELLINGS["switch"] + " state += p;"
TYPES = (("int", "int"), ("unsigned", "int"), ("long long", "unsigned"))
SIZES = ((1, 0), (3, 1), (2, 9), (40, 15), (5, 16), (33, 17), (2, 32), (3, 100), (1, 255), (2, 256), (3, -5))


def algorithm_of(
    step: str,
    types: tuple[str, str] = ("int", "int"),
    head: str = "int s = 0; s < steps; s++",
    last: str = "q + state % 2",
) -> Algorithm:
    first, second = types
    length = "unsigned" if "unsigned s" in head else "int"
    parameters = f"const unsigned* a, {first}* x, {second}* y, int n, {length} steps"
    text = (
        f"__global__ void k({parameters}) {{ int w = blockIdx.x * blockDim.x + threadIdx.x; if (w >= n) return;"
        f" unsigned state = a[w]; {first} p = 5; {second} q = y[w]; for ({head}) {{ {step} }} x[w] = p; y[w] = {last}; }}\n"
        f'extern "C" void f({parameters}) {{ k<<<(n + 31) / 32, 32>>>(a, x, y, n, steps); }}\n'
    )
    unit = SourceUnit.parse(text)
    return lift_kernel(unit, unit.kernels[0]).algorithm


def arguments_of(rng: np.random.Generator, types: tuple[str, str], n: int, steps: int) -> dict[str, Any]:
    names = {"int": np.int32, "unsigned": np.uint32, "long long": np.int64}
    first, second = (names[each] for each in types)
    return {
        "a": rng.integers(0, 1 << 32, n * max(steps, 1), np.uint32),
        "x": np.zeros(n, first),
        "y": rng.integers(-9 if second is np.int32 else 0, 9, n).astype(second),
        "n": n,
        "steps": steps,
    }


def plans_of(algorithm: Algorithm) -> list[Plan]:
    plain = Plan(algorithm, plain_schedule(algorithm, 32))
    tally, coarsen = MOVES["tally_cases"], MOVES["coarsen_points"]
    shape = {"points": "1x2", "threads": "1x32"}
    tallied = tally.apply(plain, {})
    return [tallied, coarsen.apply(tallied, shape), tally.apply(coarsen.apply(plain, shape), {})]


def test_bits_in_the_middle_become_the_highest() -> None:
    for step, shift in ((SPELLINGS["switch"], 14), (SPELLINGS["chain"], 21)):
        for last in ("q", "q + state"):
            algorithm = algorithm_of(step, last=last)
            plan = MOVES["tally_cases"].apply(Plan(algorithm, plain_schedule(algorithm, 32)), {})
            assert (f"+ {(1013904223 << shift) % (1 << 32)}u" in emitted_text(plan)) is (last == "q")
            arguments = arguments_of(np.random.default_rng(1), ("int", "int"), 40, 23)
            assert not differences(
                expected(algorithm, arguments), expected(plan.algorithm, arguments), exact=True
            )


@pytest.mark.parametrize(
    "update",
    [
        "state = state * 5u + (state >> 3);",
        "state = state * state;",
        "state = (unsigned)w - state / 3u;",
        "state ^= 77u;",
    ],
)
def test_other_states_keep_all_bits(update: str) -> None:
    step = f"{update} unsigned c = (state >> 16) % 4; {SWITCH}"
    algorithm = algorithm_of(step, last="q")
    plan = MOVES["tally_cases"].apply(Plan(algorithm, plain_schedule(algorithm, 32)), {})
    text = emitted_text(plan)
    assert "cases << 2" not in text


def test_sums_are_widened_with_their_signs() -> None:
    algorithm = algorithm_of(SPELLINGS["switch"], ("long long", "int"), "unsigned s = 0; s < steps; s++")
    plan = MOVES["tally_cases"].apply(Plan(algorithm, Schedule()), {})
    arguments = arguments_of(np.random.default_rng(1), ("long long", "int"), 40, 23)
    assert not differences(expected(algorithm, arguments), expected(plan.algorithm, arguments), exact=True)
    assert "int(steps % 16u)" in emitted_text(plan)


@pytest.mark.slow
def test_counted_cases_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sources, wanted, calls = {}, [], []
    for number, (name, step) in enumerate(SPELLINGS.items()):
        types = TYPES[number % len(TYPES)]
        # Where nobody asks for the state, only the bits of the cases are kept.
        algorithm = algorithm_of(step, types, last="q + state % 2" if number % 2 else "q")
        plan = plans_of(algorithm)[number % 4 % 3]
        sources[f"by_{name}"] = emitted_text(plan)
        assert "__popc(" in sources[f"by_{name}"]
        for n, steps in SIZES:
            arguments = arguments_of(rng, types, n, steps)
            wanted.append(expected(algorithm, arguments))
            calls.append(cpu.Call(f"by_{name}", arguments))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        assert not differences(want, got, exact=True), (call.library_name, call.arguments["steps"])


def test_steps_do_not_branch_and_points_have_words_of_their_own() -> None:
    plain, _, several = (emitted_text(plan) for plan in plans_of(algorithm_of(SPELLINGS["loads"])))
    for text in (plain, several):
        loop = text[text.index("s_step < 16") : text.index("__popc")]
        assert "?" not in loop
        assert "if" not in loop
        assert text.count("unsigned cases = 0;") == 1
    assert "unsigned cases_2[kWPoints] = {};" in several


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (f"{DRAW} {SWITCH.replace('(c)', '(state)')}", "at most eight cases"),
        (f"{DRAW} int c = (int)state % 4; {SWITCH}", "at most eight cases"),
        (f"{DRAW} unsigned c = state & 15; {SWITCH}", "at most eight cases"),
        (
            f"{DRAW} unsigned c = state & 3; if (c == 0) p += s; else if (c == 1) q += s;",
            "at most eight cases",
        ),
        (
            f"{DRAW} unsigned c = state & 3; if (c == 0) p *= 2; else if (c == 1) q -= p;",
            "at most eight cases",
        ),
        (
            "int c = p & 3; if (c == 0) p++; else if (c == 1) p += 2; else p += 5;",
            "reads what it accumulates",
        ),
        (f"{DRAW} if (state & 1) p++;", "little to save"),
        (f"{DRAW} p += 3; q -= 2;", "at most eight cases|no loop accumulates"),
    ],
)
def test_nothing_to_count(step: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=reason):
        MOVES["tally_cases"].options(Plan(algorithm_of(step), Schedule()))


def test_floats_and_narrow_integers_are_left() -> None:
    step = SPELLINGS["switch"]
    for kind in ("float", "short", "unsigned char"):
        with pytest.raises(IllegalMove, match="at most eight cases"):
            MOVES["tally_cases"].options(Plan(algorithm_of(step, (kind, kind)), Schedule()))


def test_loops_begin_with_zero() -> None:
    algorithm = algorithm_of(SPELLINGS["switch"], head="int s = 1; s < steps; s++")
    with pytest.raises(IllegalMove, match="does not begin with zero"):
        MOVES["tally_cases"].options(Plan(algorithm, Schedule()))


def test_loops_shared_by_lanes_are_left() -> None:
    plan = Plan(algorithm_of(SPELLINGS["switch"]), Schedule(lanes=32))
    with pytest.raises(IllegalMove, match="scheduled otherwise"):
        MOVES["tally_cases"].options(plan)


@pytest.mark.parametrize(
    ("node", "count"),
    [
        (Binary("&", Sym("x"), constant(3), "int"), 4),
        (Binary("&", Sym("x"), constant(-4), "int"), None),
        (Binary("%", Sym("x", "unsigned"), constant(5, "unsigned"), "unsigned"), 5),
        (Binary("%", Sym("x"), constant(5), "int"), None),
        (Binary("%", Binary("&", Sym("x"), constant(7), "int"), constant(3), "int"), 3),
        (Binary(">>", Sym("x", "unsigned"), constant(30), "unsigned"), 4),
        (Binary(">>", Sym("x"), constant(30), "int"), None),
        (Binary(">>", Sym("x", "unsigned"), constant(28), "unsigned"), None),
        (Binary(">>", Sym("x", "unsigned long long"), constant(61), "unsigned long long"), 8),
        (Binary("&", Sym("x"), constant(31), "int"), None),
    ],
)
def test_how_many_cases(node: Binary, count: int | None) -> None:
    assert case_count(node) == count
