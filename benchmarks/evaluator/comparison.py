"""Time the comparison of a candidate's outputs with the reference, on the host: `python benchmarks/evaluator/comparison.py`.

Expected values never enter a candidate's GPU, so every byte is read back and compared here, in threads. The program
compares an output as large as asked (128 MiB by default) by the product's own function, in the ways it is used:
right but for rounding, bit for bit, wrong everywhere. With --out the figures and their conditions go into a JSON file.

Which share of an evaluation that is, is measured where there is a device: --device sends different candidates of a
core task with an output of 128 MiB (or of --task) through the full stage under Python's profiler, and reports the time
spent in comparing outputs with the reference and bytes with bytes beside the time of the whole evaluations.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from speed import CORE, different_candidates, open_task, request_time

import kernelskill
from kernelskill.errors import KernelSkillError
from kernelskill.evaluation.calls import Extent
from kernelskill.evaluation.comparison import Finding, compare_outputs, first_difference
from kernelskill.evaluation.trials import Trial
from kernelskill.runs import write_atomically
from kernelskill.schema.task import Case, ElementType, Parameter, Role, Signature, Task
from kernelskill.tasks.bundle import ArrayFile, Bundle, Expected
from kernelskill.tasks.tolerance import default_tolerance, root_mean_square

KINDS = {"float32": "float64", "float16": "float32", "float64": "float64", "int32": "int32"}
"""Type of an output to the type of its expected values, as references give them."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mebibytes", type=int, default=128, help="size of the output")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", help="cuda:N: measure the share of an evaluation too")
    parser.add_argument("--task", default="gelu", help="the core task of that; its output has 128 MiB")
    parser.add_argument("--candidates", type=int, default=8, help="of that task")
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
    if chosen.device is not None:
        try:
            found = _evaluations(chosen.device, chosen.task, chosen.candidates)
        except KernelSkillError as error:
            print(f"comparison: {error.message}", file=sys.stderr)
            return error.exit_code
        record["evaluations"] = found
        share = found["compared_s"] / found["evaluated_s"]
        found["share"] = share
        print(
            f"{found['candidates']} candidates of {chosen.task} took {found['evaluated_s']:.2f} s each, "
            f"{found['compared_s']:.2f} s of it comparing: {share:.1%}"
        )
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
        expected={"y": Expected(values=file, dtype=own, shape=values.shape, scale=root_mean_square(values))},
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


def _evaluations(device: str, name: str, count: int) -> dict[str, Any]:
    """Return the mean seconds of an evaluation, and how many of them compare; the mean over all that passed."""
    with tempfile.TemporaryDirectory(prefix="kernelskill-comparison-") as folder:
        loaded, evaluator, pool = open_task(CORE / name, device, Path(folder))
        with closing(evaluator):
            candidates = list(islice(different_candidates(loaded), count))
            # Built before anything is timed: compilers would take the processors from the comparison.
            for each in candidates:
                evaluator.evaluate(request_time(loaded, evaluator, each, pool, "cheap"))
            requests = [request_time(loaded, evaluator, each, pool, "search") for each in candidates]
            profile = cProfile.Profile()
            started = time.perf_counter()
            answers = [profile.runcall(evaluator.evaluate, request) for request in requests]
            seconds = time.perf_counter() - started
            checked = [answer for answer in answers if answer.checks]
            conditions = evaluator.conditions().model_dump(mode="json")
    if not checked:
        sys.exit(
            f"comparison: no candidate of {name} was checked: {answers[0].detail if answers else 'none'}"
        )
    compared = sum(_cumulative(profile, each) for each in (compare_outputs, first_difference))
    return {
        "task": name,
        "candidates": len(checked),
        "evaluated_s": seconds / len(checked),
        "compared_s": compared / len(checked),
        "conditions": conditions,
    }


def _cumulative(profile: cProfile.Profile, function: Callable[..., object]) -> float:
    """Return the seconds spent in a function and in what it waits for."""
    stats: Any = pstats.Stats(profile)
    return sum(
        float(cumulative)
        for (_, _, name), (_, _, _, cumulative, _) in stats.stats.items()
        if name == function.__name__
    )


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
