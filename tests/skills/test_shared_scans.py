"""Scans over shared arrays, as people write them, compute the same when warps take them by shuffles.

They run on the CPU as fibres, at sizes around those of blocks, with pointers that are aligned and that aren't.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.apply import apply_step, find_steps
from tests.cpu_program import printed
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for
from tests.skills.scan_spellings import SPELLINGS, Spelling
from tests.skills.test_equivalence import HERE, serial

INTEGERS, FLOATS = "parallelism/warp_scan", "parallelism/warp_scan_of_floats"
SIZES = (1, 31, 128, 1000, 1024, 2055)
LENGTH = 4096
DRIVER = """
int main() {
    typedef void (*Launcher)(const T*, T*, T*, int);
    const Launcher all[] = {%(launchers)s};
    for (Launcher launcher : all)
        for (int n : {%(sizes)s}) for (int offset : {0, 1}) {
            std::vector<T> in(%(length)d), out(%(length)d), sums(%(length)d);
            unsigned seed = 7;
            for (T& x : in) { seed = seed * 1664525u + 1013904223u; x = (T)((int)(seed >> 12) - (1 << 19)) / (T)64; }
            launcher(in.data() + offset, out.data() + offset, sums.data(), n);
            std::fwrite(out.data(), sizeof(T), out.size(), stdout);
            std::fwrite(sums.data(), sizeof(T), sums.size(), stdout);
        }
}
"""


def skill_of(spelling: Spelling) -> str:
    return FLOATS if spelling.kind in ("float", "double") else INTEGERS


def rewritten(spelling: Spelling) -> dict[str, str]:
    """Return what the skill makes of a spelling, by label."""
    candidate, context = Candidate.of("k.cu", {"k.cu": spelling.source}), context_for("f")
    found, refusals = find_steps(candidate, LIBRARY.get(skill_of(spelling)), LIBRARY, context)
    assert found, [refusal.reason for refusal in refusals]
    return {
        f"{spelling.name} {entry.step.label}": apply_step(
            candidate, entry.step, LIBRARY, context
        ).candidate.source
        for entry in found
    }


def run(kind: str, sources: list[str], folder: Path) -> np.ndarray:
    """Return the outputs of each source, one row each."""
    names = [f"v{index}" for index in range(len(sources))]
    fixed = [
        s.replace("extern __shared__ volatile unsigned data[]", "__shared__ unsigned data[1024]")
        for s in sources
    ]
    text = '#include "cpu.hpp"\n#define cuda_runtime_h\n'
    text += "".join(
        serial(source.replace("#include <cuda_runtime.h>", ""), name)
        for source, name in zip(fixed, names, strict=True)
    )
    text += f"typedef {kind} T;\n" + DRIVER % {
        "launchers": ", ".join(f"{name}::f" for name in names),
        "sizes": ", ".join(map(str, SIZES)),
        "length": LENGTH,
    }
    raw = printed(folder, text, HERE)
    types = {"int": np.int32, "unsigned": np.uint32, "float": np.float32, "double": np.float64}
    return np.frombuffer(raw, dtype=types.get(kind, np.int64)).reshape(len(sources), -1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({spelling.kind for spelling in SPELLINGS}))
def test_scans_keep_their_results(kind: str, tmp_path: Path) -> None:
    labels: list[str] = []
    sources: list[str] = []
    firsts: list[int] = []
    for spelling in SPELLINGS:
        if spelling.kind == kind:
            first = len(sources)
            made = rewritten(spelling)
            labels += [spelling.name, *made]
            sources += [spelling.source, *made.values()]
            firsts += [first] * (1 + len(made))
    rows = run(kind, sources, tmp_path)
    for label, row, first in zip(labels, rows, firsts, strict=True):
        if kind in ("float", "double"):
            np.testing.assert_allclose(row, rows[first], rtol=1e-5, atol=0.5, err_msg=label)
        else:
            different = np.flatnonzero(row != rows[first])
            assert not different.size, f"{label}: {different.size} values, first at {different[0]}"
