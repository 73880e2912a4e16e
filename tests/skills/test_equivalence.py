"""Every step that a skill offers on a corpus of kernels computes what the original computes.

The kernels run on the CPU, one thread after the other, or as fibres where threads wait for one another.
Exact skills must keep every bit, also where pointers overlap and nothing is promised; the others may
round, but not in kernels whose results are integers. Sums of floating-point numbers by atomics have no
order that could be kept. What every skill makes of the corpus compiles for a GPU, too.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kernelskill.resources import data_folder
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.proposal import Exactness
from kernelskill.schema.task import Promise
from kernelskill.skills.apply import FoundStep, apply_step, find_steps
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.unit import SourceUnit
from tests.cpu_program import printed
from tests.skills.contexts import context_for

EVERYTHING = bool(os.environ.get("KERNELSKILL_EVERY_STEP"))
"""Whether to try every step; otherwise one a skill and file."""
HERE = Path(__file__).parent
CORPUS = sorted((HERE / "corpus").glob("*.cu"))
LIBRARY = SkillLibrary.load([data_folder("skills")])
SIZES = ((1, 1), (1, 20), (7, 5), (33, 20), (64, 64), (5, 64), (64, 3), (2, 4), (40, 33))
FLOATS = 1 << 14
INTEGERS = "// All results are integers."
UNORDERED = "// Sums by atomics come in any order."
DYNAMIC = "extern __shared__"
"""Memory that only the launch gives; what stands in for a GPU here has none."""
_TOGETHER = re.compile(r"\b(__sync|__shfl|__ballot|__match|__any_sync|__activemask)")
DRIVER = """
typedef void (*Launcher)(const float*, const float*, float*, int, int);
static void fill(std::vector<float>& v, unsigned seed) {
    for (float& x : v) { seed = seed * 1664525u + 1013904223u; x = (float)(seed >> 8) / (1 << 22) - 2.0f; }
}
int main() {
    const Launcher all[] = {%(launchers)s};
    const int sizes[][2] = {%(sizes)s};
    for (Launcher launcher : all) {
        for (auto& size : sizes) for (int offset : {0, 1}) {
            std::vector<float> a(%(floats)d), b(%(floats)d), c(%(floats)d);
            fill(a, 1); fill(b, 2); fill(c, 3);
            launcher(a.data() + offset, b.data(), c.data() + offset, size[0], size[1]);
            std::fwrite(c.data(), 4, c.size(), stdout);
        }
        for (int shift : {%(shifts)s}) {
            std::vector<float> a(%(floats)d), b(%(floats)d);
            fill(a, 1); fill(b, 2);
            launcher(a.data() + 16, shift %% 2 ? b.data() : a.data() + 16, a.data() + 16 + shift, 1, 20);
            std::fwrite(a.data(), 4, a.size(), stdout);
        }
    }
}
"""


def serial(source: str, name: str) -> str:
    """Return a source with its launches as calls, in a namespace of its own."""
    unit = SourceUnit.parse(source)
    data = unit.data
    for launch in sorted(unit.launches, key=lambda entry: -entry.span.start):
        arguments = ", ".join(argument.text for argument in launch.arguments)
        called = unit.text_of(launch.name_span)
        grid, block = unit.text_of(launch.grid.span), unit.text_of(launch.block.span)
        call = f"run_grid(dim3({grid}), dim3({block}), [&] {{ {called}({arguments}); }})"
        data = data[: launch.span.start] + call.encode() + data[launch.span.end :]
    text = data.decode().replace('extern "C" ', "")
    if _TOGETHER.search(source):
        text = text.replace("run_grid(", "run_together(")
    undefined = "\n".join(f"#undef {macro.name}" for macro in unit.macros)
    return f"namespace {name} {{\n{text}\n}}\n{undefined}\n"


def run(sources: list[str], folder: Path, *, aliases: bool) -> np.ndarray:
    """Return the outputs of every source: one row of runs each."""
    names = [f"v{index}" for index in range(len(sources))]
    shifts = "0, 1, -1, 2, 3, 19" if aliases else ""
    text = '#include "cpu.hpp"\n' + "".join(map(serial, sources, names))
    text += DRIVER % {
        "launchers": ", ".join(f"{name}::f" for name in names),
        "sizes": ", ".join(f"{{{n}, {m}}}" for n, m in SIZES),
        "floats": FLOATS,
        "shifts": shifts,
    }
    if not aliases:
        text = re.sub(r"for \(int shift : \{\}\) \{.*?\n        \}", "", text, flags=re.DOTALL)
    raw = printed(folder, text, HERE)
    return np.frombuffer(raw, dtype=np.float32).reshape(len(sources), -1)


def is_rounded(candidate: Candidate, result: Candidate) -> bool:
    """Whether the compiler joins products and sums again that the source joins: on the CPU it does not."""
    return bool(result.scheduled) and "fma" in candidate.source


def compared(original: np.ndarray, row: np.ndarray, result: Candidate) -> tuple[np.ndarray, np.ndarray]:
    """Return what of two rows must agree.

    A kernel that is scheduled anew has threads in another order: where pointers overlap the original
    races with itself, and only the runs in which they don't say anything.
    """
    end = len(SIZES) * 2 * FLOATS if result.scheduled else len(row)
    return original[:end], row[:end]


def variants(candidate: Candidate, context: SkillContext, name: str) -> Iterable[tuple[FoundStep, Candidate]]:
    """Yield every step with its result; where threads wait for one another, two a site.

    Unless all are wanted, one step a skill: which one depends on the file, so that the files together
    see many sites and parameters.
    """
    for skill in LIBRARY.all():
        steps = find_steps(candidate, skill, LIBRARY, context)[0] if skill.mechanical else []
        together: Counter[str] = Counter()
        first = int(hashlib.sha256(f"{name} {skill.id}".encode()).hexdigest(), 16) % max(1, len(steps))
        for found in [*steps[first:], *steps[:first]]:
            if together[found.site.key] >= 2:
                continue
            try:
                result = apply_step(candidate, found.step, LIBRARY, context).candidate
            except SkillRefused:
                continue
            together[found.site.key] += bool(_TOGETHER.search(result.source))
            yield found, result
            if not EVERYTHING:
                break


@cache
def variants_of(path: Path, promised: bool) -> tuple[tuple[FoundStep, Candidate], ...]:
    """Return the steps of a file with their results."""
    candidate = Candidate.of("k.cu", {"k.cu": path.read_text()})
    context = context_for("f", *([Promise.NO_ALIAS] if promised else []))
    return tuple(variants(candidate, context, f"{path.stem} {promised}"))


@pytest.mark.slow
@pytest.mark.parametrize("promised", [False, True], ids=["no-promise", "no-alias"])
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_step_keeps_the_results(path: Path, promised: bool, tmp_path: Path) -> None:
    candidate = Candidate.of("k.cu", {"k.cu": path.read_text()})
    found = variants_of(path, promised)
    assert found, "no skill applies at all"
    rows = run([candidate.source, *(c.source for _, c in found)], tmp_path, aliases=not promised)
    for (entry, result), row in zip(found, rows[1:], strict=True):
        first, row = compared(rows[0], row, result)
        exact = (
            LIBRARY.get(entry.step.skill).exactness is Exactness.EXACT and UNORDERED not in candidate.source
        )
        if INTEGERS in candidate.source or (exact and not is_rounded(candidate, result)):
            different = np.flatnonzero(row.view(np.uint32) != first.view(np.uint32))
            assert not different.size, f"{entry.step.label}: {different.size} values, first at {different[0]}"
        else:
            np.testing.assert_allclose(row, first, rtol=2e-4, atol=2e-4, err_msg=entry.step.label)


def chain(
    candidate: Candidate, context: SkillContext, rng: np.random.Generator
) -> tuple[list[FoundStep], Candidate]:
    """Apply up to four steps of different skills, each found on the result of the one before."""
    taken: list[FoundStep] = []
    for index in rng.permutation(len(LIBRARY.all())):
        if len(taken) == 4:
            break
        skill = LIBRARY.all()[index]
        steps = find_steps(candidate, skill, LIBRARY, context)[0] if skill.mechanical else []
        if not steps:
            continue
        found = steps[rng.integers(len(steps))]
        try:
            result = apply_step(candidate, found.step, LIBRARY, context).candidate
        except SkillRefused:
            continue
        if DYNAMIC in result.source:
            continue
        candidate = result
        taken.append(found)
    return taken, candidate


@pytest.mark.slow
@pytest.mark.parametrize("promised", [False, True], ids=["no-promise", "no-alias"])
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_chains_keep_the_results(path: Path, promised: bool, tmp_path: Path) -> None:
    candidate = Candidate.of("k.cu", {"k.cu": path.read_text()})
    context = context_for("f", *([Promise.NO_ALIAS] if promised else []))
    chains = [
        chain(candidate, context, np.random.default_rng(seed)) for seed in range(8 if EVERYTHING else 3)
    ]
    rows = run([candidate.source, *(c.source for _, c in chains)], tmp_path, aliases=not promised)
    for (steps, result), row in zip(chains, rows[1:], strict=True):
        first, row = compared(rows[0], row, result)
        label = " + ".join(entry.step.label for entry in steps)
        exact = all(LIBRARY.get(entry.step.skill).exactness is Exactness.EXACT for entry in steps)
        exact = exact and not is_rounded(candidate, result)
        if INTEGERS in candidate.source or (exact and UNORDERED not in candidate.source):
            assert (row.view(np.uint32) == first.view(np.uint32)).all(), label
        else:
            np.testing.assert_allclose(row, first, rtol=3e-4, atol=3e-4, err_msg=label)


@pytest.mark.slow
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_step_compiles(path: Path, tmp_path: Path) -> None:
    texts = [path.read_text()]
    seen = set()
    for found, result in variants_of(path, promised=True):
        if (found.step.skill, found.site.key) not in seen:
            seen.add((found.step.skill, found.site.key))
            texts.append(result.source)
    parts = []
    for index, text in enumerate(texts):
        undefined = "".join(f"#undef {macro.name}\n" for macro in SourceUnit.parse(text).macros)
        body = text.replace('extern "C" ', "")
        parts.append(f"namespace v{index} {{\n{body}\n}}\n{undefined}")
    (tmp_path / "all.cu").write_text("".join(parts))
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", "-w", "all.cu", "-o", "all.ptx"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:3000]
