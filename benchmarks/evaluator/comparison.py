"""Time the comparison of a candidate's outputs with the reference, on the host: `python benchmarks/evaluator/comparison.py`.

Expected values never enter a candidate's GPU, so every byte is read back and compared here, in threads. The program
compares an output as large as asked (128 MiB by default) by the product's own function, in the ways it is used:
right but for rounding, bit for bit, wrong everywhere. With --out the figures and their conditions go into a JSON file.

What a candidate costs beside that is read from evaluations that were recorded on this machine: --against RUN
takes a run folder and prints which share of their build, record, check and timing the comparison would be.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import kernelskill
from kernelskill.evaluation.calls import Extent
from kernelskill.evaluation.comparison import Finding, compare_outputs, first_difference
from kernelskill.evaluation.trials import Trial
from kernelskill.runs import write_atomically
from kernelskill.schema.evaluation import Evaluation
from kernelskill.schema.task import Case, ElementType, Parameter, Role, Signature, Task
from kernelskill.tasks.bundle import ArrayFile, Bundle, Expected
from kernelskill.tasks.tolerance import default_tolerance

KINDS = {"float32": "float64", "float16": "float32", "float64": "float64", "int32": "int32"}
"""Type of an output to the type of its expected values, as references give them."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mebibytes", type=int, default=128, help="size of the output")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--against", type=Path, help="a run folder with evaluations of this machine")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    chosen = parser.parse_args(arguments)
    if chosen.mebibytes < 1 or chosen.repeats < 1:
        parser.error("--mebibytes and --repeats must be at least 1")
    record: dict[str, Any] = {"conditions": _conditions(), "mebibytes": chosen.mebibytes, "seconds": {}}
    with tempfile.TemporaryDirectory(prefix="kernelskill-comparison-") as folder:
        for name, run in _comparisons(Path(folder), chosen.mebibytes << 20):
            seconds = [_timed(run) for _ in range(chosen.repeats)]
            record["seconds"][name] = seconds
            rate = (chosen.mebibytes << 20) / median(seconds) / 1e9
            print(f"{name:<36} {median(seconds):7.3f} s  {rate:6.2f} GB/s", flush=True)
    if chosen.against is not None:
        record["cost_of_a_candidate_s"] = cost = _cost(chosen.against)
        worst = median(record["seconds"]["float32, right but for rounding"])
        share = worst / (worst + cost)
        record["share"] = share
        print(f"a candidate costs {cost:.2f} s there: the comparison would be {share:.1%} of it")
    if chosen.out is not None:
        write_atomically(chosen.out, (json.dumps(record, indent=1) + "\n").encode())
        print(f"written to {chosen.out}")
    return 0


def _comparisons(folder: Path, size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    rng = np.random.default_rng(1)
    for own, wide in KINDS.items():
        values = _values(rng, own, wide, size)
        trial, task = _trial(folder, own, values)
        exact, near = folder / "exact.bin", folder / "near.bin"
        values.astype(own).tofile(exact)
        yield f"{own}, right to the last bit", _compare(task, trial, exact, wrong=False)
        if own != "int32":
            (values * (1 + 4 * np.finfo(own).eps)).astype(own).tofile(near)
            yield f"{own}, right but for rounding", _compare(task, trial, near, wrong=False)
        (values + 1).astype(own).tofile(near)
        yield f"{own}, all wrong", _compare(task, trial, near, wrong=True)
    yield "an input, bit for bit", lambda: first_difference(exact, exact)


def _values(rng: np.random.Generator, own: str, wide: str, size: int) -> Any:
    count = size // np.dtype(own).itemsize
    if own == "int32":
        return rng.integers(-1000, 1000, count, dtype=np.int32)
    return rng.standard_normal(count).astype(own).astype(wide)


def _compare(task: Task, trial: Trial, path: Path, *, wrong: bool) -> Callable[[], Finding]:
    def run() -> Finding:
        found = compare_outputs(task, trial, {"y": path}, poison=None)
        assert (found.mismatch is not None) == wrong, found.detail
        return found

    return run


def _trial(folder: Path, own: str, values: Any) -> tuple[Trial, Task]:
    file = ArrayFile(file=f"{own}.bin", dtype=values.dtype.name, shape=values.shape, size_bytes=values.nbytes)
    values.tofile(folder / file.file)
    size = values.size * np.dtype(own).itemsize
    bundle = Bundle(
        key="comparison",
        folder=str(folder),
        case=0,
        seed=1,
        roles={"y": Role.OUTPUT},
        buffers={"y": size},
        inputs={},
        scalars={},
        expected={"y": Expected(values=file, dtype=own, shape=values.shape)},
    )
    element = ElementType(name=own, dtype=own, size_bytes=np.dtype(own).itemsize)
    case = Case(index=0, arguments={}, timed=True)
    task = Task(
        name="comparison",
        signature=Signature(symbol="f", parameters=(Parameter(name="y", kind="pointer", element=element),)),
        cases=(case,),
        roles={"y": Role.OUTPUT},
        tolerances={"y": default_tolerance(own)},
        original="",
        tests="",
    )
    extents = {"y": Extent(size_bytes=size, element_bytes=element.size_bytes)}
    return Trial(case=case, number=0, bundle=bundle, extents=extents), task


def _timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _cost(run: Path) -> float:
    """Return what a candidate of a run took, in the middle, over all stages of its deepest evaluation."""
    costs = []
    for path in sorted((run / "evaluations").glob("*.json")):
        evaluation = Evaluation.model_validate_json(path.read_bytes())
        if evaluation.passed and evaluation.stage == "time":
            costs.append(sum(stage.seconds for stage in evaluation.seconds))
    if not costs:
        sys.exit(f"comparison: no finished evaluation of stage time in {str(run)!r}")
    return median(costs)


def _conditions() -> dict[str, Any]:
    return {
        "kernelskill": kernelskill.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "host": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    sys.exit(main())
