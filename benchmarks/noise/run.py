"""Record how often the judge accepts a kernel against itself, and how often a counted true gain.

    python benchmarks/noise/run.py --device cuda:0 --out benchmarks/results/evaluator/noise-h200.json

Compilers run beside it all the time, as in a run. Every decision goes into a journal beside --out at once, so a
recording that was stopped, or ran out of its --minutes, goes on with the same --out. Exits with 1 where a kernel was
accepted against itself, or where fewer than 95 % of the true gains were accepted once all decisions are made.
A device that only estimates has no noise: a few decisions show that the program works, and nothing is written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from kernelskill.backends.devices import open_backend
from kernelskill.errors import ArtifactCorrupt, KernelSkillError
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock, write_atomically
from kernelskill.sweep.evaluator_sheet import NoiseRecord
from kernelskill.sweep.noise import Decision, Kind, NoiseBench, tally
from kernelskill.sweep.rates import Rate
from kernelskill.tasks.load import load_task

HERE = Path(__file__).resolve().parent
LEAST_SHARE = 0.95


def main(arguments: list[str] | None = None) -> int:
    chosen = _options(arguments)
    try:
        return _record(chosen)
    except KernelSkillError as error:
        print(f"noise: {error.message}", file=sys.stderr)
        if error.remedy:
            print(f"  {error.remedy}", file=sys.stderr)
        return error.exit_code


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cuda:N or emulated[:GPU]")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--same", type=int, default=300, help="decisions about a kernel against itself")
    parser.add_argument("--gains", type=int, default=100, help="decisions about the true gain")
    parser.add_argument("--gain", type=float, default=0.03, help="the true gain, as a fraction")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long; 0: not at all")
    chosen = parser.parse_args(arguments)
    if not 0.0 < chosen.gain <= 1.0:
        parser.error(f"--gain: {chosen.gain} is no fraction; give 0.03 for three percent")
    return chosen


def _record(chosen: argparse.Namespace) -> int:
    work = chosen.out.with_suffix(".work").absolute()
    work.mkdir(parents=True, exist_ok=True)
    # Thousands of builds that nobody wants again must not drive the user's own out of the cache.
    os.environ["XDG_CACHE_HOME"] = str(work / "cache")
    backend = open_backend(chosen.device)
    estimated = backend.evidence == "estimated"
    journal = chosen.out.with_suffix(".decisions.jsonl")
    decisions = [] if estimated else _read(journal)
    wanted: dict[Kind, int] = {"same": chosen.same, "gain": chosen.gains}
    if estimated:
        print(f"{backend.name} only estimates: two decisions of a kind, nothing is written", flush=True)
        wanted = {"same": 2, "gain": 2}
    clock = SystemClock()
    bench = NoiseBench(
        backend,
        load_task(HERE / "kernel.cu", HERE / "test.py"),
        work,
        seeds=SeedFile(work / "seeds.json"),
        clock=clock,
        gain=chosen.gain,
    )
    with closing(bench):
        bench.prepare()
        deadline = clock.seconds() + 60 * chosen.minutes if chosen.minutes else float("inf")
        while (kind := _next_kind(decisions, wanted)) is not None and clock.seconds() < deadline:
            decision = bench.decide(kind)
            decisions.append(decision)
            _show(len(decisions), decision)
            if not estimated:
                _append(journal, decision)
        record = NoiseRecord(
            conditions=bench.conditions(),
            same_accepted=tally(decisions, "same"),
            gain=chosen.gain,
            gain_accepted=tally(decisions, "gain"),
        )
    label = " (estimates: they say nothing about noise)" if estimated else ""
    print(f"a kernel against itself accepted: {_text(record.same_accepted)}{label}")
    print(f"a true gain of {record.gain:.1%} accepted: {_text(record.gain_accepted)}{label}")
    if estimated:
        shutil.rmtree(work, ignore_errors=True)
        return 0
    write_atomically(chosen.out, (record.model_dump_json(indent=1) + "\n").encode())
    print(f"written to {chosen.out}; every decision is in {journal}")
    complete = _next_kind(decisions, wanted) is None
    if complete:
        shutil.rmtree(work, ignore_errors=True)
    missed = complete and (record.gain_accepted.share or 0.0) < LEAST_SHARE
    return 1 if record.same_accepted.count or missed else 0


def _next_kind(decisions: list[Decision], wanted: dict[Kind, int]) -> Kind | None:
    """Return the kind that is furthest behind, so that both are spread over the whole recording."""
    left = {
        kind: 1 - sum(decision.kind == kind for decision in decisions) / count
        for kind, count in wanted.items()
        if count
    }
    kind = max(left, key=lambda each: left[each], default=None)
    return kind if kind is not None and left[kind] > 0 else None


def _read(journal: Path) -> list[Decision]:
    """Return the decisions of an earlier part; a last line that was cut off is made again."""
    if not journal.exists():
        return []
    whole = journal.read_text(encoding="utf-8").rpartition("\n")[0]
    journal.write_text(whole + "\n" if whole else "", encoding="utf-8")
    try:
        return [Decision.model_validate_json(line) for line in whole.splitlines()]
    except ValidationError as error:
        raise ArtifactCorrupt(
            f"{str(journal)!r} holds a line that is no decision: {str(error).splitlines()[0]}",
            remedy="move it away and record again",
        ) from None


def _append(journal: Path, decision: Decision) -> None:
    with journal.open("a", encoding="utf-8") as stream:
        stream.write(decision.model_dump_json() + "\n")


def _show(number: int, decision: Decision) -> None:
    interval = f"{decision.ratio:.4f} ({decision.low:.4f} to {decision.high:.4f})"
    print(
        f"{number:>4} {decision.kind:<5} {decision.verdict:<9} {interval}  {decision.pairs} pairs"
        f"  {decision.candidate_ms:.4g} ms  {decision.builds} builds  {decision.seconds:.1f} s",
        flush=True,
    )


def _text(found: Rate) -> str:
    share = "-" if found.share is None else f"{found.share:.1%}"
    return f"{found.count} of {found.of} = {share} (95 % {found.low:.1%} to {found.high:.1%})"


if __name__ == "__main__":
    sys.exit(main())
