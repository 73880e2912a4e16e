"""Our end of a `cuda` worker: the Worker protocol over the child's channel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.backends.base import RunOutcome, TimingRun
from kernelskill.backends.cuda.prepared import SET_UP_S, WorkerProcess
from kernelskill.errors import DeviceUnavailable, HarnessError, WorkerDied
from kernelskill.isolation.child import ChildTimeout
from kernelskill.schema.build import Build
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan


class Failed(Exception):
    """A call that the device answered with a failure."""

    def __init__(self, outcome: RunOutcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


@dataclass
class Activity:
    """When a GPU last worked for one of its workers: the clocks of a busy GPU need no warming."""

    busy_until: float = 0.0
    """On the monotonic clock, which all processes of a machine share."""

    def note(self) -> None:
        """Note that work has just ended."""
        self.busy_until = time.monotonic()


class CudaWorker:
    """A child process that holds one build on one GPU.

    Args:
        process: One that has seen no other build; closed with the worker.
        build: What it holds.
        seen_free: Waits until the GPU has ended a kernel that hung; called after the process was killed.
        closed: Called once the process has ended.
        activity: Shared by the workers of one GPU.
    """

    def __init__(
        self,
        process: WorkerProcess,
        build: Build,
        *,
        seen_free: Callable[[], None] | None = None,
        closed: Callable[[], None] | None = None,
        activity: Activity | None = None,
    ) -> None:
        self._activity = activity or Activity()
        self._process = process
        self._build: Build | None = build
        self._seen_free = seen_free
        self._closed = closed
        self._dead = ""
        self._load_failure: RunOutcome | None = None

    def load(self, plan: LaunchPlan, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        """Make `plan` the current one.

        A driver that refuses it (no memory, an attribute it does not allow) is not the harness's
        fault: the next `run` or `time` answers with that status.

        Raises:
            HarnessError: The plan is not one that may be carried out.
        """
        message = {
            "do": "load",
            "plan": plan.model_dump(mode="json"),
            "guard_bytes": guard_bytes,
            "salt": salt,
        }
        self._load_failure = None
        try:
            self._ask(message, SET_UP_S)
        except Failed as failed:
            self._load_failure = failed.outcome

    def fill(self, contents: Mapping[str, Path], *, poison: int) -> None:
        """Set all memory to `poison`, then the named buffers from files.

        Raises:
            HarnessError: A buffer or file does not fit the plan, or the device failed.
        """
        self._set({"do": "fill", "contents": _texts(contents), "poison": poison})

    def put(self, contents: Mapping[str, Path]) -> None:
        """Overwrite the named buffers.

        Raises:
            HarnessError: A buffer or file does not fit the plan, or the device failed.
        """
        self._set({"do": "put", "contents": _texts(contents)})

    def run(self, *, timeout_s: float) -> RunOutcome:
        """Carry out the plan once and wait for it."""
        if self._load_failure is not None:
            return self._load_failure
        try:
            self._ask({"do": "run"}, timeout_s)
        except Failed as failed:
            return failed.outcome
        self._activity.note()
        return RunOutcome(status=Status.PASSED)

    def read(self, buffer: str, destination: Path) -> None:
        """Write a buffer's bytes to a file.

        Raises:
            HarnessError: There is no such buffer, or the device failed.
        """
        self._set({"do": "read", "buffer": buffer, "destination": str(destination)})

    def damaged_guards(self) -> tuple[str, ...]:
        """Return the regions whose guard bands were written to."""
        try:
            return tuple(self._ask({"do": "damaged_guards"}, SET_UP_S)["damaged"])
        except Failed as failed:
            raise HarnessError(f"the guard bands cannot be read: {failed.outcome.detail}") from failed

    def time(
        self, samples: int, *, flush_l2: bool, timeout_s: float, repeats: int = 0
    ) -> TimingRun | RunOutcome:
        """Time the plan; every sample starts from the contents of the last `fill`."""
        if self._load_failure is not None:
            return self._load_failure
        message = {"do": "time", "samples": samples, "flush_l2": flush_l2, "repeats": repeats}
        try:
            answer = self._ask(message | {"busy_until": self._activity.busy_until}, timeout_s)
        except Failed as failed:
            return failed.outcome
        self._activity.note()
        return TimingRun(
            samples_ms=tuple(answer["samples_ms"]),
            evidence="measured",
            repeats=answer["repeats"],
            launch_share=answer["launch_share"],
            notes=tuple(answer["notes"]),
        )

    def close(self) -> None:
        """End the child process; safe to call twice."""
        self._process.close()
        if self._closed is not None:
            self._closed()

    def __enter__(self) -> CudaWorker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _set(self, message: dict[str, Any]) -> None:
        if self._load_failure is not None:
            return
        try:
            self._ask(message, SET_UP_S)
        except Failed as failed:
            if failed.outcome.status is Status.OUT_OF_MEMORY:
                self._load_failure = failed.outcome
                return
            raise HarnessError(f"{message['do']}: {failed.outcome.detail}") from failed

    def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if self._build is not None:
            build, self._build = self._build, None
            self._ask({"do": "open", "build": build.model_dump(mode="json")}, SET_UP_S)
        if self._dead:
            raise WorkerDied(self._dead, remedy="close this worker and open another")
        try:
            answer = self._process.call(message, timeout_s=timeout_s)
        except ChildTimeout as error:
            self._dead = f"the worker was killed after {timeout_s:g} s"
            if self._seen_free is not None:
                self._seen_free()
            detail = f"not finished after {timeout_s:g} s"
            raise Failed(RunOutcome(status=Status.TIMEOUT, detail=detail)) from error
        if "ok" in answer:
            return dict(answer["ok"])
        if "failed" in answer:
            raise Failed(RunOutcome.model_validate(answer["failed"]))
        if "dead" in answer:
            self._dead = str(answer["dead"])
            raise WorkerDied(self._dead, remedy="close this worker and open another")
        if "unavailable" in answer:
            raise DeviceUnavailable(
                str(answer["unavailable"]), remedy="see nvidia-smi, or use --device emulated"
            )
        raise HarnessError(str(answer.get("harness", "the worker's answer is malformed")))


def check_readable(build: Build) -> None:
    """Raise where a build's device code is gone.

    Raises:
        DeviceUnavailable: It is; the build must be made again.
    """
    if not os.access(Path(build.folder) / "device.cubin", os.R_OK):
        raise DeviceUnavailable(f"the device code of build {build.key[:12]} is gone", remedy="build it again")


def _texts(contents: Mapping[str, Path]) -> dict[str, str]:
    return {name: str(path.resolve()) for name, path in contents.items()}
