"""Time lifted kernels against the user's own: `python benchmarks/lifted.py [TASK...] --device cuda:0`.

Without `--move` every kernel that can be lifted is emitted unchanged: it must pass and time as a tie.
`--move share_tiles:tile=16 --move block_points:points=8x8,threads=16x16,depth=8` makes moves first.
One JSON line a task; nothing is kept but the output.
"""

import argparse
import json
import tempfile
from pathlib import Path

from kernelskill.algorithm.emission import rewrite_kernel
from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import CannotLift, IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.schedule import Schedule
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock
from kernelskill.schema.candidate import Scheduled
from kernelskill.schema.evaluation import Request
from kernelskill.schema.task import Task
from kernelskill.skills.schedule_moves import move_rewrite
from kernelskill.skills.transformation import Site, SkillContext, SkillRefused
from kernelskill.source.edits import apply_to_text
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.load import LoadedTask, load_task

CORE = Path(__file__).parent / "core"


def parsed_move(text: str) -> tuple[str, dict[str, str]]:
    """Read `name:key=value,key=value`."""
    name, _, values = text.partition(":")
    return name, dict(value.split("=", 1) for value in values.split(",") if value)


def moved(
    text: str, path: str, kernel: str, moves: list[tuple[str, dict[str, str]]], task: Task | None
) -> str:
    """Return a file with moves made on a kernel as the skills make them, tests for overlaps included."""
    scheduled: tuple[Scheduled, ...] = ()
    for move, values in moves:
        unit = SourceUnit.parse(text, path)
        site = Site(key=kernel, kernel=kernel, reason="")
        context = SkillContext(task=task, units=(unit,), scheduled=scheduled)
        rewrite = move_rewrite(move, unit, site, values, context)
        text = apply_to_text(text, rewrite.edits)
        scheduled = (rewrite.scheduled,) if rewrite.scheduled is not None else ()
    return text


def emitted(
    text: str, path: str, moves: list[tuple[str, dict[str, str]]], task: Task | None = None
) -> tuple[str, list[str], dict[str, str]]:
    """Return a file with its kernels emitted, those that were, and why others were not."""
    done: list[str] = []
    refused: dict[str, str] = {}
    for name in [kernel.name for kernel in SourceUnit.parse(text, path).kernels]:
        unit = SourceUnit.parse(text, path)
        kernel = unit.kernel(name)
        assert kernel is not None
        try:
            if moves:
                text = moved(text, path, name, moves, task)
            else:
                lifted = lift_kernel(unit, kernel)
                text = rewrite_kernel(unit, lifted, Plan(lifted.algorithm, Schedule())).text
            done.append(name)
        except (CannotLift, IllegalMove, SkillRefused) as error:
            refused[name] = error.reason
    return text, done, refused


def measured(loaded: LoadedTask, text: str, device: str) -> dict[str, object]:
    """Time a rewritten main file against the original in pairs."""
    with tempfile.TemporaryDirectory() as folder:
        seeds = SeedFile(Path(folder) / "seeds.json")
        evaluator = open_evaluator(device, loaded, run_folder=Path(folder), seeds=seeds, clock=SystemClock())
        try:
            evaluation = evaluator.evaluate(
                Request(
                    task=loaded.task.content_digest(),
                    candidate=loaded.original.with_text(loaded.original.main, text),
                    stage="time",
                    incumbent=loaded.original,
                    device=evaluator.identity,
                    seed_pool=seeds.pool("main", 1).digest,
                )
            )
            conditions = evaluator.conditions().model_dump(mode="json")
        finally:
            evaluator.close()
    ratios = [[pair.median, pair.low, pair.high] for pair in evaluation.paired]
    times = [timing.median_ms for timing in evaluation.timings]
    found = {"status": evaluation.status, "detail": evaluation.detail, "speedup": ratios, "ms": times}
    return {**found, "conditions": conditions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names of core tasks; all by default")
    parser.add_argument("--device", default="emulated")
    parser.add_argument("--move", action="append", default=[], help="NAME:KEY=VALUE,... ; made in this order")
    options = parser.parse_args()
    moves = [parsed_move(text) for text in options.move]
    for folder in sorted(CORE.iterdir()):
        kernel = folder / "kernel.cu"
        if not kernel.is_file() or (options.tasks and folder.name not in options.tasks):
            continue
        loaded = load_task(kernel, folder / "test.py")
        text, done, refused = emitted(loaded.original.source, loaded.original.main, moves, loaded.task)
        row: dict[str, object] = {"task": folder.name, "emitted": done, "refused": refused}
        if done:
            row |= measured(loaded, text, options.device)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
