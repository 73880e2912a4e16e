"""Diagnose kernels with one known fault each, and count how often the first limit named is a right one.

python benchmarks/emulation/diagnoses.py [--device emulated] [--only NAME ...] [--out FILE] [--seconds 140]

The record holds the figures of every pattern, one JSON line each; it is gone on with where it stopped, and
`python benchmarks/emulation/diagnoses.py --judge FILE...` diagnoses recorded figures again, with no device;
then `--out` takes what was said of each.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from records import PATTERNS, Answer, PatternRecord

from kernelskill.config import RunConfig
from kernelskill.errors import KernelSkillError
from kernelskill.profiling.diagnose import diagnose
from kernelskill.session.profiling import profile_kernel

BAR = 12 / 15
"""Share of first diagnoses that has to be right."""


def main() -> int:
    """Diagnose the patterns and print a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="emulated")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path, help="record, one JSON line a pattern; gone on with")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no other pattern after so long")
    parser.add_argument("--judge", nargs="+", type=Path, help="records to diagnose in place of a device")
    given = parser.parse_args()
    known = allowed()
    if unknown := set(given.only) - known.keys():
        parser.error(f"no pattern is named {', '.join(sorted(unknown))}")
    names = given.only or list(known)
    if given.judge:
        rows = iter([row for row in read_records(given.judge) if row.name in names])
    else:
        rows = collected(names, given.device, given.out, time.monotonic() + given.seconds)
    answers = [judged(row, known[row.name]) for row in rows]
    right = sum(answer.right for answer in answers)
    print(f"{right} of {len(answers)} first diagnoses are right")
    if given.judge and given.out is not None:
        listed = [answer.model_dump(mode="json") for answer in answers]
        given.out.write_text(
            json.dumps({"right": right, "patterns": listed}, indent=1) + "\n", encoding="utf-8"
        )
    return 0 if answers and right >= BAR * len(answers) else 1


def allowed() -> dict[str, dict[str, list[str]]]:
    """Return what may be said of each pattern, by name: those with a folder, and those of one file."""
    tables = (PATTERNS / "diagnoses.toml", PATTERNS / "allowed_diagnoses.toml")
    return {name: row for table in tables for name, row in tomllib.loads(table.read_text()).items()}


def collected(
    names: Sequence[str], device: str, out: Path | None, deadline: float
) -> Iterator[PatternRecord]:
    """Yield the figures of the patterns, those of the record first; new ones are added to it."""
    done = {row.name: row for row in read_records([out] if out is not None and out.is_file() else [])}
    yield from (done[name] for name in names if name in done)
    for name in names:
        if name in done or time.monotonic() > deadline:
            continue
        row = profiled(name, device)
        if out is not None and not row.error:
            with out.open("a", encoding="utf-8") as record:
                record.write(row.model_dump_json() + "\n")
        yield row


def profiled(name: str, device: str) -> PatternRecord:
    """Return the figures of one pattern, all that the device has."""
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as scratch:
        folder = Path(scratch)
        kernel, tests = files_of(name, folder)
        try:
            found = profile_kernel(kernel, tests, RunConfig(device=device), folder, depth="full")
        except KernelSkillError as error:
            return PatternRecord(name=name, error=error.message)
    kernels = tuple(kernel.model_copy(update={"lines": ()}) for kernel in found.profile.kernels)
    return PatternRecord(
        name=name, profile=found.profile.model_copy(update={"kernels": kernels}), roofline=found.roofline
    )


def files_of(name: str, folder: Path) -> tuple[Path, Path]:
    """Return a pattern's kernel and test; the test of one that shares its file with others is made."""
    own = PATTERNS / name
    if own.is_dir():
        return own / "kernel.cu", own / "test.py"
    tests = folder / "test.py"
    tests.write_text(f'KERNEL = "run_{name}"\n' + (PATTERNS / "body.py").read_text())
    return PATTERNS / "patterns.cu", tests


def judged(row: PatternRecord, table: dict[str, list[str]]) -> Answer:
    """Print what is said about one pattern and return whether that is right."""
    if row.profile is None:
        print(f"  x {row.name}: {row.error}", flush=True)
        return Answer(name=row.name, right=False, said=(), error=row.error)
    found = diagnose(row.profile, row.roofline)
    kinds = [limit.kind.value for limit in found]
    first = kinds[0] if kinds else "nothing"
    right = first in table["first"] and set(table.get("must", [])) <= set(kinds)
    lacking = f" ({row.profile.unavailable})" if row.profile.source == "static" else ""
    wanted = "" if right else f"; may be {', '.join(table['first'])}"
    said = ", ".join(kinds[:4]) or "nothing"
    print(f"  {'+' if right else '-'} {row.name}: {said}{wanted}{lacking}", flush=True)
    return Answer(name=row.name, right=right, said=tuple(kinds), conditions=row.profile.conditions)


def read_records(files: Sequence[Path]) -> list[PatternRecord]:
    """Read records; the last line of one pattern counts, of each kind of device."""
    rows = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = PatternRecord.model_validate_json(line)
            rows[row.name, row.profile.source if row.profile is not None else ""] = row
    return list(rows.values())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"diagnoses.py: {error}")
