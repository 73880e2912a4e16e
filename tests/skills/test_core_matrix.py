"""Every mechanical skill on core benchmarks and their variants: refused with a reason, or right.

A fixed sample of the benchmarks and of the results is built and checked on the emulated device. With
KERNELSKILL_MATRIX=FOLDER all of them are, and the answers are kept in that folder by their content;
KERNELSKILL_MATRIX_SAMPLE=N beside it takes so many of each benchmark.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Status
from kernelskill.schema.task import Promise
from kernelskill.skills.apply import FoundStep, apply_step, find_steps
from kernelskill.skills.transformation import SkillContext, SkillRefused
from tests.core_sample import REWRITTEN, chosen
from tests.skills.applying import LIBRARY
from tests.skills.core_bench import CORE, CoreBench
from tests.skills.core_variants import variants

FULL = os.environ.get("KERNELSKILL_MATRIX", "")
SAMPLE = int(os.environ.get("KERNELSKILL_MATRIX_SAMPLE", "0")) if FULL else 1
"""Results checked a benchmark; 0 for all of them."""
POINTS = 6
"""Parameters of a site that are applied to the plain text where not all of them are."""
PLAIN_SKILLS = ("compute/unroll", "parallelism/launch_bounds")
"""Skills that add one line: sampled only where nothing else is offered."""
SKILLS = [skill for skill in LIBRARY.all() if skill.mechanical]
NAMES = [folder.name for folder in CORE]
BENCHMARKS = [folder for folder in CORE if folder.name in (NAMES if FULL else chosen(NAMES, REWRITTEN))]
PROMISES = {"": frozenset[Promise](), "no_alias": frozenset({Promise.NO_ALIAS})}


@dataclass(frozen=True)
class Made:
    """What one step made of one variant."""

    label: str
    candidate: Candidate
    base: Candidate
    skill: str = ""


def with_main(original: Candidate, text: str) -> Candidate:
    """Return a candidate with another text for its main file."""
    files = {f.path: text if f.path == original.main else f.text for f in original.files}
    return Candidate.of(original.main, files)


def steps_of(name: str, base: Candidate, context: SkillContext, counts: Counter[str]) -> Iterator[Made]:
    """Yield what every step makes of a variant: parameters of a site for the plain text, one a site otherwise."""
    for skill in SKILLS:
        found, refusals = find_steps(base, skill, LIBRARY, context)
        assert found or refusals, f"{skill.id} neither offers nor refuses {name}"
        assert all(refusal.reason.strip() for refusal in refusals), skill.id
        counts["refused"] += len(refusals)
        for entry in _spread(found, name == "plain"):
            try:
                result = apply_step(base, entry.step, LIBRARY, context).candidate
            except SkillRefused as refused:
                if "(internal)" in refused.reason:
                    raise AssertionError(f"{name} {entry.step.label}: {refused.reason}") from refused
                counts["refused"] += 1
                continue
            counts["offered"] += 1
            yield Made(f"{name} {entry.step.label}", result, base, skill.id)


def _spread(found: Sequence[FoundStep], is_plain: bool) -> Iterator[FoundStep]:
    """Yield steps of every site: all with KERNELSKILL_MATRIX, else some from the whole range of its parameters."""
    sites: dict[str, list[FoundStep]] = {}
    for entry in found:
        sites.setdefault(entry.site.key, []).append(entry)
    for steps in sites.values():
        most = (len(steps) if FULL else POINTS) if is_plain else 1
        yield from steps[:: -(-len(steps) // most)] if is_plain else steps[:1]


def check_all(folder: Path, results: Path, promises: frozenset[Promise], sample: int) -> Counter[str]:
    """Return how many results of a benchmark were offered, refused, checked and right."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    bench = CoreBench(folder, results, promises)
    try:
        made: dict[str, Made] = {}
        for name, text in variants(bench.original.source):
            if promises and name != "plain":
                continue
            base = with_main(bench.original, text)
            if not sample:
                made.setdefault(base.digest, Made(f"{name} itself", base, base))
            for entry in steps_of(name, base, SkillContext(task=bench.task), counts):
                made.setdefault(entry.candidate.digest, entry)
        # The digests are as good as chance, and the same every time.
        ranked = sorted(made, key=lambda digest: (made[digest].skill in PLAIN_SKILLS, digest))
        chosen = ranked[:sample] if sample else list(made)
        for digest in chosen:
            evaluation = bench.evaluate(made[digest].candidate)
            right = evaluation.status is Status.PASSED
            if not right and bench.evaluate(made[digest].base).status is not Status.PASSED:
                # Other types may give a kernel another meaning: then it is none of its variants.
                counts["variants that are wrong themselves"] += 1
                continue
            counts["passed" if right else "wrong"] += 1
            if not right:
                wrong.append(f"{made[digest].label}: {evaluation.status} {evaluation.detail}")
    finally:
        bench.close()
    if FULL:
        with (results / "counts.txt").open("a") as stream:
            stream.write(f"{folder.name} {sorted(promises)} {dict(counts)} {wrong}\n")
    assert not wrong, "\n".join(wrong)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("promised", PROMISES if FULL else [""])
@pytest.mark.parametrize("folder", BENCHMARKS, ids=lambda folder: folder.name)
def test_every_step_is_refused_or_right(folder: Path, promised: str, tmp_path: Path) -> None:
    results = Path(FULL) if FULL else tmp_path
    counts = check_all(folder, results, PROMISES[promised], SAMPLE)
    assert counts["offered"] > 0
    assert counts["passed"] > 0
