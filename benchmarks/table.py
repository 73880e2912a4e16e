"""Print a Markdown table of bench results: `python benchmarks/table.py [--last] RESULTS.json...`.

The quotient is the library's time by ours; where no library does the job it is the part of the roof. With `--last`
a task that stands in several files is printed once, from the file named last, with the mean over all.
"""

import argparse
import json
from pathlib import Path

from kernelskill.report import figures
from kernelskill.sweep.bench import BenchRow, mean_quotient

CLOSE = 0.9
HEADER = "| task | outcome | speedup | 95 % interval | before | after | library | quotient | of the roof | tried | changes |"


def line(row: BenchRow) -> str:
    gain = figures.speedup(row.speedup, row.evidence) if row.outcome == "improved" else "1.00x"
    interval = f"{row.low:.2f} to {row.high:.2f}" if row.low and row.high else "-"
    cases = row.cases[:1]
    cells = [
        row.task,
        row.outcome,
        gain,
        interval,
        figures.milliseconds(cases[0].original_ms) if cases else "-",
        figures.milliseconds(cases[0].result_ms) if cases else "-",
        figures.milliseconds(cases[0].library_ms) if cases and cases[0].library_ms is not None else "-",
        f"{row.quotient:.3f}" if row.quotient is not None else "-",
        figures.percent(cases[0].roof_fraction) if cases else "-",
        str(row.tried),
        " + ".join(row.accepted) or row.best_try or row.reason,
    ]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def main(files: list[Path], *, last: bool) -> None:
    print(HEADER + "\n" + "|---" * HEADER.count(" |") + "|")
    tables = {str(file): _rows(file) for file in files}
    if last:
        newest = {row.task: row for rows in tables.values() for row in rows}
        tables = {f"{len(newest)} tasks": [newest[task] for task in sorted(newest)]}
    for rows in tables.values():
        for row in rows:
            print(line(row))
    for name, rows in tables.items():
        capped, plain = mean_quotient(rows, 1.0), mean_quotient(rows)
        if capped is not None and plain is not None:
            close = sum(row.quotient is not None and row.quotient >= CLOSE for row in rows)
            print(
                f"\n{name}: geometric mean of the quotients {capped:.3f} capped at 1, {plain:.3f} uncapped;"
                f" {close} at {CLOSE} or more"
            )


def _rows(file: Path) -> list[BenchRow]:
    """Rows only: settings of an earlier version need not be known."""
    return [BenchRow.model_validate(row) for row in json.loads(file.read_bytes())["rows"]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="RESULTS.json", help="what `bench` wrote")
    parser.add_argument("--last", action="store_true", help="one row a task, from the file named last")
    given = parser.parse_args()
    missing = [str(file) for file in given.files if not file.is_file()]
    if missing:
        parser.error(f"no such file: {missing[0]!r}")
    main(given.files, last=given.last)
