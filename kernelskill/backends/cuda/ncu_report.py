"""Parse what `ncu --csv` prints: the raw page, the details page and summaries a kernel, old and new."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from math import inf, isfinite

from kernelskill.backends.cuda.ncu_labels import metric_of_label
from kernelskill.errors import ArtifactCorrupt
from kernelskill.schema.base import Record

_SCALES = {
    "nsecond": 1.0,
    "ns": 1.0,
    "usecond": 1e3,
    "us": 1e3,
    "msecond": 1e6,
    "ms": 1e6,
    "second": 1e9,
    "s": 1e9,
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
    "Tbyte": 1e12,
    "hz": 1.0,
    "Khz": 1e3,
    "Mhz": 1e6,
    "Ghz": 1e9,
}
"""Scaled units that `--print-units auto` uses, to the base unit: nanoseconds, bytes, hertz."""
_SOURCE_PAGE = ('"Line No"', '"#","Address"', '"#","Source"')


class LaunchRow(Record):
    """One profiled launch."""

    kernel: str
    """Name as the tool prints it, with template arguments and parameters."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: dict[str, float]
    """In base units; what was not collected or is no number is absent."""
    launches: int = 1
    """More where the tool printed averages over several launches."""

    @property
    def bare_name(self) -> str:
        """The name without return type, parameters and template arguments."""
        return bare_name(self.kernel)


def parse_report(text: str) -> tuple[LaunchRow, ...]:
    """Return the profiled launches in order; none where no kernel was profiled.

    Columns are found by name, so lines of the profiled program, warnings and unknown columns do no harm.

    Raises:
        ArtifactCorrupt: There is a table, but not one with metrics of launches.
    """
    table = _find_table(text)
    if table is None:
        return ()
    header, rows = table
    if "Kernel Name" not in header:
        raise ArtifactCorrupt("the profiler's table lacks the column 'Kernel Name'")
    if "Metric Name" in header:
        return tuple(_launches_of_long_rows(header, rows))
    missing = [name for name in ("Grid Size", "Block Size") if name not in header]
    if missing:
        raise ArtifactCorrupt(f"the profiler's table lacks the column {missing[0]!r}")
    return tuple(_launches_of_wide_rows(rows))


def bare_name(name: str) -> str:
    """Return `f` for `void ns::f<int, 3>(const float *)`: what two spellings of one kernel share."""
    depth = 0
    kept = []
    for letter in name:
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth = max(depth - 1, 0)
        elif letter == "(" and depth == 0:
            break
        elif depth == 0:
            kept.append(letter)
    words = "".join(kept).split()
    return words[-1].rsplit("::", 1)[-1] if words else name


Cells = dict[str, str]


def _find_table(text: str) -> tuple[list[str], list[Cells]] | None:
    """Return the header and the rows that fit it; a quoted cell never spans lines in this output."""
    lines = text.splitlines()
    starts = ('"ID",', '"Process ID",')
    start = next((number for number, line in enumerate(lines) if line.startswith(starts)), None)
    if start is None:
        if any(line.startswith(_SOURCE_PAGE) for line in lines):
            raise ArtifactCorrupt("this is ncu's source page, which has no figures of whole launches")
        return None
    quoted = [line for line in lines[start:] if line.startswith('"')]
    try:
        header, *rows = csv.reader(quoted)
    except csv.Error as error:
        raise ArtifactCorrupt(f"the profiler's table cannot be read: {error}") from error
    # Rule columns at the end are left out of rows that have none of them.
    return header, [dict(zip(header, row, strict=False)) for row in rows if _fits(row, header)]


def _fits(row: Sequence[str], header: Sequence[str]) -> bool:
    if "Metric Value" in header:
        return header.index("Metric Value") < len(row) <= len(header)
    return len(row) == len(header)


def _launches_of_wide_rows(rows: Iterable[Cells]) -> Iterator[LaunchRow]:
    """One row a launch, one column a metric, the units in a row of their own."""
    units: Cells = {}
    for cells in rows:
        identity = cells.get("ID", "")
        if not identity:
            units = cells
        elif identity.isdecimal():
            metrics = {
                name: scaled
                for name, text in cells.items()
                if ("__" in name or name.startswith("memory_"))
                and (scaled := _scaled(text, units.get(name, ""))) is not None
            }
            yield LaunchRow(
                kernel=cells["Kernel Name"],
                grid=_triple(cells["Grid Size"]),
                block=_triple(cells["Block Size"]),
                metrics=metrics,
            )


def _launches_of_long_rows(header: Sequence[str], rows: Iterable[Cells]) -> Iterator[LaunchRow]:
    """One row a metric; figures that the page labels in words get the names of their metrics."""
    value = next((name for name in ("Metric Value", "Average") if name in header), None)
    if value is None:
        raise ArtifactCorrupt("the profiler's table lacks the column 'Metric Value'")
    launches: dict[tuple[str, str], list[Cells]] = {}
    for cells in rows:
        launches.setdefault((cells.get("ID", ""), cells["Kernel Name"]), []).append(cells)
    for (identity, kernel), own in launches.items():
        if not kernel or ("ID" in header and not identity.isdecimal()):
            continue
        metrics = {}
        for cells in own:
            name = _long_name(cells)
            scaled = _scaled(cells.get(value, ""), cells.get("Metric Unit", ""))
            if name is not None and scaled is not None:
                metrics[name] = scaled
        yield LaunchRow(
            kernel=kernel,
            grid=_size(own[0], "Grid Size", metrics, "launch__grid_size"),
            block=_size(own[0], "Block Size", metrics, "launch__block_size"),
            metrics=metrics,
            launches=_count(own[0].get("Invocations", "1")),
        )


def _long_name(cells: Cells) -> str | None:
    label = cells.get("Metric Name", "")
    known = metric_of_label(cells.get("Section Name", ""), label)
    return known or (label if "__" in label or label.startswith("memory_") else None)


def _size(cells: Cells, column: str, metrics: dict[str, float], metric: str) -> tuple[int, int, int]:
    """Return a launch's sizes; tools that print no column for them print the product as a figure."""
    if cells.get(column):
        return _triple(cells[column])
    return max(1, round(metrics.get(metric, 1.0))), 1, 1


def _count(text: str) -> int:
    return max(1, round(_number(text) or 1.0))


def _scaled(text: str, unit: str) -> float | None:
    value = _number(text)
    return None if value is None else value * _SCALES.get(unit.split("/", 1)[0], 1.0)


def _number(text: str) -> float | None:
    """Return a cell's number; a metric with instances shows its total first."""
    plain = text.replace(",", "").split(" ", 1)[0].strip()
    try:
        value = float(plain) if re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?", plain) else inf
    except ValueError:
        return None
    return value if isfinite(value) else None


def _triple(text: str) -> tuple[int, int, int]:
    numbers = [int(number) for number in re.findall(r"[0-9]{1,10}", text)]
    if len(numbers) != 3:
        raise ArtifactCorrupt(f"the profiler shows {text!r} where three sizes should stand")
    return numbers[0], numbers[1], numbers[2]
