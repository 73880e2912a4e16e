"""Our end of an emulated worker: the Worker protocol over the child's channel."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kernelskill.backends.base import RunOutcome, TimingRun
from kernelskill.backends.emulated.estimate import l1_share
from kernelskill.backends.emulated.library import MODULE_FILE, Library, traced_object
from kernelskill.backends.emulated.profile import PlanEstimate, estimate_plan
from kernelskill.backends.plan_check import check_plan
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.hardware.occupancy import occupancy
from kernelskill.isolation.child import (
    Child,
    ChildKilled,
    ChildTimeout,
    Limits,
    clean_environment,
    private_folder,
)
from kernelskill.isolation.environment import hand_over, python_path
from kernelskill.schema.build import Build
from kernelskill.schema.device import Gpu
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan

_SET_UP_S = 300.0
_GRACE_S = 5.0
"""How long after its own deadline a child that does not answer is killed."""
_PACKAGE_ROOT = Path(__file__).resolve().parents[3]


class EmulatedWorker:
    """A child process that holds one translated build.

    Deadlines are kept twice: the child ends a run by itself and names the line that was running; a child
    that does not is killed.
    """

    def __init__(self, gpu: Gpu, build: Build, library: Library, toolchain: Toolchain, threads: int) -> None:
        self._gpu = gpu
        self._build = build
        self._library = library
        self._toolchain = toolchain
        self._dead = ""
        self._failed: RunOutcome | None = None
        self._plan: LaunchPlan | None = None
        self._files = 0
        self._filled: tuple[dict[str, Path], int] = ({}, 0)
        self._changed = False
        self._has_traced = False
        self._stack = ExitStack()
        try:
            self._folder = self._stack.enter_context(private_folder("kernelskill-emulated-"))
            self._copy_library()
            command = [sys.executable, "-P", "-m", "kernelskill.backends.emulated.child"]
            command += [str(self._folder), json.dumps(self._limits(threads))]
            self._child = self._stack.enter_context(
                Child.start(
                    command,
                    cwd=self._folder,
                    limits=Limits(wall_s=_SET_UP_S),
                    env=_environment(self._folder),
                    unprivileged=_readable_by_all(Path(sys.executable), _PACKAGE_ROOT),
                )
            )
        except BaseException:
            self._stack.close()
            raise

    def _copy_library(self) -> None:
        shutil.copyfile(self._library.runtime, self._folder / "runtime.so")
        for name in ("kernels.so", MODULE_FILE):
            shutil.copyfile(self._library.folder / name, self._folder / name)
        if any(kernel["uses_shared"] for kernel in self._library.module["kernels"].values()):
            shutil.copyfile(traced_object(self._library, self._toolchain), self._folder / "traced.so")
            self._has_traced = True
        hand_over(self._folder)

    def _limits(self, threads: int) -> dict[str, Any]:
        names = {kernel.name: kernel.display_name for kernel in self._build.kernels}
        return {"threads": threads, "shared_bytes": self._gpu.shared_bytes_per_block, "display_names": names}

    def load(self, plan: LaunchPlan, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        """Make `plan` the current one.

        Raises:
            HarnessError: The plan is not one that may be carried out.
        """
        check_plan(plan, self._build)
        self._failed = None
        self._plan = plan
        if sum(a.size_bytes for a in plan.allocations) > self._gpu.memory_bytes:
            self._failed = RunOutcome(
                status=Status.OUT_OF_MEMORY, detail="the plan needs more memory than the GPU has"
            )
            return
        message = {
            "do": "load",
            "plan": plan.model_dump(mode="json"),
            "guard_bytes": guard_bytes,
            "salt": salt,
            "resident": self._resident(plan),
        }
        self._set(message)

    def fill(self, contents: Mapping[str, Path], *, poison: int) -> None:
        """Set all memory to `poison`, then the named buffers from files.

        Raises:
            HarnessError: A buffer or file does not fit the plan.
        """
        self._set({"do": "fill", "contents": self._carry(contents), "poison": poison})
        self._filled = (dict(contents), poison)
        self._changed = False

    def put(self, contents: Mapping[str, Path]) -> None:
        """Overwrite the named buffers.

        Raises:
            HarnessError: A buffer or file does not fit the plan.
        """
        self._set({"do": "put", "contents": self._carry(contents)})
        self._changed = True

    def run(self, *, timeout_s: float) -> RunOutcome:
        """Carry out the plan once and wait for it."""
        if self._failed is not None:
            return self._failed
        self._changed = True
        return self._outcome({"do": "run", "deadline_s": timeout_s}, timeout_s)

    def read(self, buffer: str, destination: Path) -> None:
        """Write a buffer's bytes to a file.

        Raises:
            HarnessError: There is no such buffer.
        """
        self._size(buffer)
        self._files += 1
        file = self._folder / f"out{self._files}"
        file.touch()
        hand_over(file)
        self._set({"do": "read", "buffer": buffer, "file": str(file)})
        shutil.move(file, destination)

    def damaged_guards(self) -> tuple[str, ...]:
        """Return the regions whose guard bands were written to."""
        return tuple(self._ask({"do": "damaged_guards"}, _SET_UP_S)["damaged"])

    def time(
        self, samples: int, *, flush_l2: bool, timeout_s: float, repeats: int = 0
    ) -> TimingRun | RunOutcome:
        """Estimate the plan's device time from sampled blocks; one value, whatever `samples` says.

        The kernels start from the contents of the last `fill`, and leave the memory partly written.
        """
        answer = self.trace(timeout_s=timeout_s)
        if isinstance(answer, RunOutcome):
            return answer
        return TimingRun(
            samples_ms=(answer.seconds * 1e3,),
            evidence="estimated",
            launch_share=answer.shares(self._build),
            moved_bytes=answer.moved_bytes,
        )

    def trace(self, *, timeout_s: float) -> PlanEstimate | RunOutcome:
        """Run sampled blocks of the plan instrumented and estimate its time."""
        if self._failed is not None:
            return self._failed
        if self._plan is None:
            raise HarnessError("no plan has been loaded")
        self._load_traced()
        if self._changed:
            self._fill_again()
        self._changed = True
        message = {"do": "trace", "deadline_s": timeout_s, "l1_bytes": self._l1_bytes(self._plan)}
        answer = self._checked(message, timeout_s)
        if isinstance(answer, RunOutcome):
            return answer
        if "status" in answer:
            return RunOutcome.model_validate(answer)
        return estimate_plan(self._gpu, self._build, self._plan, answer["launches"], self._library.module)

    def _load_traced(self) -> None:
        if self._has_traced:
            return
        file = self._folder / "traced.so"
        shutil.copyfile(traced_object(self._library, self._toolchain), file)
        hand_over(file)
        self._ask({"do": "traced", "file": str(file)}, _SET_UP_S)
        self._has_traced = True

    def _resident(self, plan: LaunchPlan) -> list[list[int]]:
        """Return for each launch how many of its blocks the GPU holds at once."""
        found: list[list[int]] = []
        for number, launch in enumerate(plan.launches()):
            resources = self._build.kernel(launch.kernel)
            threads = launch.block[0] * launch.block[1] * launch.block[2]
            if resources is not None and 1 <= threads <= 1024:
                shared = resources.static_shared_bytes + launch.dynamic_shared_bytes
                found.append([number, resident_blocks(self._gpu, resources.registers, shared, threads)])
        return found

    def _l1_bytes(self, plan: LaunchPlan) -> dict[str, int]:
        shares: dict[str, int] = {}
        for launch in plan.launches():
            resources = self._build.kernel(launch.kernel)
            threads = launch.block[0] * launch.block[1] * launch.block[2]
            if resources is not None and 1 <= threads <= 1024:
                blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
                shares[launch.kernel] = l1_share(
                    self._gpu, resources, launch.dynamic_shared_bytes, threads, blocks
                )
        return shares

    def _fill_again(self) -> None:
        contents, poison = self._filled
        self.fill(contents, poison=poison)

    def close(self) -> None:
        """End the child process; safe to call twice."""
        self._dead = self._dead or "the worker has been closed"
        self._stack.close()

    def __enter__(self) -> EmulatedWorker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _size(self, buffer: str) -> int:
        for allocation in self._plan.allocations if self._plan else ():
            if allocation.kind == "buffer" and allocation.name == buffer:
                return allocation.size_bytes
        raise HarnessError(f"the plan has no buffer {buffer!r}")

    def _carry(self, contents: Mapping[str, Path]) -> dict[str, str]:
        """Copy files to where the child can read them."""
        carried: dict[str, str] = {}
        for buffer, path in contents.items():
            expected, found = self._size(buffer), path.stat().st_size
            if expected != found:
                raise HarnessError(f"buffer {buffer!r} has {expected} bytes, its file {found}")
            self._files += 1
            carried[buffer] = str(self._folder / f"in{self._files}")
            shutil.copyfile(path, carried[buffer])
            hand_over(Path(carried[buffer]))
        return carried

    def _set(self, message: dict[str, Any]) -> None:
        if self._failed is not None:
            return
        answer = self._ask(message, _SET_UP_S)
        if "status" in answer:
            self._failed = RunOutcome.model_validate(answer)

    def _outcome(self, message: dict[str, Any], timeout_s: float) -> RunOutcome:
        answer = self._checked(message, timeout_s)
        return answer if isinstance(answer, RunOutcome) else RunOutcome.model_validate(answer)

    def _checked(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any] | RunOutcome:
        try:
            return self._ask(message, timeout_s + _GRACE_S)
        except ChildTimeout:
            self._dead = f"the worker was killed after {timeout_s:g} s"
            return RunOutcome(status=Status.TIMEOUT, detail=f"not finished after {timeout_s:g} s")
        except ChildKilled as error:
            self._dead = str(error.message)
            raise  # no kernel can do that
        except WorkerDied as error:
            self._dead = str(error.message)
            return RunOutcome(status=Status.RUNTIME_ERROR, detail="the kernel broke its worker process")

    def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if self._dead:
            raise WorkerDied(self._dead, remedy="close this worker and open another")
        answer = self._child.call(message, timeout_s=timeout_s)
        if "harness" in answer:
            raise HarnessError(str(answer["harness"]))
        return answer


def _environment(folder: Path) -> dict[str, str]:
    environment = clean_environment(folder)
    environment["PYTHONPATH"] = python_path()
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return environment


def _readable_by_all(*paths: Path) -> bool:
    """Whether another user could run our interpreter and import our package."""
    for path in paths:
        for place in {path, path.resolve()}:
            for folder in place.parents:
                if folder.stat().st_mode & 0o001 == 0:
                    return False
    return True


def resident_blocks(gpu: Gpu, registers: int, shared_bytes: int, threads: int) -> int:
    """Return how many blocks of a kernel the GPU holds at once."""
    return occupancy(gpu, registers, shared_bytes, threads).blocks_per_sm * gpu.sm_count
