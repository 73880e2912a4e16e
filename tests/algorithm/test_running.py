"""Running maxima and means: many spellings become reductions that agree, and what only looks like one stays.

KERNELSKILL_RANDOM=N looks at N kernels that differ from a right one in a few tokens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.expression import Fold, reductions
from kernelskill.algorithm.interpreting.values import InterpretError
from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import Algorithm, CannotLift, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.running import without_running
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm import cpu
from tests.algorithm.emission import HEAD, differences, emitted_text, expected

FULL = int(os.environ.get("KERNELSKILL_RANDOM", "0"))
SEED = int(os.environ.get("KERNELSKILL_SEED", "0"))
PARAMETERS = "const float* x, const float* g, float* y, int rows, int n"
ROW = "int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= rows) return;"
WALK = "for (int j = 0; j < n; ++j) { float v = x[r * n + j]; %s }"
SOFTMAX = " for (int j = 0; j < n; ++j) y[r * n + j] = expf(x[r * n + j] - m) / s;"
NORM = (
    " float q = rsqrtf(c2 / n + 1e-5f); for (int j = 0; j < n; ++j) y[r * n + j] = (x[r * n + j] - mean) * q;"
)
MAXIMA = {
    "fmaxf": "float m = -INFINITY, s = 0.f; "
    + WALK % "float t = fmaxf(m, v); s = s * expf(m - t) + expf(v - t); m = t;"
    + SOFTMAX,
    "branches": "float m = -1e30f, s = 0.f; "
    + WALK % "if (v > m) { s = s * expf(m - v) + 1.f; m = v; } else s += expf(v - m);"
    + SOFTMAX,
    "rescaled_first": "float m = -INFINITY, s = 0.f; "
    + WALK % "if (m < v) { s *= __expf(m - v); m = v; } s += __expf(v - m);"
    + SOFTMAX,
    "old": "float m = -INFINITY, s = 0.f; "
    + WALK % "float old = m; m = fmaxf(m, v); float c = expf(old - m); s *= c; s += expf(v - m);"
    + SOFTMAX,
    "guarded": "float m = -INFINITY, s = 0.f; "
    + WALK
    % "float t = fmaxf(v, m); float c = m == -INFINITY ? 0.f : expf(m - t);"
    " float p = t == -INFINITY ? 0.f : expf(v - t); s = fmaf(s, c, p); m = t;"
    + " y[r] = m; y[rows + r] = s;",
    "base_two": "float m = -INFINITY, s = 0.f; "
    + WALK % "v *= 1.44269504f; float t = fmaxf(m, v); s = s * exp2f(m - t) + exp2f(v - t); m = t;"
    + " y[r] = m + log2f(s);",
    "scaled": "float m = -INFINITY, s = 0.f; "
    + WALK % "float t = fmaxf(m, v); s = s * exp2f((m - t) * 1.4427f) + exp2f(1.4427f * (v - t)); m = t;"
    + " y[r] = s;",
    "from_first": "float m = x[r * n], s = 1.f; for (int j = 1; j < n; ++j) { float v = x[r * n + j];"
    " float t = fmaxf(m, v); s = s * expf(m - t) + expf(v - t); m = t; } y[r] = m + logf(s);",
    "masked": "float m = -INFINITY, s = 0.f; "
    + WALK % "if (g[j] < 0.f) continue; float t = fmaxf(m, v); s = s * expf(m - t) + expf(v - t); m = t;"
    + " y[r] = m + logf(s);",
    "weighted": "float m = -1e30f, s = 0.f, a = 0.f; "
    + WALK
    % "float t = fmaxf(m, v * 0.125f); float c = expf(m - t), p = expf(v * 0.125f - t);"
    " s = s * c + p; a = a * c + p * g[j]; m = t;" + " y[r] = a / s;",
}
MEANS = {
    "welford": "float mean = 0.f, c2 = 0.f; "
    + WALK % "float d = v - mean; mean += d / (j + 1); c2 += d * (v - mean);"
    + NORM,
    "counted": "float mean = 0.f, c2 = 0.f, k = 0.f; "
    + WALK % "k += 1.f; float d = v - mean; mean += d * (1.f / k); c2 += d * (v - mean);"
    + NORM,
    "shifted": "float mean = 0.f, c2 = 0.f; int k = 0; for (int j = 2; j < n; ++j) { ++k; float v = x[r * n + j];"
    " float d = v - mean; mean = fmaf(d, 1.f / k, mean); c2 = fmaf(d, v - mean, c2); } y[r] = mean; y[rows + r] = c2;",
    "spread": "float mean = 0.f, c2 = 0.f; "
    + WALK % "float k = j + 1; float d = v - mean; mean = (mean * j + v) / k; c2 += d * d * j / k;"
    + NORM,
    "only_mean": "float mean = 1.f; " + WALK % "mean += (v - mean) / (float)(j + 1);" + " y[r] = mean;",
}
KERNELS = MAXIMA | MEANS
TRAPS = {
    "no_rescale": MAXIMA["fmaxf"].replace("s * expf(m - t)", "s"),
    "wrong_way": MAXIMA["fmaxf"].replace("expf(m - t)", "expf(t - m)"),
    "new_maximum_first": MAXIMA["fmaxf"].replace("s = s * expf(m - t)", "m = t; s = s * expf(m - t)"),
    "against_old": MAXIMA["fmaxf"].replace("expf(v - t)", "expf(v - m)"),
    "two_bases": MAXIMA["fmaxf"].replace("+ expf", "+ exp2f"),
    "small_left_out": MAXIMA["fmaxf"].replace("expf(v - t)", "(v - t < -20.f ? 0.f : expf(v - t))"),
    "nan_left_out": MAXIMA["fmaxf"].replace("expf(v - t)", "(v <= t ? expf(v - t) : 0.f)"),
    "first_is_special": MAXIMA["fmaxf"].replace(
        "s * expf(m - t)", "(m == -INFINITY ? 2.f : s * expf(m - t))"
    ),
    "equal_is_special": MAXIMA["fmaxf"].replace("+ expf(v - t)", "+ (v == m ? 0.f : expf(v - t))"),
    "capped": MAXIMA["fmaxf"].replace("m = t;", "m = t; s = fminf(s, 100.f);"),
    "minimum": MAXIMA["fmaxf"].replace("fmaxf", "fminf"),
    "one_branch": MAXIMA["branches"].replace("+ 1.f", ""),
    "no_branch": MAXIMA["branches"].replace("s = s * expf(m - v) + 1.f", "s = 1.f"),
    "not_less": MAXIMA["branches"].replace("if (v > m)", "if (!(v <= m))"),
    "starts_at_infinity": MAXIMA["fmaxf"].replace("m = -INFINITY", "m = INFINITY"),
    "starts_with_one": MAXIMA["fmaxf"].replace("s = 0.f", "s = 1.f"),
    "lazy": MAXIMA["fmaxf"].replace("fmaxf(m, v)", "(v > m + 8.f ? v : m)"),
    "decayed": MAXIMA["fmaxf"].replace("s * expf", "s * 0.5f * expf"),
    "mask_on_one": MAXIMA["masked"]
    .replace("if (g[j] < 0.f) continue; ", "")
    .replace("m = t; }", "if (g[j] < 0.f) m = t; }"),
    "wrong_count": MEANS["welford"].replace("(j + 1)", "(j + 2)"),
    "count_from_zero": MEANS["counted"]
    .replace("k += 1.f; ", "")
    .replace("(v - mean);", "(v - mean); k += 1.f;"),
    "count_from_one": MEANS["counted"].replace("k = 0.f", "k = 1.f"),
    "moving_average": MEANS["only_mean"].replace("(float)(j + 1)", "8.f"),
    "old_mean_twice": MEANS["welford"].replace("d * (v - mean)", "d * d"),
    "two_distances": MEANS["welford"].replace("d * (v - mean)", "(v - mean) * (v - mean)"),
    "two_values": MEANS["welford"].replace("d * (v - mean)", "d * (g[j] - mean)"),
    "clipped": MEANS["welford"].replace("float d = v - mean", "float d = fminf(v - mean, 3.f)"),
    "nan_left_out_of_mean": MEANS["only_mean"].replace(
        "mean += (v - mean)", "if (v - mean > -9e9f) mean += (v - mean)"
    ),
}
SIZES = ((3, 1), (5, 8), (9, 33), (2, 64), (3, 100), (1, 132), (3, 0), (2, 2))


def algorithm_of(body: str) -> Algorithm:
    unit = SourceUnit.parse(source_of(body))
    return lift_kernel(unit, unit.kernels[0]).algorithm


def source_of(body: str) -> str:
    return (
        f"{HEAD}__global__ void k({PARAMETERS}) {{ {ROW} {body} }}\n"
        f'extern "C" void f({PARAMETERS}) {{ k<<<(rows + 31) / 32, 32>>>(x, g, y, rows, n); }}\n'
    )


def has_folds(algorithm: Algorithm) -> bool:
    return any(isinstance(each, Fold) for e in algorithm.expressions for each in reductions(e))


def arguments_of(rng: np.random.Generator, rows: int, n: int, spread: float = 1.0) -> dict[str, Any]:
    sizes = {"x": rows * n, "g": n, "y": rows * n if n > 2 else 2 * rows}
    arrays = {name: (spread * rng.standard_normal(size)).astype(np.float32) for name, size in sizes.items()}
    return {**arrays, "rows": rows, "n": n}


def with_special_values(arguments: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Put NaN and infinities anywhere but at the beginning of a row."""
    rows, n = arguments["rows"], arguments["n"]
    values = arguments["x"].reshape(rows, n)
    for row in range(rows):
        for special in rng.choice([np.nan, -np.inf, -np.inf, np.inf], size=min(row, n - 1)):
            values[row, rng.integers(1, n)] = special
    return arguments


def agree(first: Algorithm, second: Algorithm, arguments: dict[str, Any]) -> str:
    """Return where two algorithms differ; in rows with infinities NaN may become a number."""
    with np.errstate(all="ignore"):
        want, got = expected(first, arguments)["y"], expected(second, arguments)["y"]
    rows, n = arguments["rows"], arguments["n"]
    infinite = np.isinf(arguments["x"].reshape(rows, n)).any(axis=1)
    owner = np.arange(want.size) // max(n, 1) if first.stores[0].loops else np.arange(want.size) % rows
    got = np.where(np.isnan(want) & infinite[owner % rows], want, got)
    return differences({"y": want}, {"y": got}, exact=False)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_many_spellings_are_two_reductions(name: str) -> None:
    rng = np.random.default_rng(1)
    original = algorithm_of(KERNELS[name])
    changed = without_running(original)
    assert has_folds(original)
    assert not has_folds(changed)
    assert len(changed.notes) > len(original.notes)
    for rows, n in SIZES:
        for spread in (1.0, 30.0) if n or name != "from_first" else ():
            assert not agree(original, changed, arguments_of(rng, rows, n, spread)), n


@pytest.mark.parametrize("name", sorted(MAXIMA))
def test_special_values_give_the_same(name: str) -> None:
    rng = np.random.default_rng(2)
    original = algorithm_of(KERNELS[name])
    for _ in range(FULL or 2):
        arguments = with_special_values(arguments_of(rng, 6, 9), rng)
        assert not agree(original, without_running(original), arguments)


@pytest.mark.parametrize("name", sorted(TRAPS))
def test_what_only_looks_like_it_stays(name: str) -> None:
    original = algorithm_of(TRAPS[name])
    assert has_folds(without_running(original))
    with pytest.raises(IllegalMove, match="more than one associative"):
        MOVES["share_rows"].options(Plan(original, Schedule()))


@pytest.mark.slow
def test_lanes_agree_with_the_kernel(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sources, calls = {}, []
    for number, (name, body) in enumerate(KERNELS.items()):
        sources[f"{name}_own"] = source_of(body)
        labels = [f"{name}_own"]
        shapes = ((8, 4), (32, 1))
        for lanes, vector in shapes if FULL else (shapes[number % 2],):
            values = {"lanes": str(lanes), "threads": "32", "vector": str(vector)}
            plan = MOVES["share_rows"].apply(Plan(algorithm_of(body), Schedule()), values)
            labels.append(f"{name}_{lanes}")
            sources[labels[-1]] = emitted_text(plan)
        for rows, n in SIZES:
            if name == "from_first" and n == 0:
                continue
            arguments = arguments_of(rng, rows, n, 5.0)
            calls += [cpu.Call(label, dict(arguments), flush=("end", "odd")[n % 2]) for label in labels]
    results = cpu.build(sources, tmp_path).run(calls)
    own: dict[str, np.ndarray] = {}
    for call, result in zip(calls, results, strict=True):
        if call.library_name.endswith("_own"):
            own = {"y": result["y"]}
        assert not differences(own, result, exact=False), (call.library_name, call.arguments["n"])


def changed_kernels(count: int) -> Iterator[str]:
    """Yield right kernels with a few tokens of the loop replaced by others."""
    rng = np.random.default_rng(SEED)
    others = {
        "name": ["m", "t", "v", "s", "mean", "c2", "d", "g[j]", "k", "old"],
        "number": ["0.f", "1.f", "2.f", "(j + 1)", "j", "-INFINITY"],
        "operator": ["+", "-", "*", "/"],
        "comparison": ["<", ">", "<=", ">=", "==", "!="],
        "power": ["expf", "exp2f", "__expf"],
        "extremum": ["fmaxf", "fminf"],
    }
    tokens = re.compile(
        r"\[[^]]*\]|(?P<power>\b_*exp2?f\b(?=\())|(?P<extremum>\bfm(?:ax|in)f\b(?=\())|"
        r"(?P<number>(?<![\w.])\d+\.?\w*)|(?P<name>\b[a-z]\w*\b)|(?P<comparison>[<>=!]=|(?<!<)[<>](?!<))|(?P<operator>(?<![+*/-])[-+*/](?![=+-]))"
    )
    bodies = sorted(KERNELS.values())
    for _ in range(count):
        body = bodies[rng.integers(len(bodies))]
        start = body.index("{")
        found = [
            m
            for m in tokens.finditer(body, start, body.index("}", start))
            if m.lastgroup and m.group() not in ("float", "if", "else", "continue")
        ]
        for match in sorted(rng.choice(len(found), size=rng.integers(1, 3), replace=False), reverse=True):
            token = found[match]
            choices = others[str(token.lastgroup)]
            body = body[: token.start()] + str(rng.choice(choices)) + body[token.end() :]
        yield body


def test_what_is_rewritten_agrees_whatever_the_tokens() -> None:
    rng = np.random.default_rng(4)
    rewritten = 0
    for body in changed_kernels(FULL or 60):
        try:
            original = algorithm_of(body)
        except CannotLift:
            continue
        changed = without_running(original)
        if changed == original:
            continue
        inputs = [arguments_of(rng, 4, n, spread) for n in (1, 2, 3, 17) for spread in (0.3, 4.0)]
        if "mean" not in body:
            inputs += [with_special_values(arguments_of(rng, 6, 9), rng) for _ in range(4)]
        for arguments in inputs:
            try:
                agree(original, original, arguments)
            except InterpretError:
                continue  # reads outside of its buffers
            rewritten += 1
            assert not agree(original, changed, arguments), body
    assert rewritten
