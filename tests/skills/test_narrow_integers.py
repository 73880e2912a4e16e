"""Loops whose turns are done in 32 bits compute what they computed: at the bounds, near 2^32 and near 2^64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.apply import apply_step, find_steps
from tests.cpu_program import printed
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for
from tests.skills.narrow_spellings import KINDS, SPELLINGS
from tests.skills.test_equivalence import HERE, serial

SKILL, REFILL, STRETCHES = "compute/narrow_integers", "parallelism/refill_lanes", "compute/stretches_of_turns"
BOUNDS = (1431655764, 53024287, (1 << 31) - 1, 65535, 65536, (1 << 32) - 1)
LENGTH = 1000
DRIVER = """
int main() {
    typedef void (*Launcher)(const T*, T*, int);
    const Launcher all[] = {%(launchers)s};
    const unsigned long long given[] = {%(values)s};
    for (Launcher launcher : all) {
        std::vector<T> in(%(length)d), out(%(length)d);
        for (int i = 0; i < %(length)d; ++i) in[i] = (T)given[i];
        launcher(in.data(), out.data(), %(length)d);
        std::fwrite(out.data(), sizeof(T), out.size(), stdout);
    }
}
"""


def values() -> list[int]:
    """Return numbers of all lengths, those round the bounds first."""
    near = [(bound + by) % (1 << 64) for bound in (*BOUNDS, 0, 1 << 63) for by in range(-4, 5)]
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 65, LENGTH - len(near))
    return near + [int(rng.integers(0, 1 << 63)) * 2 + 1 >> int(64 - length) for length in lengths]


def made_of(name: str, source: str) -> list[tuple[str, str]]:
    """Return a kernel and what is made of it, each with what it is."""
    made = rewrites(source)
    assert made, name
    return [(name, source), *((f"{name}:{label}", text) for label, text in made)]


def rewrites(source: str) -> list[tuple[str, str]]:
    """Return what the skill makes of a source, and with lanes that are refilled and stretches of turns."""
    found = []
    context = context_for("f")
    for chain in ((SKILL,), (REFILL, SKILL), (SKILL, REFILL), (REFILL, SKILL, STRETCHES)):
        begun = [("", Candidate.of("k.cu", {"k.cu": source}))]
        for name in chain:
            begun = [
                (f"{label} {entry.step.label}", apply_step(base, entry.step, LIBRARY, context).candidate)
                for label, base in begun
                for entry in _first(
                    find_steps(base, LIBRARY.get(name), LIBRARY, context)[0], alone=len(chain) == 1
                )
            ]
        found += [(label, candidate.source) for label, candidate in begun]
    return found


def _first(steps, *, alone):  # type: ignore[no-untyped-def]
    """Return the steps with the shortest stretches, where there are stretches; of narrow turns one and several."""
    wanted = ("8",)
    if steps and steps[0].step.skill == SKILL:
        several = {dict(entry.step.parameters)["turns"] for entry in steps} > {"1"}
        wanted = ("1", "4") if alone else ("4",) if several else ("1",)
    small = [entry for entry in steps if dict(entry.step.parameters)["turns"] in wanted]
    return [entry for entry in small if dict(entry.step.parameters).get("work", "8") == "8"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_narrow_turns_keep_the_results(kind: str, tmp_path: Path) -> None:
    originals = {name: text for name, text in SPELLINGS.items() if f"const {kind}* in" in text}
    entries = [(name, text) for name, source in originals.items() for name, text in made_of(name, source)]
    names = [f"v{index}" for index in range(len(entries))]
    texts = [serial(text, name) for (_, text), name in zip(entries, names, strict=True)]
    text = (
        '#include "cpu.hpp"\n'
        + "".join(texts)
        + f"typedef {kind} T;\n"
        + DRIVER
        % {
            "launchers": ", ".join(f"{name}::f" for name in names),
            "values": ", ".join(f"{value}ULL" for value in values()),
            "length": LENGTH,
        }
    )
    rows = np.frombuffer(printed(tmp_path, text, HERE), dtype=np.uint64).reshape(len(entries), -1)
    first = rows[0]
    for (label, source), row in zip(entries, rows, strict=True):
        if label in SPELLINGS:
            first = row
            assert row.any(), label
        different = np.flatnonzero(row != first)
        assert not different.size, f"{label}: {different.size}, first at {different[0]}: {source}"
