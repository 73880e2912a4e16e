"""Read times of known variants from finished runs: python collect.py RUN_FOLDER... --out measured.jsonl

A run judges candidates in pairs with its original; those that are among `variants/` become rows of a record as
`validate.py time` writes them, their time being the original's over the speedup that the run measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from records import CORE, VARIANTS, TaskVariants, TimedVariant

from kernelskill.schema.device import Conditions
from kernelskill.tasks.load import load_task


def main() -> int:
    """Collect the rows of all runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, help="folders of runs of core tasks, named as the tasks"
    )
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = [row for run in given.runs for row in rows_of(run)]
    given.out.write_text("".join(row.model_dump_json() + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} variants of {len({row.task for row in rows})} kernels")
    return 0 if rows else 1


def rows_of(run: Path) -> Iterator[TimedVariant]:
    """Yield the known variants that one run judged."""
    labels = known_variants(run.name)
    original_ms, samples, conditions = 0.0, 0, Conditions(device="", gpu="")
    for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines() if labels else ():
        event = json.loads(line)
        if event["kind"] == "run_started":
            conditions = Conditions.model_validate(event["conditions"])
        elif event["kind"] == "baseline_measured" and event["timings"]:
            taken = event["timings"][0]["samples_ms"]
            original_ms, samples = median(taken), len(taken)
        elif event["kind"] == "judged" and event["candidate"] in labels and event.get("speedup_to_original"):
            yield TimedVariant(
                task=run.name,
                label=labels[event["candidate"]],
                candidate=event["candidate"],
                status="passed",
                median_ms=original_ms / event["speedup_to_original"],
                original_ms=original_ms,
                samples=samples,
                conditions=conditions,
                notes=("judged in a run, in pairs with the original",),
            )


def known_variants(task: str) -> dict[str, str]:
    """Return the digest of every variant of a task with its label; none where the task has no variants."""
    file = VARIANTS / f"{task}.json"
    if not file.is_file():
        return {}
    original = load_task(CORE / task / "kernel.cu", CORE / task / "test.py").original
    variants = TaskVariants.model_validate_json(file.read_bytes()).variants[1:]
    return {original.with_text(original.main, v.source).digest: v.label for v in variants}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"collect.py: {error}")
