"""Say what limits a kernel, without a run: profile it here, or read a report captured elsewhere."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from kernelskill.agents.profiler import Diagnosis, diagnose_candidate
from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.sass import KernelCode, machine_code
from kernelskill.backends.toolchain import Toolchain
from kernelskill.config import RunConfig
from kernelskill.errors import CompilerMissing, TaskError
from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.profiling.diagnose import diagnose
from kernelskill.profiling.imported import import_profile
from kernelskill.profiling.potential import hot_kernels
from kernelskill.profiling.profile import with_instructions
from kernelskill.profiling.roofline import arithmetic_rate, roofline
from kernelskill.resources import cache_dir
from kernelskill.runs import SystemClock
from kernelskill.schema.base import Record
from kernelskill.schema.build import BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Gpu
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.schema.profile import ProfileDepth, Roofline
from kernelskill.session.check import rewrite_of
from kernelskill.tasks.load import LoadedTask, load_task


class Profiled(Record):
    """A kernel's diagnosis with its machine code."""

    diagnosis: Diagnosis
    code: dict[str, KernelCode]
    """By display name; empty where there is no disassembler, or no compiler on this machine."""


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
    loaded, profiled = _loaded(kernel, tests, config, candidate)
    return _diagnosed(loaded, profiled, config, scratch, depth)[0]


def profile_with_code(
    kernel: Path,
    tests: Path,
    config: RunConfig,
    scratch: Path,
    *,
    candidate: Path | None = None,
    depth: ProfileDepth = "quick",
) -> Profiled:
    """Profile a kernel as `profile_kernel` does, and read its machine code too.

    Raises:
        TaskError: The kernel or its test cannot be used, or the kernel is wrong.
        ToolchainError: A compiler or device is missing.
    """
    loaded, profiled = _loaded(kernel, tests, config, candidate)
    diagnosis, gpu = _diagnosed(loaded, profiled, config, scratch, depth)
    return _with_code(diagnosis, loaded, profiled, gpu)


def _loaded(
    kernel: Path, tests: Path, config: RunConfig, candidate: Path | None
) -> tuple[LoadedTask, Candidate]:
    loaded = load_task(kernel, tests, keep_exact=config.keep_exact)
    return loaded, loaded.original if candidate is None else rewrite_of(loaded.original, candidate)


def _diagnosed(
    loaded: LoadedTask, profiled: Candidate, config: RunConfig, scratch: Path, depth: ProfileDepth
) -> tuple[Diagnosis, Gpu]:
    seeds = SeedFile(scratch / "seeds.json")
    evaluator = open_evaluator(config.device, loaded, run_folder=scratch, seeds=seeds, clock=SystemClock())
    try:
        pool = seeds.pool("main", config.trials).digest
        evaluation = _timed(evaluator, loaded, profiled, pool)
        standing = _standing(evaluator, loaded, evaluation)
        timings = evaluation.timings
        return diagnose_candidate(evaluator, profiled, standing, depth=depth, timings=timings), evaluator.gpu
    finally:
        evaluator.close()


def _with_code(diagnosis: Diagnosis, loaded: LoadedTask, profiled: Candidate, gpu: Gpu) -> Profiled:
    """Add the machine code; the build is in the cache already, unless another machine made it."""
    try:
        toolchain = Toolchain.find()
    except CompilerMissing:
        return Profiled(diagnosis=diagnosis, code={})
    build = compile_candidate(
        profiled,
        loaded.task.signature,
        flags=loaded.task.flags,
        architecture=gpu.architecture,
        toolchain=toolchain,
        cache=BuildCache(cache_dir() / "builds"),
    )
    if isinstance(build, BuildFailure):
        return Profiled(diagnosis=diagnosis, code={})
    code = machine_code(build, toolchain)
    named = {kernel.display_name: code[kernel.name] for kernel in build.kernels if kernel.name in code}
    kernels = with_instructions(diagnosis.profile.kernels, build, code)
    profile = diagnosis.profile.model_copy(update={"kernels": kernels})
    return Profiled(diagnosis=diagnosis.model_copy(update={"profile": profile}), code=named)


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
        candidate=profile.candidate,
        profile=profile,
        roofline=None,
        bottlenecks=diagnose(profile, None),
        hot=hot_kernels(profile),
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
    shape = next((shape for shape in evaluation.shapes if shape.case == case.index), None)
    arithmetic = arithmetic_rate(loaded.task, evaluator.gpu)
    return roofline(case, None, shape, timing, evaluator.gpu, flops_per_s=arithmetic)
