"""Hold estimated times against measured ones, variant by variant of many kernels, in two halves.

On a machine with a GPU, as often as it takes; a record is kept and gone on with, several may be joined:

    python benchmarks/emulation/validate.py time --device cuda:0 --out measured.jsonl [--only TASK ...] [--seconds 140]

Anywhere, the same for the estimates, and then the comparison:

    python benchmarks/emulation/validate.py time --device emulated --out estimated.jsonl
    python benchmarks/emulation/validate.py compare measured.jsonl estimated.jsonl --out FILE
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from comparison import compare
from records import CORE, TASKS, VARIANTS, TaskVariants, TimedVariant, Variant, request_of

from kernelskill.errors import HarnessError, KernelSkillError
from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Evaluation
from kernelskill.tasks.load import LoadedTask, load_task


def main() -> int:
    """Time the variants on a device, or compare two records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    timed = commands.add_parser("time", help="time every variant on one device")
    timed.add_argument("--device", default="emulated")
    timed.add_argument("--only", nargs="*", default=[], metavar="TASK")
    timed.add_argument(
        "--out", type=Path, required=True, help="record, one JSON line a variant; gone on with"
    )
    timed.add_argument("--seconds", type=float, default=1e9, help="start no other evaluation after so long")
    joined = commands.add_parser("compare", help="join measured and estimated records")
    joined.add_argument("records", nargs="+", type=Path)
    joined.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compared(given.records, given.out)
    if unknown := set(given.only) - {path.stem for path in VARIANTS.glob("*.json")}:
        parser.error(f"no variants of {', '.join(sorted(unknown))}: make them with variants.py")
    return time_all(given.device, given.only or list(TASKS), given.out, time.monotonic() + given.seconds)


def time_all(device: str, tasks: Sequence[str], out: Path, deadline: float) -> int:
    """Time the variants of the tasks that the record lacks; returns the exit code, 3 where time ran out."""
    known = {(row.task, row.candidate) for row in read_rows([out] if out.is_file() else [])}
    with out.open("a", encoding="utf-8") as record:
        for task in tasks:
            file = VARIANTS / f"{task}.json"
            if not file.is_file():
                continue
            variants = TaskVariants.model_validate_json(file.read_bytes()).variants
            loaded = load_task(CORE / task / "kernel.cu", CORE / task / "test.py")
            # The task's own kernel is timed beside every variant.
            left = [v for v in variants[1:] if (task, digest_of(loaded, v)) not in known]
            for row in timed_rows(task, loaded, left, device, deadline) if left else ():
                record.write(row.model_dump_json() + "\n")
                record.flush()
                print(f"  {task}: {row.label}: {row.median_ms} ms {row.detail}"[:150], flush=True)
            if time.monotonic() > deadline:
                print("the time is over; the same command goes on where this one stopped")
                return 3
    return 0


def timed_rows(
    task: str, loaded: LoadedTask, variants: Sequence[Variant], device: str, deadline: float
) -> Iterator[TimedVariant]:
    """Yield the times of a task's variants, each in turns with the original."""
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as folder:
        seeds = SeedFile(Path(folder) / "seeds.json")
        evaluator = open_evaluator(device, loaded, run_folder=Path(folder), seeds=seeds, clock=SystemClock())
        requests = [request_of(loaded, v.source, evaluator, seeds, stage="time") for v in variants]
        evaluator.prefetch(requests)
        try:
            for variant, request in zip(variants, requests, strict=True):
                if time.monotonic() > deadline:
                    return
                try:
                    found = evaluator.evaluate(request)
                except HarnessError as error:
                    yield failed_row(task, loaded, variant, evaluator, error)
                    continue
                yield row_of(task, loaded, variant, found)
        finally:
            evaluator.close()


def row_of(task: str, loaded: LoadedTask, variant: Variant, found: Evaluation) -> TimedVariant:
    """Return what an evaluation says on the first timed case."""
    facts: dict[str, object] = {"detail": found.detail, "notes": found.notes}
    if found.passed:
        own, other = found.timings[0], found.incumbent_timings[0]
        case = next(case for case in loaded.task.cases if case.index == own.case)
        facts |= {"case": case.label, "median_ms": own.median_ms, "low_ms": own.low_ms}
        facts |= {"high_ms": own.high_ms, "original_ms": other.median_ms, "samples": len(own.samples_ms)}
    return TimedVariant(
        task=task,
        label=variant.label,
        candidate=found.candidate,
        status=found.status.value,
        conditions=found.conditions,
        **facts,
    )


def failed_row(
    task: str, loaded: LoadedTask, variant: Variant, evaluator: Evaluator, error: HarnessError
) -> TimedVariant:
    """Return a variant that could not be timed, so that the others are."""
    return TimedVariant(
        task=task,
        label=variant.label,
        candidate=digest_of(loaded, variant),
        status="harness_error",
        detail=error.message,
        conditions=evaluator.conditions(),
    )


def digest_of(loaded: LoadedTask, variant: Variant) -> str:
    """Return the digest of the sources that a variant makes of a task."""
    return loaded.original.with_text(loaded.original.main, variant.source).digest


def read_rows(files: Sequence[Path]) -> list[TimedVariant]:
    """Read records; the last row of one variant on one GPU counts.

    Raises:
        HarnessError: A line is no row.
    """
    rows: dict[tuple[str, str, str], TimedVariant] = {}
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                row = TimedVariant.model_validate_json(line)
            except ValueError as error:
                reason = str(error).splitlines()[0]
                raise HarnessError(
                    f"{str(file)!r}, line {number}: {reason}", remedy="give records of `validate.py time`"
                ) from None
            rows[row.conditions.evidence, row.task, row.candidate] = row
    return list(rows.values())


def compared(files: Sequence[Path], out: Path | None) -> int:
    """Compare records, print a line a kernel; returns 0 where the bars are met."""
    result = compare(read_rows(files))
    for kernel in result.kernels:
        print(
            f"  {kernel.task:16} {kernel.variants:2} variants, rank {kernel.rank_correlation:+.2f}, regret "
            f"{kernel.regret:6.1%}, picked {kernel.picked}, best {kernel.best}"
        )
    print(result.summary)
    if out is not None:
        out.write_text(json.dumps(result.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
    return 0 if result.met else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KernelSkillError, OSError) as error:
        sys.exit(f"validate.py: {error}")
