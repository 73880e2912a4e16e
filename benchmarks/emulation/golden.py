"""Write counters of recorded patterns as one small CSV, as ncu's raw page has it: python golden.py RECORD... --out FILE

Kernels are named as the patterns are. What the diagnosis takes from elsewhere stands in columns of its own:
facts of the build (`static__*`), of the launch (`plan__*`) and the place under the roof (`roofline__*`).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from diagnoses import read_records
from records import PatternRecord

from kernelskill.backends.cuda.ncu import metric_names
from kernelskill.profiling.figures import definitions

SHAPE = ("Kernel Name", "Grid Size", "Block Size")


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = [row_of(record) for record in read_records(given.records) if is_counted(record)]
    names = sorted({name for row in rows for name in row} - set(SHAPE))
    with given.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(["ID", *SHAPE, *names])
        writer.writerow([""] * (len(SHAPE) + 1 + len(names)))
        for number, row in enumerate(sorted(rows, key=lambda each: each[SHAPE[0]])):
            writer.writerow([number, *(row.get(name, "") for name in (*SHAPE, *names))])


def is_counted(record: PatternRecord) -> bool:
    """Whether a record holds hardware counters."""
    return record.profile is not None and record.profile.source == "ncu" and bool(record.profile.kernels)


def row_of(record: PatternRecord) -> dict[str, str]:
    """Return one pattern's hottest kernel."""
    assert record.profile is not None
    kernel = record.profile.kernels[0]
    read = {*metric_names("full"), *(name for each in definitions().values() for name in each.metric)}
    facts = {name: value for name, value in kernel.metrics.items() if name in read}
    facts["plan__launches"] = float(sum(each.launches for each in record.profile.kernels))
    if kernel.occupancy is not None:
        facts["static__occupancy_pct"] = 100.0 * kernel.occupancy
    if kernel.resources is not None:
        facts["static__registers"] = float(kernel.resources.registers)
        facts["static__stack_bytes"] = float(kernel.resources.stack_bytes)
        spilled = kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes
        facts["static__spill_bytes"] = float(spilled)
    if record.roofline is not None:
        facts["plan__duration_us"] = record.roofline.time_ms * 1e3
        if record.roofline.fraction is not None:
            facts["roofline__fraction"] = record.roofline.fraction
    shape = {"Kernel Name": record.name, "Grid Size": str(kernel.grid), "Block Size": str(kernel.block)}
    return shape | {name: f"{value:.6g}" for name, value in facts.items()}


if __name__ == "__main__":
    main()
