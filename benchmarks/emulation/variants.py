"""Make the variants whose times and estimates `validate.py` compares.

python benchmarks/emulation/variants.py [TASK ...] [--most 7]

Each is what one skill, or a short chain of them, makes of a kernel of `benchmarks/core` at its first or a
later point: the ones with the highest prior first, as a search would take them, no two of one machine
code. All were built and checked on the emulated device. One file a task under `variants/`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from records import CORE, ORIGINAL, TASKS, VARIANTS, TaskVariants, Variant, request_of

from kernelskill.agents.brief import Brief
from kernelskill.agents.families import points, steps_at
from kernelskill.agents.specialist import propose
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock
from kernelskill.schema.candidate import Lineage
from kernelskill.schema.proposal import Proposal
from kernelskill.skills.apply import make_proposal
from kernelskill.skills.library import SkillLibrary, default_folders
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.tasks.load import LoadedTask, load_task

POINTS = 3
"""Points of one family that may become variants."""


def main() -> None:
    """Make the variants of the tasks that have none yet, or of those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks", nargs="*", help="names of core tasks; by default those that have no file yet"
    )
    parser.add_argument("--most", type=int, default=7, help="variants a task, beside the original")
    given = parser.parse_args()
    VARIANTS.mkdir(exist_ok=True)
    for task in given.tasks or [name for name in TASKS if not (VARIANTS / f"{name}.json").is_file()]:
        loaded = load_task(CORE / task / "kernel.cu", CORE / task / "test.py")
        made = TaskVariants(task=task, variants=tuple(checked(loaded, given.most)))
        (VARIANTS / f"{task}.json").write_text(made.model_dump_json(indent=1) + "\n")
        print(f"{task}: {len(made.variants)} variants", flush=True)


def checked(loaded: LoadedTask, most: int) -> Iterator[Variant]:
    """Yield the original and variants that pass on the emulated device, no two of one machine code."""
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as folder:
        seeds = SeedFile(Path(folder) / "seeds.json")
        evaluator = open_evaluator(
            "emulated", loaded, run_folder=Path(folder), seeds=seeds, clock=SystemClock()
        )
        known: set[str] = set()
        try:
            for variant in (Variant(label=ORIGINAL, source=loaded.original.source), *offered(loaded)):
                found = evaluator.evaluate(
                    request_of(loaded, variant.source, evaluator, seeds, stage="check")
                )
                if not found.passed or found.machine_code in known:
                    continue
                known.add(found.machine_code)
                print(f"  {loaded.task.name}: {variant.label}", flush=True)
                yield variant
                if len(known) > most:
                    return
        finally:
            evaluator.close()


def offered(loaded: LoadedTask) -> Iterator[Variant]:
    """Yield what skills offer: every family's first point by prior, then its second, then its third."""
    library = SkillLibrary.load(default_folders(CORE)[:1])
    brief = Brief(
        base=loaded.original,
        lineage=Lineage(),
        task=loaded.task,
        only_kernel="",
        keep_exact=False,
        tried=frozenset(),
    )
    families = [p for name in library.specialists() for p in propose(name, brief, library).proposals]
    families.sort(key=lambda proposal: (-proposal.predicted.log_speedup, proposal.label))
    context = SkillContext(task=loaded.task)
    columns = [list(family_points(family, loaded, library, context)) for family in families]
    for row in zip_longest(*columns):
        yield from (variant for variant in row if variant is not None)


def family_points(
    family: Proposal, loaded: LoadedTask, library: SkillLibrary, context: SkillContext
) -> Iterator[Variant]:
    """Yield the variants of one family: its first point and some beside it."""
    yield Variant(label=family.label, source=family.candidate.source)
    for values in points(family.choices, POINTS)[1:] if family.choices else ():
        steps = steps_at(family.steps, family.choices, values)
        try:
            proposal = make_proposal(loaded.original, steps, library, context)
        except SkillRefused:
            continue
        yield Variant(label=proposal.label, source=proposal.candidate.source)


if __name__ == "__main__":
    main()
