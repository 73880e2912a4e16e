"""Say what limits a kernel, without a run: profile it here, or read a report captured elsewhere."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from kernelskill.agents.profiler import Diagnosis, diagnose_candidate
from kernelskill.config import RunConfig
from kernelskill.errors import TaskError
from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.profiling.diagnose import diagnose
from kernelskill.profiling.imported import import_profile
from kernelskill.profiling.roofline import roofline
from kernelskill.runs import SystemClock
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.schema.profile import ProfileDepth, Roofline
from kernelskill.session.check import rewrite_of
from kernelskill.tasks.load import LoadedTask, load_task


def profile_kernel(
    kernel: Path,
    tests: Path,
    config: RunConfig,
    scratch: Path,
    *,
    candidate: Path | None = None,
    depth: ProfileDepth = "quick",
) -> Diagnosis:
    """Check a kernel briefly, time it, collect its figures on the first timed case and rank its limits.

    Args:
        kernel: The user's kernel.
        tests: Its test.
        config: Device and permissions.
        scratch: Folder for what is made on the way.
        candidate: A rewrite of the kernel's main file to profile in its place.
        depth: How much is collected, where the device has hardware counters.

    Raises:
        TaskError: The kernel or its test cannot be used, or the kernel is wrong.
        ToolchainError: A compiler or device is missing.
    """
    loaded = load_task(kernel, tests, keep_exact=config.keep_exact)
    profiled = loaded.original if candidate is None else rewrite_of(loaded.original, candidate)
    seeds = SeedFile(scratch / "seeds.json")
    evaluator = open_evaluator(config.device, loaded, run_folder=scratch, seeds=seeds, clock=SystemClock())
    try:
        pool = seeds.pool("main", config.trials).digest
        evaluation = _timed(evaluator, loaded, profiled, pool)
        standing = _standing(evaluator, loaded, evaluation)
        return diagnose_candidate(evaluator, profiled, standing, depth=depth)
    finally:
        evaluator.close()


def import_diagnosis(path: Path, *, gpu: str = "") -> Diagnosis:
    """Rank the limits that a report names: what ncu printed or wrote, or JSON that `profile --json` printed.

    Args:
        path: The report.
        gpu: Name of the GPU it was captured on, for people.

    Raises:
        TaskError: It cannot be read, or holds no profiled kernel.
    """
    if path.suffix == ".json":
        try:
            return Diagnosis.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise TaskError(
                f"{str(path)!r} is no profile: {str(error).splitlines()[0]}",
                remedy="give the output of `kernelskill profile ... --json`",
            ) from None
    profile = import_profile(path, gpu=gpu)
    return Diagnosis(
        candidate=profile.candidate, profile=profile, roofline=None, bottlenecks=diagnose(profile, None)
    )


def _timed(evaluator: Evaluator, loaded: LoadedTask, candidate: Candidate, pool: str) -> Evaluation:
    evaluation = evaluator.evaluate(
        Request(
            task=loaded.task.content_digest(),
            candidate=candidate,
            stage="time",
            incumbent=candidate,
            device=evaluator.identity,
            depth="cheap",
            seed_pool=pool,
        )
    )
    if not evaluation.passed:
        raise TaskError(
            f"the kernel ends with {evaluation.status.value}: {evaluation.detail}",
            remedy="`kernelskill check` says more; the figures of a wrong kernel mean nothing",
        )
    return evaluation


def _standing(evaluator: Evaluator, loaded: LoadedTask, evaluation: Evaluation) -> Roofline | None:
    """Return where the profiled case stands under the ceilings."""
    case = loaded.task.timed_cases[0]
    timing = evaluation.timing(case.index)
    if timing is None:
        return None
    least = next((shape.least_bytes for shape in evaluation.shapes if shape.case == case.index), None)
    return roofline(case, None, least, timing, evaluator.gpu)
