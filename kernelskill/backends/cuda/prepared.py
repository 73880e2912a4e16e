"""Worker processes that have started before they are wanted: loading Python and the driver takes its second
while something else is done.

A process that waits has no context on the GPU, holds no build and has seen no candidate.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelskill.isolation.child import Child, Limits, clean_environment
from kernelskill.isolation.environment import python_path

SET_UP_S = 120.0


def worker_environment(folder: Path) -> dict[str, str]:
    """Return the environment of our own device processes."""
    environment = clean_environment(folder)
    environment["PYTHONPATH"] = python_path()
    # everything is loaded before the clock starts, and a capture must not load code
    environment["CUDA_MODULE_LOADING"] = "EAGER"
    return environment


class WorkerProcess:
    """A replay process with a folder of its own; it takes one build and ends with it.

    Args:
        device: As CUDA counts.
        core: The compiled replay loop.

    Raises:
        HarnessError: It could not be started at all.
    """

    def __init__(self, device: int, core: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kernelskill-cuda-"))
        command = [
            *(sys.executable, "-P", "-m", "kernelskill.backends.cuda.worker"),
            *("--device", str(device), "--core", str(core)),
        ]
        try:
            self._child = Child.start(
                command,
                cwd=self._folder,
                limits=Limits(wall_s=SET_UP_S),
                env=worker_environment(self._folder),
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def call(self, message: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """As `Child.call`."""
        return self._child.call(message, timeout_s=timeout_s)

    def close(self) -> None:
        """End the process; safe to call twice."""
        self._child.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class PreparedWorkers:
    """Processes that wait for a build. Safe to use from several threads.

    Args:
        start: Starts one; returns at once.
    """

    def __init__(self, start: Callable[[], WorkerProcess]) -> None:
        self._start = start
        self._waiting: list[WorkerProcess] = []
        self._lock = threading.Lock()

    def take(self) -> WorkerProcess:
        """Return a process that waits, or start one."""
        with self._lock:
            waiting = self._waiting.pop(0) if self._waiting else None
        return waiting or self._start()

    def prepare(self, count: int) -> None:
        """Start processes until so many wait; returns at once."""
        with self._lock:
            while len(self._waiting) < count:
                self._waiting.append(self._start())

    def close(self) -> None:
        """End what waits."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for process in waiting:
            process.close()
