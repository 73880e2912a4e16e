"""Send every kernel of tests/zoo through the evaluator and record what it got wrong.

    python benchmarks/evaluator/zoo.py --device cuda:0 --out benchmarks/results/evaluator/zoo-h200.json

Statuses, false-accept and false-reject rates with exact 95 % intervals, and conditions go into one JSON file.
A visit that was stopped goes on with the same --out. Exits with 1 where a kernel gets another status than it must.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from kernelskill.errors import KernelSkillError
from kernelskill.runs import SystemClock, write_atomically
from kernelskill.sweep.zoo import load_zoo
from kernelskill.sweep.zoo_run import ZooKeeper, ZooOutcome, ZooRecord, visit_zoo

ZOO = Path(__file__).resolve().parents[2] / "tests" / "zoo"


def main(arguments: list[str] | None = None) -> int:
    chosen = _options(arguments)
    try:
        record = _visit(chosen)
    except KernelSkillError as error:
        print(f"zoo: {error.message}", file=sys.stderr)
        if error.remedy:
            print(f"  {error.remedy}", file=sys.stderr)
        return error.exit_code
    write_atomically(chosen.out, (record.model_dump_json(indent=1) + "\n").encode())
    _summarise(record, chosen.out)
    return 1 if record.unexpected else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cuda:N or emulated[:GPU]")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--only", action="append", default=[], help="a kernel or a row; may be given again")
    parser.add_argument("--zoo", type=Path, default=ZOO, help="another zoo")
    parser.add_argument("--trials", type=int, default=3, help="secret seeds a task; at least 3")
    chosen = parser.parse_args(arguments)
    if chosen.trials < 3:
        parser.error(
            "--trials: earlier answers are left in the outputs from the third seed on; give 3 or more"
        )
    return chosen


def _visit(chosen: argparse.Namespace) -> ZooRecord:
    zoo = load_zoo(chosen.zoo)
    kernels = zoo.select(tuple(chosen.only))
    work = chosen.out.with_suffix(".work")
    print(f"{len(kernels)} kernels on {chosen.device}; finished ones are kept in {work} until the end")
    with ZooKeeper(zoo, chosen.device, work, clock=SystemClock(), trials=chosen.trials) as keeper:
        record = visit_zoo(keeper, kernels, trials=chosen.trials, done=_show)
    shutil.rmtree(work, ignore_errors=True)
    return record


def _show(outcome: ZooOutcome) -> None:
    mark = "ok " if outcome.as_it_must else "HOLE" if outcome.kernel.hole else "BAD"
    print(
        f"{mark:<4} {outcome.seconds:6.1f} s  {outcome.kernel.name:<36} {outcome.status:<16} {outcome.detail[:110]}"
    )
    sys.stdout.flush()


def _summarise(record: ZooRecord, out: Path) -> None:
    for words, found in (
        ("falsely accepted", record.false_accept),
        ("falsely rejected", record.false_reject),
    ):
        share = "-" if found.share is None else f"{found.share:.1%}"
        print(f"{words}: {found.count} of {found.of} = {share} (95 % {found.low:.1%} to {found.high:.1%})")
    for outcome in record.unexpected:
        must = " or ".join(outcome.expected)
        print(f"{outcome.kernel.name}: {outcome.status}, must be {must}: {outcome.detail}")
    if record.left_out:
        print(f"{len(record.left_out)} left out on this device: {', '.join(record.left_out)}")
    print(f"written to {out}")


if __name__ == "__main__":
    sys.exit(main())
