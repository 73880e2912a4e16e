"""Lanes that take the next element when they are done compute what they computed, bit for bit.

The kernels run on the CPU, their threads as fibres, at sizes around those of warps, blocks and stretches.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cpu_program import printed
from tests.skills.applying import rewritten
from tests.skills.test_equivalence import HERE, serial
from tests.skills.uneven_spellings import SPELLINGS, UnevenText

SKILL = "parallelism/refill_lanes"
POINTS = {"work": ("8", "32", "16"), "turns": ("8", "32", "64")}
SIZES = (0, 1, 31, 33, 256, 1000, 2051)
LENGTH = 2112
DRIVER = """
int main() {
    typedef void (*Launcher)(const T*, R*, int);
    const Launcher all[] = {%(launchers)s};
    for (Launcher launcher : all)
        for (int n : {%(sizes)s}) {
            std::vector<T> in(2 * %(length)d);
            std::vector<R> out(%(length)d);
            unsigned seed = 7;
            for (T& x : in) { seed = seed * 1664525u + 1013904223u; x = (T)((int)(seed >> 12) - (1 << 19)) / (T)(1 << 18); }
            if (std::is_integral<T>::value) for (T& x : in) { seed = seed * 1664525u + 1013904223u; x = (T)(seed >> 9); }
            launcher(in.data(), out.data(), n);
            std::fwrite(out.data(), sizeof(R), out.size(), stdout);
        }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.name)
def test_lanes_that_take_the_next_element_keep_the_results(spelling: UnevenText, tmp_path: Path) -> None:
    sources = [spelling.source, *rewritten(SKILL, spelling.source, **POINTS)]
    names = [f"v{index}" for index in range(len(sources))]
    text = '#include "cpu.hpp"\n' + "".join(map(serial, sources, names))
    text += f"typedef {spelling.kind} T;\ntypedef {spelling.result} R;\n" + DRIVER % {
        "launchers": ", ".join(f"{name}::f" for name in names),
        "sizes": ", ".join(map(str, SIZES)),
        "length": LENGTH,
    }
    rows = np.frombuffer(printed(tmp_path, text, HERE), dtype=np.uint8).reshape(len(sources), -1)
    assert rows[0].any()
    for point, row in zip(zip(*POINTS.values(), strict=True), rows[1:], strict=True):
        different = np.flatnonzero(row != rows[0])
        assert not different.size, f"{point}: {different.size} bytes, first at {different[0]}"
