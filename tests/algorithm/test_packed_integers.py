"""Two bytes in the halves of one word: kernels over bytes compute what they computed one byte at a time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected
from tests.algorithm.test_inner_points import SMALL, algorithm_of, inner

INSIDE = "if (i == 0 || j == 0 || i == h - 1 || j == w - 1) y[p] = 0; else"
NEAREST = "int v = min(max(i + a, 0), h - 1), u = max(0, min(w - 1, j + b));"
CROSS = "x[p - 1] - x[p + 1] - x[p - w] - x[p + w]"
NINE = " ".join(f"q[{k}] = x[p + {k // 3 - 1} * w + {k % 3 - 1}];" for k in range(9))
EXCHANGES = (12, 45, 78, 1, 34, 67, 12, 45, 78, 3, 58, 47, 36, 14, 25, 47, 42, 64, 42)
"""Pairs of places, a digit each."""
SORTED = " ".join(
    f"{{ int t = min(q[{a}], q[{b}]); q[{b}] = max(q[{a}], q[{b}]); q[{a}] = t; }}"
    for a, b in (divmod(pair, 10) for pair in EXCHANGES)
)
KERNELS = {
    "edges": f"{INSIDE} {{ int c = x[p - w + 1] + 2 * x[p + 1] + x[p + w + 1] - x[p - w - 1] - 2 * x[p - 1] - x[p + w - 1];"
    " int r = x[p + w - 1] + 2 * x[p + w] + x[p + w + 1] - x[p - w - 1] - 2 * x[p - w] - x[p - w + 1];"
    " int s = abs(c) + abs(r); y[p] = s > 255 ? 255 : s; }",
    "life": f"int s = 0; {SMALL} if (a != 0 || b != 0) s += x[(i + a + h) % h * w + (j + b + w) % w];"
    " y[p] = s == 3 || (s == 2 && x[p]);",
    "dilated": f"int s = 0; {SMALL} {{ {NEAREST} s = max(s, (int)x[v * w + u]); }} y[p] = s;",
    "eroded": f"unsigned char s = 255; {SMALL} {{ {NEAREST} if (x[v * w + u] < s) s = x[v * w + u]; }} y[p] = s;",
    "least_of_all": f"int s = j > 0 && j < w - 1 ? x[p - 1] - x[p + 1] : 0; {SMALL} {{ {NEAREST} s = min(s, (int)x[v * w + u]); }}"
    " y[p] = s < 0 ? -s : s;",
    "boxed": f"int s = 0; {SMALL} {{ {NEAREST} s += x[v * w + u]; }} y[p] = s >> 4;",
    "blurred": f"{INSIDE} y[p] = (x[p - w - 1] + 2 * x[p - w] + x[p - w + 1] + 2 * x[p - 1] + 4 * x[p] + 2 * x[p + 1]"
    " + x[p + w - 1] + 2 * x[p + w] + x[p + w + 1] + 8) / 16;",
    "sharpened": f"{INSIDE} {{ int s = 5 * x[p] - {CROSS}; y[p] = min(max(s, 0), 255); }}",
    "clamped": f"{INSIDE} {{ int s = 5 * x[p] - {CROSS}; y[p] = s < 0 ? 0 : s > 255 ? 255 : s; }}",
    "kept_below": f"{INSIDE} {{ int s = 5 * x[p] - {CROSS}; y[p] = s > 200 ? 200 : (10 <= s ? s : 10); }}",
    "kept_above": f"{INSIDE} {{ int s = 5 * x[p] - {CROSS}; y[p] = s >= 3 ? (s < 77 ? s : 77) : 3; }}",
    "three": f"{INSIDE} {{ int s = 4 * x[p] - {CROSS}; y[p] = s > 10 ? 255 : s < -10 ? 128 : 0; }}",
    "signed_sides": f"{INSIDE} {{ int s = x[p - 1] - x[p + 1]; int t = s < x[p] - 90 ? s : -s; y[p] = t < 0 ? 0 : t; }}",
    "median": f"{INSIDE} {{ int a = min(x[p - 1], x[p]), b = max(x[p - 1], x[p]); y[p] = max(a, min(b, (int)x[p + 1])); }}",
    "median_of_nine": f"{INSIDE} {{ int q[9]; {NINE} {SORTED} y[p] = q[4]; }}",
    "counted": f"{INSIDE} y[p] = (x[p - 1] > x[p]) + (x[p + 1] >= x[p]) * 4 + (x[p - w] == x[p]) * 2 + !(x[p + w] != x[p]);",
    "differs": f"{INSIDE} {{ int s = x[p - 1] - x[p + 1]; y[p] = s == -3 || !(s != 2) ? 7 : s != 0; }}",
    "bits": f"{INSIDE} y[p] = (x[p - 1] ^ x[p + 1]) & (x[p - w] | 15) | x[p + w] % 8;",
    "wide": "int s = 0; for (int b = -5; b < 6; ++b) if (j + b >= 0 && j + b < w) s += x[p + b]; y[p] = s >> 4;",
    "near": "int s = 0; for (int b = -2; b < 3; ++b) { int u = max(0, min(w - 1, j + b)); s += b * x[i * w + u]; }"
    " y[p] = abs(s) >> 3;",
    "threshold": f"{INSIDE} {{ int s = 4 * x[p] - {CROSS}; y[p] = abs(s) > r ? 255 : s < -r; }}",
    "halved": f"{INSIDE} y[p] = x[p - 1] > x[p + 1] ? 3 : 200;",
    "between": f"{INSIDE} y[p] = (r + 30 < x[p] + x[p - 1]) & (r * 7 - 3 >= x[p] - x[p + 1]);",
    "two": f"{INSIDE} {{ int s = x[p - 1] + x[p + 1]; y[p] = s >> 1; }} z[p] = 1;",
}
SIZES = ((1, 1), (3, 3), (9, 4), (17, 40), (8, 33), (34, 72), (19, 64), (64, 144))
SHAPES = (("4x16", "4x8"), ("8x4", "2x16"), ("1x8", "1x32"))


def packed(algorithm: Algorithm, points: str, threads: str = "4x8") -> Plan:
    return MOVES["pack_integers"].apply(inner(algorithm, "4x8", threads), {"points": points})


def without_numbers(text: str) -> str:
    """Return a text in which names that were taken already are not told apart."""
    return re.sub(r"\b([a-z_]+)_\d+\b", r"\1", text)


def arguments_of(rng: np.random.Generator, h: int, w: int, largest: int) -> dict[str, Any]:
    r = int(rng.choice([0, 1, 9, 100, -40, 70000, -(1 << 28)]))
    x = rng.integers(0, largest + 1, h * w).astype(np.uint8)
    zeros = np.zeros(h * w, np.uint8)
    return {"x": x, "g": zeros[:9], "y": zeros, "z": zeros.copy(), "h": h, "w": w, "r": r}


@pytest.mark.slow
def test_pairs_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sources, wanted = {}, []
    calls: list[cpu.Call] = []
    for name, body in KERNELS.items():
        algorithm = algorithm_of(body, "unsigned char")
        for points, threads in SHAPES:
            label = f"{name}_{points}"
            sources[label] = emitted_text(packed(algorithm, points, threads))
            for h, w in SIZES:
                arguments = arguments_of(rng, h, w, (2, 80, 255)[len(calls) % 3])
                wanted.append(expected(algorithm, arguments))
                calls.append(cpu.Call(label, arguments, flush=("end", "start", "odd")[len(calls) % 3]))
    results = cpu.build(sources, tmp_path).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        sizes = call.arguments["h"], call.arguments["w"]
        found = differences(want, got, exact=True)
        assert not found, (call.library_name, sizes, found, sources[call.library_name])


@pytest.mark.slow
def test_boards_of_truth_values_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    body = KERNELS["life"].replace("&& x[p])", "&& x[p] && !x[i * w + (j + 1) % w])")
    algorithm = algorithm_of(body, "bool")
    library = cpu.build({"life": emitted_text(packed(algorithm, "4x8"))}, tmp_path)
    for h, w in SIZES:
        arguments = arguments_of(rng, h, w, 1)
        arguments |= {name: arguments[name].astype(bool) for name in "xgyz"}
        (got,) = library.run([cpu.Call("life", arguments)])
        assert not differences(expected(algorithm, arguments), got, exact=True), (h, w)


def test_sums_that_points_have_in_common_are_made_once() -> None:
    text = without_numbers(emitted_text(packed(algorithm_of(KERNELS["edges"], "unsigned char"), "4x16")))
    assert "unsigned x_pairs[6][10];" in text
    assert "x_sums[r][c] = x_pairs[r][c] + x_pairs[r + 1][c] * 2 + x_pairs[r + 2][c];" in text
    assert "x_sums[r][c] = x_pairs[r][c] + x_pairs[r][c + 1] * 2 + x_pairs[r][c + 2];" in text
    # Two magnitudes, each with a bias, whose biases cancel; the smaller of their sum and 255.
    assert text.count("__vmaxu2(") == 2
    assert "__viaddmin_u16x2(magnitude, magnitude, 0x00ff00ffu)" in text


def test_the_largest_of_rows_is_found_once() -> None:
    text = emitted_text(packed(algorithm_of(KERNELS["dilated"], "unsigned char"), "8x8"))
    assert "x_largest[r_3][c] = __vmaxu2(__vmaxu2(x_pairs[r_3][c], x_pairs[r_3][c + 1])" in text
    # Nothing is below zero, with which the loop began.
    assert text.count("__vmaxu2(") == 4


def test_conditions_are_stored_as_bits() -> None:
    text = without_numbers(emitted_text(packed(algorithm_of(KERNELS["life"], "unsigned char"), "4x8")))
    assert "0x80008000u - (sum ^ 0x00030003u)" in text
    assert "__byte_perm(low, high, 0x5410) >> 7 & 0x01010101u;" in text


def test_points_come_first() -> None:
    algorithm = algorithm_of(KERNELS["edges"], "unsigned char")
    with pytest.raises(IllegalMove, match="inner_points comes first"):
        MOVES["pack_integers"].options(Plan(algorithm, Schedule()))
    offered = MOVES["pack_integers"].options(inner(algorithm, "4x8", "4x8"))
    assert [option.name for option in offered] == ["points"]
    with pytest.raises(IllegalMove, match="no four columns"):
        packed(algorithm, "4x1")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("(200 * x[p - 1] + 200 * x[p + 1]) >> 9", "from 0 to 102000: more than 16 bits"),
        ("abs(100 * x[p - 1] - 100 * x[p + 1] - 100 * x[p]) > 9", "from -51000 to 25500"),
        ("abs(100 * x[p - 1] + 100 * x[p + 1]) > x[p] - 9", "more than 16 bits with a sign"),
        ("x[p - 1] + x[p + 1]", "from 0 to 510 may leave the range of unsigned char"),
        ("(x[p - 1] + x[p] + x[p + 1]) / 3", "a division by 3"),
        ("(x[p - 1] - x[p + 1]) / 2", "may be negative is shifted"),
        ("x[p - 1] >> x[p + 1]", "a shift by what is not constant"),
        ("x[p - 1] * x[p + 1] > 9", "multiplied with one another"),
        ("x[p - 1] + x[p + 1] + r > 9", "of unknown bounds"),
        ("(unsigned char)(0.5f * x[p - 1])", "not integers"),
        ("(x[p - 1] - x[p + 1]) & 255", "bits of values that may be negative"),
        ("x[p - 1] ? g[x[p - 1]] : 0", "does not come with the rows"),
    ],
)
def test_what_halves_cannot_hold_is_refused(value: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=reason):
        packed(algorithm_of(f"{INSIDE} y[p] = {value};", "unsigned char"), "4x8")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("float", "results are no bytes"), ("int", "results are no bytes"), ("char", "not unsigned bytes")],
)
def test_elements_of_other_types_are_refused(kind: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=reason):
        packed(algorithm_of(f"{INSIDE} y[p] = x[p - 1];", kind), "4x8")
