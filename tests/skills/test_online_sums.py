"""One pass gives what two passes give, for masked rows, infinities, NaN and empty rows too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.apply import apply_step, find_steps
from tests.cpu_program import printed
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for
from tests.skills.test_equivalence import HERE, serial

SKILL = "compute/single_pass_statistics"
LENGTH = 12
INF, NAN = float("inf"), float("nan")
ROWS = [
    [-INF] * LENGTH,
    [-INF, -INF, -INF, 1, -2, 3, -INF, 0.5, 3, 80, -80, 2],
    [1, 2, INF, 4, -INF, 6, 7, 8, 9, 1, 2, 3],
    [NAN, -INF, -INF, 4, 5, 6, 7, 8, 9, 1, 2, 3],
    [-INF, -INF, 4, NAN, 5, 6, 7, 8, 9, 1, 2, 3],
    [3e38, -3e38, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [-INF, -3.4e38, -INF, -3.4e38, *[-INF] * 8],
    [7.25] * LENGTH,
    list(range(LENGTH)),
    [1e4 + k / 8 for k in range(LENGTH)],
]
MAXIMA = {
    "finite": "float m = -3.402823466e+38f; for (int j = 0; j < n; ++j) if (x[j] > m) m = x[j];",
    "infinite": "float m = -INFINITY; for (int j = 0; j < n; ++j) m = fmaxf(m, x[j]);",
    "element": "float m = x[0]; for (int j = 1; j < n; ++j) m = x[j] > m ? x[j] : m;",
}
SUMS = {
    "plain": "float s = 0.0f; for (int j = 0; j < n; ++j) s += expf(x[j] - m);",
    "scaled": "float s = 0.0f; for (int j = 0; j < n; ++j) s += expf((x[j] - m) * 0.25f);",
}
MEAN = "float m = 0; for (int j = 0; j < n; ++j) m += x[j]; m /= n;"
VARIANCE = "float s = 0; for (int j = 0; j < n; ++j) { float d = x[j] - m; s += d * d; }"
DRIVER = """
int main() {
    const float in[] = {%(values)s};
    const int rows = sizeof(in) / sizeof(in[0]) / %(length)d;
    for (auto f : {%(launchers)s})
        for (int r = 0; r < rows; ++r)
            for (int n : {0, 1, 2, 5, %(length)d}) {
                float out[2];
                f(in + r * %(length)d, out, n);
                std::fwrite(out, 4, 2, stdout);
            }
}
"""


def spelling(passes: str) -> str:
    """Return a kernel that takes two statistics of a row."""
    return (
        "__global__ void k(const float* x, float* out, int n) {\n"
        f"    {passes}\n    out[0] = m; out[1] = s;\n}}\n"
        'extern "C" void f(const float* x, float* out, int n) { k<<<1, 1>>>(x, out, n); }\n'
    )


@pytest.mark.slow
def test_one_pass_agrees_with_two(tmp_path: Path) -> None:
    context, texts, names = context_for("f"), ['#include "cpu.hpp"'], []
    pairs = [f"{first} {second}" for first in MAXIMA.values() for second in SUMS.values()]
    pairs.append(f"{MEAN} {VARIANCE}")
    for number, passes in enumerate(pairs):
        candidate = Candidate.of("k.cu", {"k.cu": spelling(passes)})
        found, refusals = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context)
        assert found, refusals
        result = apply_step(candidate, found[0].step, LIBRARY, context).candidate
        texts += [serial(candidate.source, f"before{number}"), serial(result.source, f"after{number}")]
        names += [f"before{number}::f", f"after{number}::f"]
    values = ", ".join(repr(float(v)) for row in ROWS for v in row)
    values = values.replace("inf", "INFINITY").replace("nan", "NAN")
    driver = DRIVER % {"values": values, "length": LENGTH, "launchers": ", ".join(names)}
    raw = printed(tmp_path, "\n".join([*texts, driver]), HERE)
    results = np.frombuffer(raw, dtype=np.float32).reshape(len(pairs), 2, -1)
    for passes, (before, after) in zip(pairs, results, strict=True):
        same = np.isclose(after, before, rtol=1e-5, atol=1e-6, equal_nan=True)
        if VARIANCE in passes:
            same |= ~np.isfinite(before) & ~np.isfinite(after)  # where squares overflow
        wrong = np.flatnonzero(~same)
        assert not wrong.size, [(passes, index, before[index], after[index]) for index in wrong[:8]]
