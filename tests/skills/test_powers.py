"""Rewritten powers agree with `pow` up to rounding, at zeros, infinities, NaN and negative bases too."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.apply import apply_step, find_steps
from tests.cpu_program import printed
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for
from tests.skills.test_equivalence import HERE, serial

SKILL = "compute/small_powers"
EXPONENTS = ("2", "3", "4", "-1", "-2", "0.5", "1.5", "2.5", "3.5", "-0.5", "-1.5", "-2.5")
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, -2.5, 1e-40, -1e-40, 1e-30, 1e30, -1e30, 3e38]
VALUES = [*SPECIAL, *np.random.default_rng(5).uniform(-4, 9, 200)]
DRIVER = """
int main() {
    const double in[] = {%(values)s};
    const int n = sizeof(in) / sizeof(in[0]);
    std::vector<double> out(n);
    for (auto f : {%(launchers)s}) { f(in, out.data(), n); std::fwrite(out.data(), 8, n, stdout); }
}
"""


def spelling(kind: str, exponent: str) -> str:
    """Return a kernel that takes one power of every value."""
    if kind == "float":
        dotted = exponent if "." in exponent else f"{exponent}.0"
        call = f"pow((float)in[i], {dotted}f)"
    else:
        call = f"std::pow(in[i], {exponent})"
    return (
        "__global__ void k(const double* in, double* out, int n) {\n"
        f"    for (int i = 0; i < n; ++i) {{\n        out[i] = {call};\n    }}\n}}\n"
        'extern "C" void f(const double* in, double* out, int n) { k<<<1, 1>>>(in, out, n); }\n'
    )


def agree(before: np.ndarray, after: np.ndarray, kind: str) -> np.ndarray:
    """Return where two results are the same value, up to rounding; zeros with their sign."""
    relative, tiny = (1e-6, 3e-38) if kind == "float" else (1e-14, 0.0)
    with np.errstate(invalid="ignore"):
        close = np.abs(before - after) <= np.abs(before) * relative + tiny
    zero = (before == 0) & (after == 0)
    same = np.where(zero, np.signbit(before) == np.signbit(after), before == after)
    return same | (np.isnan(before) & np.isnan(after)) | (close & np.isfinite(before) & ~zero)


def test_powers_agree(tmp_path: Path) -> None:
    context, texts, names = context_for("f"), ['#include "cpu.hpp"'], []
    pairs = [(kind, exponent) for kind in ("float", "double") for exponent in EXPONENTS]
    for number, (kind, exponent) in enumerate(pairs):
        candidate = Candidate.of("k.cu", {"k.cu": spelling(kind, exponent)})
        step = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context)[0][0].step
        result = apply_step(candidate, step, LIBRARY, context).candidate
        assert "pow(" not in result.source
        texts += [serial(candidate.source, f"before{number}"), serial(result.source, f"after{number}")]
        names += [f"before{number}::f", f"after{number}::f"]
    values = ", ".join(map(repr, map(float, VALUES))).replace("inf", "INFINITY").replace("nan", "NAN")
    driver = DRIVER % {"values": values, "launchers": ", ".join(names)}
    raw = printed(tmp_path, "\n".join([*texts, driver]), HERE)
    for (kind, exponent), (before, after) in zip(
        pairs, np.frombuffer(raw).reshape(len(pairs), 2, -1), strict=True
    ):
        wrong = np.flatnonzero(~agree(before, after, kind))
        assert not wrong.size, [(kind, exponent, VALUES[i], before[i], after[i]) for i in wrong[:5]]
