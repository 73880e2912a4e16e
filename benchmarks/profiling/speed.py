"""Record how long a profile of each depth takes, a candidate: `python benchmarks/profiling/speed.py --device cuda:0`.

For each task the original is built, checked and planned first, as in a run; then the wall time of one quick and one
full profile is taken, with the process of Nsight Compute, the replay of the launches and the reading of the report.
With --out the figures and their conditions go into a JSON file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from kernelskill.errors import KernelSkillError
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock, write_atomically
from kernelskill.schema.evaluation import Request
from kernelskill.schema.profile import ProfileDepth
from kernelskill.tasks.load import load_task

CORE = Path(__file__).resolve().parents[1] / "core"
TASKS = ("vector_add", "softmax", "matmul", "batch_norm", "attention")


def main(arguments: list[str] | None = None) -> int:
    chosen = _options(arguments)
    record: dict[str, Any] = {"tasks": {}}
    try:
        for name in chosen.task or TASKS:
            with tempfile.TemporaryDirectory(prefix="kernelskill-profiles-") as folder:
                record["tasks"][name] = _task(name, Path(folder), chosen.device, record)
            if chosen.out is not None:
                write_atomically(chosen.out, (json.dumps(record, indent=1) + "\n").encode())
    except KernelSkillError as error:
        print(f"profiling speed: {error.message}", file=sys.stderr)
        if error.remedy:
            print(f"  {error.remedy}", file=sys.stderr)
        return error.exit_code
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cuda:N or emulated[:GPU]")
    parser.add_argument("--task", action="append", help=f"a core task; by default {', '.join(TASKS)}")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    return parser.parse_args(arguments)


def _task(name: str, folder: Path, device: str, record: dict[str, Any]) -> dict[str, Any]:
    loaded = load_task(CORE / name / "kernel.cu", CORE / name / "test.py")
    seeds = SeedFile(folder / "seeds.json")
    evaluator = open_evaluator(device, loaded, run_folder=folder / "run", seeds=seeds, clock=SystemClock())
    assert isinstance(evaluator, LocalEvaluator)
    found: dict[str, Any] = {}
    with closing(evaluator):
        checked = evaluator.evaluate(
            Request(
                task=loaded.task.content_digest(),
                candidate=loaded.original,
                stage="check",
                depth="cheap",
                device=evaluator.identity,
                seed_pool=seeds.pool(size=3).digest,
            )
        )
        if not checked.passed:
            raise KernelSkillError(f"{name}: {checked.status}: {checked.detail}")
        record["conditions"] = evaluator.conditions().model_dump(mode="json")
        for depth in get_args(ProfileDepth):
            started = time.perf_counter()
            profile = evaluator.profile(loaded.original, depth=depth)
            found[depth] = {
                "seconds": time.perf_counter() - started,
                "source": profile.source,
                "kernels": len(profile.kernels),
                "metrics": sum(len(kernel.metrics) for kernel in profile.kernels),
            }
            print(f"{name:<12} {depth:<6} {found[depth]['seconds']:6.2f} s  {found[depth]}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
