"""Time the phases of a build, one by one: `python benchmarks/evaluator/build_phases.py --out FILE.json`.

nvcc makes the device code (preprocess, cicc, ptxas) and the host object (preprocess, cudafe++, compile) in one go. The
program times each phase over tasks of the core suite by `nvcc --time` and says, of what a build takes, what could be
saved where only host code differs (cicc and ptxas) and where only device code differs (the host compiler).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from kernelskill.backends.toolchain import Toolchain
from kernelskill.resources import data_folder
from kernelskill.runs import write_atomically

PARTS = {
    "gcc (preprocessing 4)": "preprocess for the host",
    "cudafe++": "split off the host code (cudafe++)",
    "gcc (preprocessing 1)": "preprocess for the device",
    "cicc": "device code to PTX (cicc)",
    "ptxas": "PTX to machine code (ptxas)",
    "fatbinary": "pack",
    "gcc (compiling)": "compile the host code",
}
DEVICE, HOST = ("cicc", "ptxas"), ("gcc (compiling)",)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], help="a task of the suite; may be given again")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    chosen = parser.parse_args(arguments)
    toolchain = Toolchain.find()
    suite = data_folder("benchmarks") / "core"
    sources = sorted(suite.glob("*/kernel.cu"))
    if chosen.only:
        sources = [source for source in sources if source.parent.name in chosen.only]
    if not sources or chosen.repeats < 1:
        parser.error("no such task, or no repeats")
    tasks = {source.parent.name: _phases(source, toolchain, chosen.repeats) for source in sources}
    record = {"conditions": _conditions(toolchain), "milliseconds": tasks, "shares": _shares(tasks)}
    for name, share in record["shares"].items():
        print(f"{name:<48} {share:6.1%}")
    if chosen.out is not None:
        write_atomically(chosen.out, (json.dumps(record, indent=1) + "\n").encode())
    return 0


def _phases(source: Path, toolchain: Toolchain, repeats: int) -> dict[str, float]:
    """Return the median time of each phase in ms."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="kernelskill-phases-") as folder:
        command = [
            str(toolchain.nvcc),
            "-gencode",
            "arch=compute_90,code=sm_90",
            "-cudart",
            "none",
            "-lineinfo",
        ]
        command += ["-Xcompiler", "-fPIC", "-c", str(source), "-o", "host.o", "--time", "time.csv"]
        for _ in range(repeats):
            Path(folder, "time.csv").unlink(missing_ok=True)
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            rows = csv.reader(Path(folder, "time.csv").read_text().splitlines()[1:])
            for row in rows:
                name = row[1].strip()
                if name in PARTS:
                    found.setdefault(name, []).append(float(row[-2]))
    return {name: round(median(times), 2) for name, times in found.items()}


def _shares(tasks: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return what part of a build each phase is, as the median over tasks."""

    def part(names: tuple[str, ...]) -> float:
        shares = [sum(task.get(name, 0.0) for name in names) / sum(task.values()) for task in tasks.values()]
        return round(median(shares), 4)

    return {
        **{meaning: part((name,)) for name, meaning in PARTS.items()},
        "saved at most where only host code differs": part(DEVICE),
        "saved at most where only device code differs": part(HOST),
    }


def _conditions(toolchain: Toolchain) -> dict[str, Any]:
    return {
        "compiler": toolchain.compiler,
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


if __name__ == "__main__":
    sys.exit(main())
