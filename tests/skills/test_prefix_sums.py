"""Prefix sums over three launches, as people write them, compute the same in one pass.

They run on the CPU as fibres, at sizes around those of tiles, with pointers that are aligned and that aren't.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cpu_program import printed
from tests.skills.applying import rewritten
from tests.skills.prefix_sum_spellings import SPELLINGS, PrefixSum
from tests.skills.test_equivalence import HERE, serial

INTEGERS, FLOATS = "parallelism/single_pass_scan", "parallelism/single_pass_scan_of_floats"
POINTS = {"items": ("4", "16", "32"), "threads": ("128", "256", "512")}
SIZES = (1, 127, 128, 1000, 4096, 4097, 9001)
LENGTH = 9216
DRIVER = """
int main() {
    typedef void (*Launcher)(const T*, T*, N);
    const Launcher all[] = {%(launchers)s};
    for (Launcher launcher : all)
        for (int n : {%(sizes)s}) for (int offset : {%(offsets)s}) {
            std::vector<T> in(2 * %(length)d), out(%(length)d);
            unsigned seed = 7;
            for (T& x : in) { seed = seed * 1664525u + 1013904223u; x = (T)((int)(seed >> 12) - (1 << 19)) / (T)64; }
            T* target = offset < 0 ? in.data() - offset : out.data() + offset;
            launcher(in.data() + (offset > 0), target, n);
            std::fwrite(out.data(), sizeof(T), out.size(), stdout);
            std::fwrite(in.data(), sizeof(T), in.size(), stdout);
        }
}
"""
TYPES = {
    "int": np.int32,
    "unsigned": np.uint32,
    "float": np.float32,
    "double": np.float64,
    "long long": np.int64,
}


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.name)
def test_prefix_sums_keep_their_results(spelling: PrefixSum, tmp_path: Path) -> None:
    skill = FLOATS if spelling.kind in ("float", "double") else INTEGERS
    sources = [spelling.source, *rewritten(skill, spelling.source, **POINTS)]
    names = [f"v{index}" for index in range(len(sources))]
    text = '#include "cpu.hpp"\n'
    for source, name in zip(sources, names, strict=True):
        text += serial(source.replace("#include <cuda_runtime.h>", ""), name)
    text += f"typedef {spelling.kind} T;\ntypedef {spelling.count} N;\n" + DRIVER % {
        "launchers": ", ".join(f"{name}::f" for name in names),
        "sizes": ", ".join(map(str, SIZES)),
        "length": LENGTH,
        "offsets": "0, 1, -3" if spelling.takes_overlaps else "0, 1",
    }
    rows = np.frombuffer(printed(tmp_path, text, HERE), dtype=TYPES[spelling.kind]).reshape(len(sources), -1)
    for point, row in zip(zip(*POINTS.values(), strict=True), rows[1:], strict=True):
        if spelling.kind in ("float", "double"):
            np.testing.assert_allclose(row, rows[0], rtol=1e-5, atol=0.5, err_msg=str(point))
        else:
            different = np.flatnonzero(row != rows[0])
            assert not different.size, f"{point}: {different.size} values, first at {different[0]}"
