"""Print a Markdown table of bench results: `python benchmarks/table.py RESULTS.json...`."""

import sys
from pathlib import Path

from kernelskill.report import figures
from kernelskill.sweep.bench import BenchResults, BenchRow

HEADER = "| task | outcome | speedup | 95 % interval | before | after | of the roof | tried | changes |"


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
        figures.percent(cases[0].roof_fraction) if cases else "-",
        str(row.tried),
        " + ".join(row.accepted) or row.best_try or row.reason,
    ]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def main(files: list[Path]) -> None:
    print(HEADER + "\n" + "|---" * HEADER.count(" |") + "|")
    for file in files:
        results = BenchResults.model_validate_json(file.read_bytes())
        for row in results.rows:
            print(line(row))


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
