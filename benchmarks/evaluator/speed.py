"""Record how many different candidates a minute the evaluator takes, and where the time goes.

    python benchmarks/evaluator/speed.py --device cuda:0 --out benchmarks/results/evaluator/speed-h200.json

For each task so many different candidates are made by the skills and sent through the cheap stage (a brief check
and few pairs) and through the full one, builds ahead of them as in a run. Beside that, in the same run, the time that
`torch.utils.cpp_extension.load_inline` alone takes to build one of the same candidates: nothing is checked or timed
there. Needs PyTorch and ninja for that; --no-torch leaves it out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any

from kernelskill.agents.brief import Brief
from kernelskill.agents.families import points, steps_at
from kernelskill.agents.specialist import propose
from kernelskill.errors import KernelSkillError
from kernelskill.evaluation.baseline import establish_baseline
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.resources import data_folder
from kernelskill.runs import SystemClock, write_atomically
from kernelskill.schema.candidate import Candidate, Lineage
from kernelskill.schema.evaluation import Depth, Evaluation, Request
from kernelskill.skills.apply import make_proposal
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.tasks.load import LoadedTask, load_task

CORE = Path(__file__).resolve().parents[1] / "core"
TASKS = ("vector_add", "softmax", "matmul")
DEPTHS: tuple[Depth, ...] = ("cheap", "search")
POINTS = 64
LOAD_INLINE = """
import sys, time
from pathlib import Path
from torch.utils.cpp_extension import load_inline
import torch
torch.zeros(1, device="cuda")
seconds = []
for number, path in enumerate(sys.argv[2:]):
    started = time.perf_counter()
    load_inline(name=f"candidate_{number}", cpp_sources="void nothing();", cuda_sources=Path(path).read_text()
                + "\\nvoid nothing() {}\\n", functions=["nothing"], build_directory=sys.argv[1], verbose=False)
    seconds.append(time.perf_counter() - started)
print(seconds)
"""


def main(arguments: list[str] | None = None) -> int:
    chosen = _options(arguments)
    record: dict[str, Any] = {"tasks": {}}
    try:
        for name in chosen.task or TASKS:
            with tempfile.TemporaryDirectory(prefix="kernelskill-speed-") as folder:
                record["tasks"][name] = _task(name, Path(folder), chosen, record)
            if chosen.out is not None:
                write_atomically(chosen.out, (json.dumps(record, indent=1) + "\n").encode())
    except KernelSkillError as error:
        print(f"speed: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cuda:N or emulated[:GPU]")
    parser.add_argument("--task", action="append", help=f"a core task; by default {', '.join(TASKS)}")
    parser.add_argument("--candidates", type=int, default=20, help="of each task and stage")
    parser.add_argument(
        "--depth", action="append", choices=DEPTHS, help="the stage, by default both; may be given again"
    )
    parser.add_argument("--no-torch", action="store_true", help="leave load_inline out")
    parser.add_argument("--torch-candidates", type=int, default=2, help="built by load_inline, of each task")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    return parser.parse_args(arguments)


def _task(name: str, folder: Path, chosen: argparse.Namespace, record: dict[str, Any]) -> dict[str, Any]:
    loaded, evaluator, pool = open_task(CORE / name, chosen.device, folder)
    with closing(evaluator):
        record["conditions"] = evaluator.conditions().model_dump(mode="json")
        found: dict[str, Any] = {}
        candidates = list(islice(different_candidates(loaded), 2 * chosen.candidates))
        for depth, part in zip(DEPTHS, (candidates[::2], candidates[1::2]), strict=True):
            if chosen.depth and depth not in chosen.depth:
                continue
            requests = [request_time(loaded, evaluator, each, pool, depth) for each in part]
            found[depth] = _rate(name, depth, evaluator, requests)
    if not chosen.no_torch:
        found["load_inline_s"] = _load_inline(candidates[: chosen.torch_candidates], folder)
        print(f"{name:<12} load_inline alone: {found['load_inline_s']} s a candidate", flush=True)
    return found


def open_task(task: Path, device: str, folder: Path) -> tuple[LoadedTask, LocalEvaluator, str]:
    """Load a task and time its original: return it with an open evaluator and its pool of seeds."""
    loaded = load_task(task / "kernel.cu", task / "test.py")
    seeds = SeedFile(folder / "seeds.json")
    evaluator = open_evaluator(device, loaded, run_folder=folder / "run", seeds=seeds, clock=SystemClock())
    assert isinstance(evaluator, LocalEvaluator)
    pool = seeds.pool(size=3).digest
    with ExitStack() as stack:
        stack.enter_context(closing(evaluator))
        establish_baseline(evaluator, loaded.task, loaded.original, seed_pool=pool)
        stack.pop_all()
    return loaded, evaluator, pool


def different_candidates(loaded: LoadedTask) -> Iterator[Candidate]:
    """Yield different candidates: what the skills make of the original, at one value after another."""
    library = SkillLibrary.load([data_folder("skills")])
    context = SkillContext(task=loaded.task)
    seen = {loaded.original.digest}
    brief = Brief(loaded.original, Lineage(), loaded.task, "", keep_exact=False, tried=seen)
    for specialist in library.specialists():
        for proposal in propose(specialist, brief, library).proposals:
            for values in points(proposal.choices, POINTS):
                try:
                    steps = steps_at(proposal.steps, proposal.choices, values)
                    candidate = make_proposal(loaded.original, steps, library, context).candidate
                except SkillRefused:
                    continue
                if candidate.digest not in seen:
                    seen.add(candidate.digest)
                    yield candidate


def request_time(
    loaded: LoadedTask, evaluator: LocalEvaluator, candidate: Candidate, pool: str, depth: Depth
) -> Request:
    return Request(
        task=loaded.task.content_digest(),
        candidate=candidate,
        stage="time",
        depth=depth,
        incumbent=loaded.original,
        device=evaluator.identity,
        seed_pool=pool,
    )


def _rate(name: str, depth: str, evaluator: LocalEvaluator, requests: Sequence[Request]) -> dict[str, Any]:
    """Send requests through the evaluator and return what they took together."""
    started = time.perf_counter()
    evaluator.prefetch(requests)
    answers = [evaluator.evaluate(request) for request in requests]
    wall = time.perf_counter() - started
    checked = [answer for answer in answers if answer.checks]
    stages = _stages(checked)
    rate = 60 * len(checked) / wall
    parts = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in stages.items())
    print(
        f"{name:<12} {depth:<6} {len(checked)} candidates, {rate:.1f} a minute; s each: {parts}", flush=True
    )
    statuses: dict[str, int] = {}
    for answer in answers:
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
    return {
        "candidates": len(checked),
        "wall_s": wall,
        "a_minute": rate,
        "mean_s": stages,
        "statuses": statuses,
    }


def _stages(answers: Sequence[Evaluation]) -> dict[str, float]:
    """Return the mean seconds of each stage; builds run beside one another and ahead."""
    total: dict[str, float] = {}
    for answer in answers:
        for stage in answer.seconds:
            total[stage.stage] = total.get(stage.stage, 0.0) + stage.seconds
    return {stage: seconds / len(answers) for stage, seconds in total.items()}


def _load_inline(candidates: Sequence[Candidate], folder: Path) -> list[float] | str:
    """Return the seconds that PyTorch takes to build each candidate, or why there are none."""
    build = folder / "torch"
    build.mkdir()
    paths = []
    for number, candidate in enumerate(candidates):
        paths.append(folder / f"candidate_{number}.cu")
        paths[-1].write_text(candidate.source, encoding="utf-8")
    command = [sys.executable, "-c", LOAD_INLINE, str(build), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no output"])[-1]
    seconds: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return [round(each, 2) for each in seconds]


if __name__ == "__main__":
    sys.exit(main())
