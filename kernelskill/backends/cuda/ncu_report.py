"""Parse what `ncu --csv --page raw` prints."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

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


class LaunchRow(Record):
    """One profiled launch."""

    kernel: str
    """Name as the tool prints it, with template arguments and parameters."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: dict[str, float]
    """In base units; what was not collected or is no number is absent."""

    @property
    def bare_name(self) -> str:
        """The name without return type, parameters and template arguments."""
        return bare_name(self.kernel)


def parse_report(text: str) -> tuple[LaunchRow, ...]:
    """Return the profiled launches in order; none where no kernel was profiled.

    Columns are found by name, so lines of the profiled program, warnings and unknown columns do no harm.

    Raises:
        ArtifactCorrupt: There is a table, but not one of raw metrics.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return ()
    rows = csv.reader(_table_lines(lines[start:]))
    header = next(rows)
    missing = [name for name in ("Kernel Name", "Grid Size", "Block Size") if name not in header]
    if missing:
        raise ArtifactCorrupt(f"the profiler's table lacks the column {missing[0]!r}")
    units: dict[str, str] = {}
    found = []
    for row in rows:
        if len(row) != len(header):
            continue
        cells = dict(zip(header, row, strict=True))
        if not cells["ID"]:
            units = cells
        elif cells["ID"].isdigit():
            found.append(_launch(cells, units))
    return tuple(found)


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


def _table_lines(lines: Iterable[str]) -> Iterable[str]:
    """Yield the lines of the table alone; a quoted cell never spans lines in this output."""
    return (line for line in lines if line.startswith('"'))


def _launch(cells: dict[str, str], units: dict[str, str]) -> LaunchRow:
    metrics = {}
    for name, text in cells.items():
        if "__" not in name and not name.startswith("memory_"):
            continue
        value = _number(text)
        if value is not None:
            metrics[name] = value * _SCALES.get(units.get(name, "").split("/", 1)[0], 1.0)
    return LaunchRow(
        kernel=cells["Kernel Name"],
        grid=_triple(cells["Grid Size"]),
        block=_triple(cells["Block Size"]),
        metrics=metrics,
    )


def _number(text: str) -> float | None:
    """Return a cell's number; a metric with instances shows its total first."""
    plain = text.replace(",", "").split(" ", 1)[0].strip()
    try:
        return float(plain) if re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?", plain) else None
    except ValueError:
        return None


def _triple(text: str) -> tuple[int, int, int]:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if len(numbers) != 3:
        raise ArtifactCorrupt(f"the profiler shows {text!r} where three sizes should stand")
    return numbers[0], numbers[1], numbers[2]
