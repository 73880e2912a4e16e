"""The `emulated` backend: nvcc's PTX on the CPU, times from a model of a named GPU."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import kernelskill
from kernelskill.backends.base import Call, ProfileRun, RunOutcome, Unrecordable
from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.emulated.library import prepare
from kernelskill.backends.emulated.profile import kernel_profiles
from kernelskill.backends.emulated.worker import EmulatedWorker
from kernelskill.backends.recorder import history_matters, record
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.resources import cache_dir
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature

_POISON = 0xA5
_PROFILE_S = 300.0


class EmulatedBackend:
    """A GPU that is not there: kernels run on the CPU, their times are estimated.

    Args:
        gpu: The GPU whose limits hold and whose time is estimated.
        threads: Operating-system threads for the blocks of a launch; all processors by default.
        profile_s: Seconds after which a trace is given up.

    Raises:
        CompilerMissing: nvcc or g++ is not installed.
    """

    evidence: Evidence = "estimated"

    def __init__(self, gpu: Gpu, *, threads: int = 0, profile_s: float = _PROFILE_S) -> None:
        self.gpu = gpu
        self.name = f"emulated:{gpu.short_name}"
        self._threads = threads or len(os.sched_getaffinity(0))
        self._profile_s = profile_s
        self._toolchain = Toolchain.find()

    def conditions(self) -> Conditions:
        """Return what every figure of this device depends on."""
        return Conditions(
            device=self.name,
            gpu=self.gpu.name,
            cuda=self._toolchain.nvcc_version,
            kernelskill=kernelskill.__version__,
            python=platform.python_version(),
            host=f"{platform.system()} {platform.release()} {platform.machine()}",
            evidence=self.evidence,
        )

    def build(
        self, candidate: Candidate, signature: Signature, flags: tuple[str, ...]
    ) -> Build | BuildFailure:
        """Compile a candidate and translate its device code.

        Raises:
            TaskError: A flag cannot be used.
            HarnessError: The translation failed.
        """
        build = compile_candidate(
            candidate,
            signature,
            flags=flags,
            architecture=self.gpu.architecture,
            toolchain=self._toolchain,
            cache=_builds(cache_dir()),
        )
        if isinstance(build, Build):
            prepare(build, self._toolchain)
        return build

    def record(self, build: Build, signature: Signature, call: Call) -> LaunchPlan | Unrecordable:
        """Run the launcher once in the sandbox against the recording runtime."""
        return record(build, signature, call, gpu=self.gpu, toolchain=self._toolchain)

    def history(self, build: Build, signature: Signature, call: Call, before: Call) -> str:
        """Return how a call asks for other work after another one; empty where it does not."""
        return history_matters(build, signature, call, before, gpu=self.gpu, toolchain=self._toolchain)

    def open(self, build: Build) -> EmulatedWorker:
        """Start a worker that holds this build."""
        return EmulatedWorker(
            self.gpu, build, prepare(build, self._toolchain), self._toolchain, self._threads
        )

    def profile(
        self,
        build: Build,
        plan: LaunchPlan,
        contents: Mapping[str, Path],
        *,
        depth: Literal["quick", "full"],
    ) -> ProfileRun:
        """Trace sampled blocks of one plan on the given contents."""
        with self.open(build) as worker:
            worker.load(plan)
            worker.fill(contents, poison=_POISON)
            answer = worker.trace(timeout_s=self._profile_s)
        if isinstance(answer, RunOutcome):
            return ProfileRun(source="static", kernels=(), unavailable=answer.detail)
        return ProfileRun(
            source="trace",
            kernels=kernel_profiles(self.gpu, build, answer),
            duration_ms=answer.seconds * 1e3,
            unavailable="emulated: hardware counters need a GPU",
        )


@functools.cache
def _builds(home: Path) -> BuildCache:
    return BuildCache(home / "builds")
