"""Hold the counts of a trace against the hardware's: sectors, requests and bank conflicts of every pattern.

python benchmarks/emulation/counts.py RECORD... [--ncu FILE.csv] [--out FILE]

Records are those of `diagnoses.py`, some from a GPU and some from the emulated device; `--ncu` adds what ncu
printed as CSV, kernels named as the patterns are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from diagnoses import read_records
from records import PatternRecord

from kernelskill.backends.cuda.ncu_report import parse_report
from kernelskill.errors import KernelSkillError
from kernelskill.schema.base import Record

BAR = 0.02
COUNTS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
)
JOINED = {
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    )
}
"""Sums that ncu may have where it lacks the parts."""


class Count(Record):
    """One count of one pattern on both devices."""

    pattern: str
    metric: str
    measured: float
    traced: float
    off: float
    """Difference over the measured count; of conflicts, over the passes through shared memory."""


class CountsOfPatterns(Record):
    """All counts."""

    summary: str
    met: bool
    patterns: int
    within: int
    counts: tuple[Count, ...]


def main() -> int:
    """Compare and print what is off by more than the bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="*", type=Path)
    parser.add_argument("--ncu", nargs="*", type=Path, default=[], help="raw page of ncu as CSV")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    measured, traced = figures_by_source(read_records(given.records))
    for file in given.ncu:
        measured |= {row.bare_name: row.metrics for row in parse_report(file.read_text(encoding="utf-8"))}
    found = compared(measured, traced)
    for count in found.counts:
        if count.off > BAR:
            print(f"  {count.pattern}: {count.metric}: {count.measured:g} measured, {count.traced:g} traced")
    print(found.summary)
    if given.out is not None:
        given.out.write_text(json.dumps(found.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
    return 0 if found.met else 1


def figures_by_source(
    rows: Sequence[PatternRecord],
) -> tuple[dict[str, Mapping[str, float]], dict[str, Mapping[str, float]]]:
    """Return the metrics of each pattern's hottest kernel: the hardware's, and the trace's."""
    sides: dict[str, dict[str, Mapping[str, float]]] = {"ncu": {}, "trace": {}, "static": {}}
    for row in rows:
        if row.profile is not None and row.profile.kernels:
            sides[row.profile.source][row.name] = row.profile.kernels[0].metrics
    return sides["ncu"], sides["trace"]


def compared(
    measured: Mapping[str, Mapping[str, float]], traced: Mapping[str, Mapping[str, float]]
) -> CountsOfPatterns:
    """Return every count that both devices have."""
    both = sorted(measured.keys() & traced.keys())
    counts = tuple(
        count for pattern in both for count in counts_of(pattern, measured[pattern], traced[pattern])
    )
    within = sum(count.off <= BAR for count in counts)
    return CountsOfPatterns(
        summary=f"{within} of {len(counts)} counts of {len(both)} patterns within {BAR:.0%}",
        met=bool(counts) and within == len(counts),
        patterns=len(both),
        within=within,
        counts=counts,
    )


def counts_of(pattern: str, measured: Mapping[str, float], traced: Mapping[str, float]) -> Iterator[Count]:
    """Yield one pattern's counts; what a trace lacks did not occur."""
    names = [name for name in COUNTS if name in measured]
    names += [name for name, parts in JOINED.items() if name in measured and parts[0] not in measured]
    for name in names:
        real = measured[name]
        ours = sum(traced.get(part, 0.0) for part in JOINED.get(name, (name,)))
        if real == ours == 0 or (name.endswith(".ratio") and name not in traced):
            continue
        whole = max(real, passes(measured)) if "conflicts" in name else real
        off = abs(ours - real) / max(whole, 1.0)
        yield Count(pattern=pattern, metric=name, measured=real, traced=ours, off=off)


def passes(metrics: Mapping[str, float]) -> float:
    """Return how many passes through shared memory the hardware counted."""
    return metrics.get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 0.0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KernelSkillError, OSError, ValueError) as error:
        sys.exit(f"counts.py: {error}")
