"""Kernels in which a careless rewrite goes wrong: every sequence of moves leaves them what they are.

KERNELSKILL_RANDOM=N takes N sequences a kernel.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import IllegalMove
from kernelskill.source.unit import SourceUnit
from tests.algorithm.emission import Case, compare, emitted_text, expected, is_exact, plans

SEQUENCES = int(os.environ.get("KERNELSKILL_RANDOM", "0")) or 1
SIZES = ((1, 1), (3, 4), (31, 33), (33, 31), (4, 100), (100, 5), (65, 3), (32, 32))
PARAMETERS = "const float* a, float* b, float* out, int n, int m"
ROWS = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;"
POINTS = (
    "int col = blockIdx.x * blockDim.x + threadIdx.x; int row = blockIdx.y * blockDim.y + threadIdx.y;"
    " if (row >= n || col >= m) return;"
)
SQUARE_SIZES = SIZES[:5] + SIZES[6:]
"""Without 100 x 100 results: the 65 x 65 cross every tile too."""
SQUARE = POINTS.replace("col >= m", "col >= n")
BODIES = {
    # What was in memory is read after a part of it was written.
    "two outputs in place": f"""{ROWS}
        float old = out[i]; out[i] = old * 0.5f + a[i]; b[i] = b[i] - out[i] * old;""",
    "swapped buffers": f"{ROWS} float t = out[i]; out[i] = b[i]; b[i] = t;",
    # Axes and loops of one length are not one loop.
    "row by row product of squares": f"""{ROWS}
        for (int j = 0; j < n; ++j) {{
            float sum = 0.0f;
            for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
            out[i * n + j] = sum;
        }}""",
    "square product": f"""{SQUARE}
        float sum = 0.0f;
        for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
        out[row * n + col] = sum;""",
    "product with itself transposed": f"""{SQUARE}
        float sum = 0.0f;
        for (int k = 0; k < m; ++k) sum += a[row * m + k] * a[col * m + k];
        out[row * n + col] = sum;""",
    "statistics of rows": f"""{ROWS}
        float top = -INFINITY;
        for (int j = 0; j < m; ++j) top = fmaxf(top, a[i * m + j]);
        float sum = 0.0f;
        for (int j = 0; j < m; ++j) sum += a[i * m + j] - top;
        for (int j = 0; j < m; ++j) out[i * m + j] = (a[i * m + j] - top) / sum;""",
    # What a condition protects is not read without it.
    "reads where an index says so": f"{ROWS} int place = (int)(a[i] * 8.0f); if (place >= 0 && place < n) out[i] = b[place];",
    "sums where an index says so": f"""{ROWS}
        int place = (int)(a[i] * 8.0f);
        if (place >= 0 && place < n) {{
            float sum = 0.0f;
            for (int k = 0; k < m; ++k) sum += b[place * m + k];
            out[i] = sum;
        }}""",
    "zero outside": f"""{POINTS}
        float sum = 0.0f;
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {{
                int y = row + dy, x = col + dx;
                if (x < 0 || y < 0 || x >= m || y >= n) continue;
                sum += a[y * m + x] * b[(dy + 1) * 3 + dx + 1];
            }}
        out[row * m + col] = sum;""",
    "inner points only": f"""{POINTS}
        if (row > 0 && col > 0 && row < n - 1 && col < m - 1)
            out[row * m + col] = 0.25f * (a[(row - 1) * m + col] + a[(row + 1) * m + col]
                                          + a[row * m + col - 1] + a[row * m + col + 1]);""",
    "the first element apart": f"{ROWS} out[i] = i > 0 ? a[i] - a[i - 1] : a[0];",
    "clamped": f"""{ROWS}
        float sum = 0.0f;
        for (int k = -2; k <= 2; ++k) sum += a[min(max(i + k, 0), n - 1)] * b[k + 2];
        out[i] = sum;""",
    "a triangle": f"{ROWS} float sum = 0.0f; for (int k = 0; k <= i; ++k) sum += a[k] * b[i - k]; out[i] = sum;",
    "a step in the loop": f"{ROWS} float sum = 0.0f; for (int k = i % 3; k < m; k += 2) sum += a[i * m + k]; out[i] = sum;",
    # Division of negative numbers.
    "halves towards zero": f"{ROWS} out[i] = a[(i - n) / 2 + n] * (float)((i - 5) % 3);",
    # The user's names are the emitter's.
    "names": """int tid = blockIdx.x * blockDim.x + threadIdx.x; if (tid >= n) return;
        float sum = 0.0f;
        for (int lane = 0; lane < m; ++lane) { float value = a[tid * m + lane]; sum += value * b[lane]; }
        out[tid] = sum;""",
    # Not a number, and infinities beside zeros of a tile.
    "ternary maximum": f"{ROWS} float top = a[i * m]; for (int k = 1; k < m; ++k) top = a[i * m + k] > top ? a[i * m + k] : top; out[i] = top;",
    "chosen factors": f"""{SQUARE}
        float sum = 0.0f;
        for (int k = 0; k < m; ++k) sum += k < col ? a[row * m + k] * b[k * n + col] : 0.0f;
        out[row * n + col] = sum;""",
    "sums of differences": f"""{SQUARE}
        float sum = 0.0f;
        for (int k = 0; k < m; ++k) {{ float d = a[row * m + k] - b[col * m + k]; sum += d * d; }}
        out[row * n + col] = sqrtf(sum);""",
    "sums that start elsewhere": f"""{SQUARE}
        float sum = out[row * n + col] * 0.5f;
        for (int k = 0; k < m; ++k) sum += a[row * m + k] * b[k * n + col];
        out[row * n + col] = sum;""",
    "a product and its transpose": f"{POINTS} out[col * n + row] = a[row * m + col];",
    "two of three": f"{ROWS} out[3 * i] = a[2 * i]; out[3 * i + 1] = a[2 * i + 1] * b[i];",
    "mixed precision": f"{ROWS} double sum = 0.0; for (int k = 0; k < m; ++k) sum += a[i * m + k] * 0.1; out[i] = sum;",
    # Arithmetic that wraps on purpose.
    "hashes": f"{ROWS} unsigned h = i * 2654435761u; h ^= h >> 13; h *= 0x5bd1e995u; out[i] = a[h % n] + (h >> 8) * (1.0f / 16777216.0f);",
    # The same in 32 bits beside indices in 64: what is declared wider is narrowed before it can wrap.
    "hashes beside wide indices": """size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
        unsigned id = blockIdx.x * blockDim.x + threadIdx.x; if (at >= n) return;
        unsigned h = (id + 1) * 2654435761u ^ (unsigned)m;
        out[at] = a[at] + (h == (2654435761u ^ (unsigned)m) ? 3.0f : 0.0f) + (-id) / 3u % 1000u + (id * 2654435761u >> 9) % 100u + (float)(-id - 2u);""",
}


def text_of(body: str) -> str:
    width = "m" if "col >= m" in body else "n"
    launch = "(n + 63) / 64, 64"
    if "blockIdx.y" in body:
        launch = f"dim3(({width} + 15) / 16, (n + 7) / 8), dim3(16, 8)"
    head = f"#include <math.h>\n__global__ void kernel({PARAMETERS})\n{{\n    {body}\n}}\n"
    return f'{head}extern "C" void f({PARAMETERS}) {{ kernel<<<{launch}>>>(a, b, out, n, m); }}\n'


def arguments_of(n: int, m: int, special: bool) -> dict[str, Any]:
    """Return arrays that are no larger than the largest use of any kernel."""
    rng = np.random.default_rng(n * 1000 + m)
    size = max(n * n, n * m, 3 * n, 9) + n
    a, b, out = (rng.standard_normal(size).astype(np.float32) for _ in range(3))
    if special:
        for array in (a, b):
            array[rng.integers(0, size, size // 8 + 1)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return {"a": a, "b": b, "out": out, "n": n, "m": m}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_moves_leave_the_kernel_what_it_is(name: str, tmp_path: Path) -> None:
    text = text_of(BODIES[name])
    unit = SourceUnit.parse(text)
    algorithm = lift_kernel(unit, unit.kernels[0]).algorithm
    moved = []
    for seed in range(SEQUENCES):
        try:
            moved += [(label, plan) for label, plan in plans(algorithm, np.random.default_rng(seed), 4)]
        except IllegalMove as refused:
            pytest.skip(f"not emitted: {refused}")
    texts = {emitted_text(plan): (label, is_exact(plan)) for label, plan in moved}
    texts[text] = ("the kernel itself", True)
    cases = []
    for special in (False, True):
        for n, m in SQUARE_SIZES if SQUARE in BODIES[name] else SIZES:
            arguments = arguments_of(n, m, special)
            wanted = expected(algorithm, arguments)
            for source, (label, exact) in texts.items():
                if exact or not special:
                    cases.append(Case(f"{label} at {n} x {m}", source, arguments, wanted, exact))
    problems = compare(cases, tmp_path)
    assert not problems, problems[0]
