"""Windows with borders: guarded, clamped, wrapped and clipped taps, on a path without tests where they lie inside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm import cpu
from tests.algorithm.emission import differences, emitted_text, expected
from tests.unit.algorithm.lifting_samples import box

WINDOW = "for (int a = 0; a < 2 * r + 1; ++a) for (int b = 0; b < 2 * r + 1; ++b)"
SMALL = "for (int a = -1; a <= 1; ++a) for (int b = -1; b <= 1; ++b)"
TAP = "s += g[a * (2 * r + 1) + b] * x[v * w + u]"
PLACE = "int v = i + a - r, u = j + b - r;"
KERNELS = {
    "guarded": f"T s = 0; {WINDOW} {{ {PLACE} if (v >= 0 && v < h && u >= 0 && u < w) {TAP}; }} y[p] = s;",
    "started": f"T s = x[p]; {WINDOW} {{ {PLACE} if (v >= 0 && v < h && u >= 0 && u < w) {TAP}; }} y[p] = s;",
    "skipped": f"T s = 0; {WINDOW} {{ {PLACE} if (v < 0 || v >= h || u < 0 || u >= w) continue; {TAP}; }} y[p] = s;",
    "outer": "T s = 0; for (int a = 0; a < 3; ++a) { int v = i + a - 1; if (v < 0 || v >= h) continue;"
    " for (int b = 0; b < 3; ++b) { int u = j + b - 1; if (u < 0 || u >= w) continue; s += g[b] * x[v * w + u]; } } y[p] = s;",
    "clamped": f"T s = 0; {WINDOW} {{ int v = min(max(i + a - r, 0), h - 1), u = max(0, min(w - 1, j + b - r)); {TAP}; }} y[p] = s;",
    "ternary": f"T s = 0; {SMALL} {{ int v = i + a; v = v < 0 ? 0 : v >= h ? h - 1 : v; int u = j + b; if (u < 0) u = 0; if (u > w - 1) u = w - 1;"
    " s += x[v * w + u]; } y[p] = s;",
    "wrapped": f"T s = 0; {SMALL} if (a != 0 || b != 0) s += x[(i + a + h) % h * w + (j + b + w) % w]; y[p] = s == 3 ? x[p] : s;",
    "spelled_wrap": "int u = j == 0 ? w - 1 : j - 1, o = j == w - 1 ? 0 : j + 1; y[p] = x[i * w + u] + x[i * w + o];",
    "pooled": "T best = -1e30f; for (int v = 2 * i - 1; v <= 2 * i + 1; ++v) for (int u = 2 * j - 1; u <= 2 * j + 1; ++u)"
    " if (v >= 0 && v < h && u >= 0 && u < w) { T c = x[v * w + u]; best = c > best ? c : best; } y[p] = best;",
    "clipped": "T s = 0; for (int v = max(i - 1, 0); v < min(i + 2, h); ++v) for (int u = max(0, j - r); u <= min(j + r, w - 1); ++u)"
    " s += x[v * w + u]; y[p] = s;",
    "counted": "T s = 0; int n = 0; int top = i * 2 - 1, end = min(top + 3, h); top = top < 0 ? 0 : top;"
    " for (int v = top; v < end; ++v) { s += x[v * w + j]; ++n; } y[p] = s / n;",
    "edge": "if (i == 0 || j == 0 || i == h - 1 || j == w - 1) y[p] = 0; else y[p] = x[p - w] + x[p + w] - x[p - 1] * x[p + 1];",
    "copied": "if (i >= r && i < h - r && j >= r && j < w - r) y[p] = x[p - r] + x[p + r * w]; else y[p] = x[p];",
    "data": "T s = 0; if (x[p] > 0) s += x[p]; if (j > 0 && x[p - 1] > 0) s += x[p - 1]; y[p] = s;",
    "crossed": f"T s = 0; {SMALL} if (a == 0 || b == 0) if (i + a >= 0 && i + a < h && j + b >= 0 && j + b < w) s += x[(i + a) * w + j + b]; y[p] = s;",
    "lopsided": "T s = 0; for (int b = -4; b < 1; ++b) if (j + b >= 0) s += x[p + b]; y[p] = s;",
    "two": "T s = j > 0 ? x[p - 1] : 0; T t = i + 1 < h ? x[p + w] : x[p]; y[p] = s + t; z[p] = s - t;",
}
SIZES = ((1, 1), (1, 6), (2, 2), (3, 3), (9, 4), (17, 40), (8, 33), (34, 70), (19, 64))
SHAPES = (("1x1", "4x8"), ("4x4", "4x8"), ("4x1", "2x16"), ("2x4", "4x8"), ("8x2", "1x32"), ("2x16", "8x4"))


def algorithm_of(body: str, kind: str = "float", size: str = "int") -> Algorithm:
    parameters = f"const T* x, const T* g, T* y, T* z, {size} h, {size} w, int r"
    point = "int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;"
    text = (
        f"__global__ void k({parameters}) {{ {point} if (i >= h || j >= w) return; int p = i * w + j; {body} }}\n"
        f'extern "C" void f({parameters}) {{ k<<<dim3((w + 31) / 32, (h + 7) / 8), dim3(32, 8)>>>(x, g, y, z, h, w, r); }}\n'
    )
    unit = SourceUnit.parse(re.sub(r"\bT\b", kind, text))
    return lift_kernel(unit, unit.kernels[0]).algorithm


def inner(algorithm: Algorithm, points: str, threads: str) -> Plan:
    return MOVES["inner_points"].apply(Plan(algorithm, Schedule()), {"points": points, "threads": threads})


def arguments_of(rng: np.random.Generator, dtype: Any, h: int, w: int, r: int) -> dict[str, Any]:
    def values(size: int) -> np.ndarray:
        if np.dtype(dtype).kind != "f":
            return rng.integers(0, 3, size).astype(dtype)
        found = rng.standard_normal(size).astype(dtype)
        # What a border must not touch: a product with zero is not nothing.
        found[rng.random(size) < 0.05] = np.inf
        found[rng.random(size) < 0.05] = -0.0
        found[rng.random(size) < 0.02] = np.nan
        return found

    sizes = {"x": h * w, "g": (2 * r + 1) ** 2 + 2, "y": h * w, "z": h * w}
    return {**{name: values(size) for name, size in sizes.items()}, "h": h, "w": w, "r": r}


def agree(chosen: dict[str, Algorithm], dtype: Any, folder: Path) -> None:
    rng = np.random.default_rng(0)
    sources, wanted, calls = {}, [], []
    for name, algorithm in chosen.items():
        for points, threads in SHAPES:
            label = f"{name}_{points}"
            sources[label] = emitted_text(inner(algorithm, points, threads))
            assert "lie inside" in sources[label]
            for place, (h, w) in enumerate(SIZES):
                arguments = arguments_of(rng, dtype, h, w, (0, 1, 2)[place % 3])
                with np.errstate(all="ignore"):
                    wanted.append(expected(algorithm, arguments))
                calls.append(cpu.Call(label, arguments, flush=("end", "start", "odd")[len(calls) % 3]))
    results = cpu.build(sources, folder).run(calls)
    for call, want, got in zip(calls, wanted, results, strict=True):
        sizes = call.arguments["h"], call.arguments["w"]
        found = differences(want, got, exact=True)
        assert not found, (call.library_name, sizes, found, sources[call.library_name])
        for name, values in want.items():
            same = np.signbit(values) == np.signbit(got[name]) if values.dtype.kind == "f" else np.array(True)
            assert np.all(same | np.isnan(values)), (call.library_name, sizes, "the sign of a zero")


@pytest.mark.slow
def test_windows_agree(tmp_path: Path) -> None:
    # A clipped window over a negative radius is empty; "copied" reads nothing outside for any radius.
    agree({name: algorithm_of(body) for name, body in KERNELS.items()}, np.float32, tmp_path)


@pytest.mark.slow
def test_bytes_and_other_sizes_agree(tmp_path: Path) -> None:
    names = ("guarded", "wrapped", "edge", "clamped", "pooled", "copied", "lopsided")
    bytes_of = {name: algorithm_of(KERNELS[name], "unsigned char") for name in names}
    agree(bytes_of, np.uint8, tmp_path)


MIXED = "T s = 0; for (int b = -1; b < 2; ++b) { if (j + b < w) s += x[i * w + j + b]; } y[p] = s;"


@pytest.mark.slow
def test_comparisons_of_unsigned_numbers_agree(tmp_path: Path) -> None:
    # What is below an unsigned size is not negative either: -1 is large.
    bodies = {"mixed": MIXED, "guarded": KERNELS["guarded"], "edge": KERNELS["edge"]}
    agree({name: algorithm_of(body, size="unsigned") for name, body in bodies.items()}, np.float32, tmp_path)
    assert "&& j >= 1 &&" in emitted_text(inner(algorithm_of(MIXED, size="size_t"), "4x1", "8x32"))


def test_the_inner_path_has_no_tests() -> None:
    for name in ("guarded", "skipped", "clamped", "pooled", "clipped", "edge"):
        text = emitted_text(inner(algorithm_of(KERNELS[name]), "4x1", "8x32"))
        path = text.split("lie inside")[1].split("Few threads")[0].split(") {", 1)[1]
        assert not any(sign in path for sign in (" ? x", " >= 0", "< h)", "< w)", "min(", "max(")), path
        assert path.count(" % ") == path.count("_i % 4"), path


def test_rows_come_by_wide_accesses() -> None:
    text = emitted_text(inner(algorithm_of(KERNELS["edge"]), "2x4", "4x8"))
    assert "float x_window[4][6];" in text
    # The row above the points, those of the points, and the one below; only the points' own have ends.
    assert text.count("*reinterpret_cast<const Pack<float, 4>*>(x_row") == 3
    assert "x_window[r_2][0] = x_row_2[-1];" in text
    assert "x_window[0][0]" not in text
    assert "w % 4 == 0 && (reinterpret_cast<size_t>(x) | reinterpret_cast<size_t>(y)) % 16 == 0" in text
    assert "x_window" not in emitted_text(inner(algorithm_of(KERNELS["edge"]), "4x1", "4x8"))


def test_accesses_are_no_wider_than_rows_are_aligned() -> None:
    text = emitted_text(inner(algorithm_of(KERNELS["lopsided"], "unsigned char"), "2x4", "4x8"))
    assert "packed = *reinterpret_cast<const Pack<unsigned, 1>*>(&x_row[g_2 * 4]);" in text


def test_conditions_on_registers_are_evaluated_without_jumps() -> None:
    cells = f"int s = 0; {SMALL} if (a != 0 || b != 0) s += x[(i + a + h) % h * w + (j + b + w) % w];"
    texts = [
        emitted_text(inner(algorithm_of(f"{cells} y[p] = {value};", "unsigned char"), "4x4", "4x8"))
        for value in ("s == 3 || s == 2 && x[p] != 0", "s == 3 || g[s] != 0", "s != 0 && 7 / s > 2")
    ]
    assert "(s[i_i][j_i] == 3) | ((s[i_i][j_i] == 2) & (x_window[i_i + 1][j_i + 1] != 0))" in texts[0]
    # What reads memory, or may divide by zero, stays under its condition.
    assert "s[i_i][j_i] == 3 || g[" in texts[1]
    assert "s[i_i][j_i] != 0 && 7 / s[i_i][j_i] > 2" in texts[2]


def test_lanes_share_the_points_beside_a_border() -> None:
    text = emitted_text(inner(algorithm_of(KERNELS["guarded"]), "4x1", "4x8"))
    assert "__ballot_sync(0xffffffffu, !inside && i_first < h && j < w)" in text
    assert "return;" not in text, "the warp needs all its lanes"
    with pytest.raises(IllegalMove, match="whole warps"):
        inner(algorithm_of(KERNELS["guarded"]), "4x1", "2x8")


BOXES = {
    "faces": "if (k == 0 || i == 0 || j == 0 || k == d - 1 || i == h - 1 || j == w - 1) y[p] = x[p];"
    " else y[p] = x[p - 1] + x[p + 1] + x[p - w] + x[p + w] + x[p - h * w] + x[p + h * w] - 6 * x[p];",
    "box": "float s = 0; for (int c = -1; c < 2; ++c) for (int a = -1; a < 2; ++a) for (int b = -1; b < 2; ++b)"
    " if (k + c >= 0 && k + c < d && i + a >= 0 && i + a < h && j + b >= 0 && j + b < w) s += x[p + (c * h + a) * w + b]; y[p] = s;",
}


POINT = "int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z;"
IN_BOX = f"{POINT} if (i >= h || j >= w) return; int p = (k * h + i) * w + j;"


def box_algorithm(body: str) -> Algorithm:
    return box(f"{IN_BOX} {body}", "dim3((w + 31) / 32, (h + 7) / 8, d), dim3(32, 8)")


@pytest.mark.slow
def test_windows_over_planes_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sources, wanted, calls = {}, [], []
    for name, body in BOXES.items():
        algorithm = box_algorithm(body)
        for points, planes in (("2x4", "1"), ("1x4", "2"), ("4x1", "4")):
            label = f"{name}_{points}_{planes}"
            values = {"points": points, "threads": "4x8", "planes": planes}
            sources[label] = emitted_text(MOVES["inner_points"].apply(Plan(algorithm, Schedule()), values))
            for d, h, w in ((1, 2, 3), (3, 3, 3), (7, 9, 20), (5, 12, 41)):
                x, y = rng.standard_normal((2, d * h * w)).astype(np.float32)
                arguments = {"x": x, "y": y, "d": d, "h": h, "w": w}
                wanted.append(expected(algorithm, arguments))
                calls.append(cpu.Call(label, arguments, flush=("end", "start", "odd")[len(calls) % 3]))
    for call, want, got in zip(calls, wanted, cpu.build(sources, tmp_path).run(calls), strict=True):
        found = differences(want, got, exact=True)
        assert not found, (call.library_name, found, sources[call.library_name])


def test_planes_are_offered_where_windows_reach_into_them() -> None:
    offered = MOVES["inner_points"].options(Plan(box_algorithm(BOXES["box"]), Schedule()))
    flat = box_algorithm("y[p] = j > 0 ? x[p - 1] : 0;")
    assert "planes" in [option.name for option in offered]
    assert "planes" not in [o.name for o in MOVES["inner_points"].options(Plan(flat, Schedule()))]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y[p] = x[p];", "no access is guarded"),
        (
            "if (i > 0 && i < h - 1 && 0 < j && j <= w - 2) y[p] = x[p - 1] + x[p + w + 1];",
            "no access is guarded",
        ),
        ("y[p] = x[p] > 0 ? x[p] : g[0];", "no access is guarded"),
        ("y[p] = (i + j) % 2 ? x[p] : g[j];", "no access is guarded"),
        (
            "T s = 0; for (int a = 0; a < i; ++a) if (a + j < w) s += x[a * w + j]; y[p] = s;",
            "length of a loop differs",
        ),
    ],
)
def test_other_kernels_are_refused(body: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=reason):
        inner(algorithm_of(body), "4x1", "8x32")
