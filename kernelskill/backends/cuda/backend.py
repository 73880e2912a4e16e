"""The `cuda` backend: builds with nvcc, replays plans in a trusted worker, measures."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import kernelskill
from kernelskill.backends.base import Call, ProfileRun, Unrecordable
from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.cuda.client import Activity, CudaWorker, check_readable
from kernelskill.backends.cuda.clocks import read_clocks
from kernelskill.backends.cuda.detect import FoundGpu, ask_nvidia_smi, find_gpus
from kernelskill.backends.cuda.direct import DirectWorker
from kernelskill.backends.cuda.ncu import profile_with_ncu
from kernelskill.backends.cuda.nvml import gpu_state
from kernelskill.backends.cuda.occupants import require_free_again, require_idle
from kernelskill.backends.cuda.prepared import PreparedWorkers, WorkerProcess
from kernelskill.backends.cuda.replay_core import compile_core
from kernelskill.backends.cuda.sanitizer import ALL_TOOLS, SanitizerReport, Tool, sanitize_plan
from kernelskill.backends.recorder import history_matters, record
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import DeviceUnavailable
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.isolation.locks import FileLock
from kernelskill.resources import cache_dir
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import ClockState, Conditions, Evidence
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature

_SMI_FIELDS = ("driver_version", "clocks.current.sm", "clocks.current.memory")


class CudaBackend:
    """One NVIDIA GPU of this machine.

    Args:
        index: As CUDA counts, after CUDA_VISIBLE_DEVICES.

    Raises:
        DeviceUnavailable: There is no such GPU.
    """

    evidence: Evidence = "measured"

    def __init__(self, index: int = 0) -> None:
        found = find_gpus()
        if not 0 <= index < len(found):
            names = ", ".join(f"cuda:{each.index} ({each.name})" for each in found) or "none"
            raise DeviceUnavailable(
                f"there is no GPU {index}; visible: {names}", remedy="name one of these, or --device emulated"
            )
        self.found: FoundGpu = found[index]
        self.name = f"cuda:{index}"
        self.gpu = self.found.gpu
        self._toolchain: Toolchain | None = None
        self._cache: BuildCache | None = None
        self._seen_idle = False
        self._prepared = PreparedWorkers(lambda: WorkerProcess(self.found.index, self.core))
        self._kept_ready = 0
        self._activity = Activity()

    def conditions(self) -> Conditions:
        """Return what every figure of this device depends on; the clocks are those of this moment."""
        driver, sm_mhz, memory_mhz = _driver_and_clocks(self.found.uuid)
        return Conditions(
            device=self.name,
            gpu=self.found.name,
            driver=driver,
            cuda=self.toolchain.nvcc_version,
            kernelskill=kernelskill.__version__,
            python=platform.python_version(),
            host=f"{platform.system()} {platform.release()} {platform.machine()}",
            sm_clock_mhz=sm_mhz,
            memory_clock_mhz=memory_mhz,
            evidence=self.evidence,
        )

    def build(
        self, candidate: Candidate, signature: Signature, flags: tuple[str, ...]
    ) -> Build | BuildFailure:
        """Compile a candidate for this GPU, or return the finished build of an equal one.

        Raises:
            CompilerMissing: No compiler can be used at all.
        """
        return compile_candidate(
            candidate,
            signature,
            flags=flags,
            architecture=self.gpu.architecture,
            toolchain=self.toolchain,
            cache=self.cache,
        )

    def record(self, build: Build, signature: Signature, call: Call) -> LaunchPlan | Unrecordable:
        """Run the launcher once in the sandbox against the recording runtime."""
        return record(build, signature, call, gpu=self.gpu, toolchain=self.toolchain)

    def history(self, build: Build, signature: Signature, call: Call, before: Call) -> str:
        """Return how a call asks for other work after another one; empty where it does not."""
        return history_matters(build, signature, call, before, gpu=self.gpu, toolchain=self.toolchain)

    def open(self, build: Build) -> CudaWorker:
        """Start a worker that holds this build.

        Raises:
            DeviceUnavailable: The build's files are gone.
            CompilerMissing: The replay core does not compile here.
        """
        check_readable(build)
        return CudaWorker(
            self._prepared.take(),
            build,
            seen_free=self._seen_free,
            closed=self._prepare_again,
            activity=self._activity,
        )

    def prepare_workers(self, count: int) -> None:
        """Keep so many processes started for the next workers, from the next worker's end on; 0 ends them.

        They start when a worker ends, so that none starts while another is timed.
        """
        self._kept_ready = count
        if not count:
            self._prepared.close()

    def _prepare_again(self) -> None:
        self._prepared.prepare(self._kept_ready)

    def open_direct(self, build: Build, signature: Signature) -> DirectWorker:
        """Start a worker that runs the launcher itself, as an unprivileged user, where it cannot be recorded.

        Its times are the candidate's process's own; whoever uses them labels them `direct`.

        Raises:
            CompilerMissing: The launcher cannot be linked with the CUDA runtime.
        """
        return DirectWorker(
            self.found.index,
            build,
            signature,
            toolchain=self.toolchain,
            cache=self.cache,
            seen_free=self._seen_free,
        )

    def profile(
        self,
        build: Build,
        plan: LaunchPlan,
        contents: Mapping[str, Path],
        *,
        depth: Literal["quick", "full"],
    ) -> ProfileRun:
        """Collect counters with Nsight Compute; static facts alone, with the reason, where that fails."""
        return profile_with_ncu(build, plan, contents, device=self.found.index, core=self.core, depth=depth)

    def sanitize(
        self,
        build: Build,
        plan: LaunchPlan,
        contents: Mapping[str, Path],
        *,
        tools: tuple[Tool, ...] = ALL_TOOLS,
    ) -> SanitizerReport:
        """Run compute-sanitizer over one execution of the plan; use a small case."""
        return sanitize_plan(build, plan, contents, device=self.found.index, core=self.core, tools=tools)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock of this GPU: whoever times holds it, in any process of this user.

        The first time, nobody else may work on the GPU.

        Raises:
            DeviceUnavailable: Somebody does.
        """
        with FileLock(cache_dir() / "locks" / f"gpu-{self.found.uuid}.lock"):
            if not self._seen_idle:
                require_idle(f"{self.name} ({self.found.name})", self.found.uuid)
                self._seen_idle = True
            yield

    def clocks(self) -> ClockState:
        """Return how fast the GPU runs at this moment, and what slows it down."""
        return read_clocks(self.found.uuid)

    def _seen_free(self) -> None:
        require_free_again(f"{self.name} ({self.found.name})", self.found.uuid)

    @property
    def toolchain(self) -> Toolchain:
        """The compilers.

        Raises:
            CompilerMissing: There are none.
        """
        if self._toolchain is None:
            self._toolchain = Toolchain.find()
        return self._toolchain

    @property
    def cache(self) -> BuildCache:
        """Where builds are kept."""
        if self._cache is None:
            self._cache = BuildCache(cache_dir() / "builds")
        return self._cache

    @property
    def core(self) -> Path:
        """The compiled replay loop.

        Raises:
            CompilerMissing: It does not compile here.
        """
        return compile_core(self.toolchain, self.cache)


def _driver_and_clocks(uuid: str) -> tuple[str, float | None, float | None]:
    """Return the driver's version, and the clocks of the processors and the memory in MHz."""
    state = gpu_state(uuid)
    if state is not None:
        return state.driver, state.sm_mhz, state.memory_mhz
    said = ask_nvidia_smi(uuid, _SMI_FIELDS)
    sm_mhz, memory_mhz = (_float(said.get(field)) for field in _SMI_FIELDS[1:])
    return said.get("driver_version", ""), sm_mhz, memory_mhz


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
