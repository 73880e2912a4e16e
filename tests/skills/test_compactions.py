"""Compactions over three launches, as people write them, keep the same in one pass.

They run on the CPU as fibres, at sizes around those of tiles, with pointers that are aligned and that aren't, and with
arrays that overlap.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cpu_program import printed
from tests.skills.applying import rewritten
from tests.skills.compaction_spellings import SPELLINGS, CompactionText
from tests.skills.test_equivalence import HERE, serial

SKILL = "parallelism/single_pass_compaction"
POINTS = {"items": ("4", "16", "8"), "threads": ("128", "256", "512")}
SIZES = (1, 63, 64, 1000, 4096, 9001)
LENGTH = 9216
DRIVER = """
int main() {
    typedef void (*Launcher)(const T*, T*, C*, int);
    const Launcher all[] = {%(launchers)s};
    for (Launcher launcher : all)
        for (int n : {%(sizes)s}) for (int offset : {0, 1, -1}) {
            std::vector<T> in(2 * %(length)d), out(%(length)d);
            std::vector<C> kept(4);
            unsigned seed = 7;
            for (T& x : in) { seed = seed * 1664525u + 1013904223u; x = (T)((int)(seed >> 12) - (1 << 19)) / (T)64; }
            T* target = offset < 0 ? in.data() + 3 : out.data() + offset;
            launcher(in.data() + (offset > 0), target, kept.data(), n);
            std::fwrite(kept.data(), sizeof(C), 4, stdout);
            std::fwrite(out.data(), sizeof(T), out.size(), stdout);
            std::fwrite(in.data(), sizeof(T), in.size(), stdout);
        }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.name)
def test_compactions_keep_their_results(spelling: CompactionText, tmp_path: Path) -> None:
    sources = [spelling.source, *rewritten(SKILL, spelling.source, **POINTS)]
    names = [f"v{index}" for index in range(len(sources))]
    text = '#include "cpu.hpp"\n'
    for source, name in zip(sources, names, strict=True):
        text += serial(source.replace("#include <cuda_runtime.h>", ""), name)
    text += f"typedef {spelling.kind} T;\ntypedef {spelling.counts} C;\n" + DRIVER % {
        "launchers": ", ".join(f"{name}::f" for name in names),
        "sizes": ", ".join(map(str, SIZES)),
        "length": LENGTH,
    }
    if "__restrict__" in spelling.source:
        text = text.replace("{0, 1, -1}", "{0, 1}")
    rows = np.frombuffer(printed(tmp_path, text, HERE), dtype=np.uint8).reshape(len(sources), -1)
    for point, row in zip(zip(*POINTS.values(), strict=True), rows[1:], strict=True):
        different = np.flatnonzero(row != rows[0])
        assert not different.size, f"{point}: {different.size} bytes, first at {different[0]}"
