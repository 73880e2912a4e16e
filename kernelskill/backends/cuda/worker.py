"""The trusted child process of the `cuda` backend: `python -m kernelskill.backends.cuda.worker`.

It answers messages on its channel, or carries out one job folder and ends (for profilers, which want
a command). No candidate host code runs here.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelskill.backends.cuda.driver import Driver, DriverError
from kernelskill.backends.cuda.execution import Execution, sticky
from kernelskill.errors import DeviceUnavailable, HarnessError
from kernelskill.isolation.channel import serve
from kernelskill.schema.build import Build
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan

Message = dict[str, Any]

_OUT_OF_MEMORY = frozenset({2})
_ILLEGAL_ADDRESS = 700
_LAUNCH_ERRORS = frozenset({1, 98, 209, 221, 222, 223, 400, 500, 701, 720, 801, 901, 904, 906, 907, 912})
_MEANINGS = {
    700: "an access outside every allocation",
    702: "the driver's watchdog ended the kernel",
    710: "a device assert failed",
    714: "the device stack overflowed",
    715: "an illegal instruction, for example a trap",
    716: "a misaligned access",
    717: "an access in the wrong address space",
    718: "a jump to an invalid address",
    719: "the kernel failed on the device",
    720: "more blocks than a cooperative launch can hold at once",
    701: "a block needs more registers or shared memory than there are",
}


class WorkerLoop:
    """Answers one message at a time; after a broken context it refuses everything."""

    def __init__(self, device: int, core: Path) -> None:
        self._device = device
        self._core = core
        self._driver: Driver | None = None
        self._execution: Execution | None = None
        self._broken = ""

    def answer(self, message: Message) -> Message:
        """Return `{"ok": ...}`, `{"failed": ...}`, `{"harness": ...}`, `{"unavailable": ...}` or
        `{"dead": ...}`.
        """
        if self._broken:
            return {"dead": self._broken}
        try:
            return {"ok": self._do(message)}
        except DriverError as error:
            if sticky(error):
                self._broken = f"the device context ended with {error.name}"
            return {"failed": failure(error)}
        except OSError as error:
            return {"harness": str(error)}
        except HarnessError as error:
            return {"harness": error.message}
        except DeviceUnavailable as error:
            return {"unavailable": error.message}

    def _do(self, message: Message) -> Message:
        if message["do"] == "open":
            self._open(Build.model_validate(message["build"]))
            return {}
        execution = self._execution
        if execution is None:
            raise HarnessError("the worker holds no build")
        match message["do"]:
            case "load":
                plan = LaunchPlan.model_validate(message["plan"])
                execution.load(plan, int(message["guard_bytes"]), int(message["salt"]))
            case "fill":
                execution.fill(_paths(message["contents"]), int(message["poison"]))
            case "put":
                execution.put(_paths(message["contents"]))
            case "run":
                execution.run()
            case "read":
                execution.loaded.read(message["buffer"], Path(message["destination"]))
            case "damaged_guards":
                return {"damaged": list(execution.loaded.damaged_guards())}
            case "time":
                taken, notes, repeats = execution.time(
                    int(message["samples"]),
                    bool(message["flush_l2"]),
                    int(message["repeats"]),
                    float(message.get("busy_until", 0.0)),
                )
                shares = execution.launch_share()
                return {"samples_ms": taken, "notes": notes, "repeats": repeats, "launch_share": shares}
            case unknown:
                raise HarnessError(f"the worker knows no {unknown!r}")
        return {}

    def prepare(self) -> None:
        """Load the driver before a build is there; a failure shows when one is."""
        with suppress(DriverError, OSError):
            self._driver = Driver()

    def _open(self, build: Build) -> None:
        if self._execution is not None:
            raise HarnessError("the worker holds another build already")
        try:
            driver = self._driver or Driver()
            self._execution = Execution(self._device, self._core, build, driver)
        except (DriverError, OSError) as error:
            raise DeviceUnavailable(f"the GPU cannot be used: {error}") from error


def failure(error: DriverError) -> dict[str, str]:
    """Return status and detail of a driver error as JSON values."""
    if error.code in _OUT_OF_MEMORY:
        status = Status.OUT_OF_MEMORY
    elif error.code == _ILLEGAL_ADDRESS:
        status = Status.OUT_OF_BOUNDS
    elif error.code in _LAUNCH_ERRORS:
        status = Status.LAUNCH_ERROR
    else:
        status = Status.RUNTIME_ERROR
    meaning = _MEANINGS.get(error.code, "")
    detail = f"{error.call}: {error.name}" + (f" ({meaning})" if meaning else "")
    return {"status": status.value, "detail": detail}


def run_job(folder: Path) -> int:
    """Carry out the job in a folder once; return the exit status.

    `job.json` holds device, core, guard_bytes, poison, build, plan and contents (buffer to file).
    """
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    build = Build.model_validate(job["build"])
    try:
        execution = Execution(int(job["device"]), Path(job["core"]), build, Driver())
        execution.load(LaunchPlan.model_validate(job["plan"]), int(job["guard_bytes"]), 0)
        execution.fill(_paths(job["contents"]), int(job["poison"]))
        execution.run()
    except DriverError as error:
        sys.stderr.write(f"{failure(error)['detail']}\n")
        return 3
    except (HarnessError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 4
    return 0


def _paths(contents: dict[str, str]) -> dict[str, Path]:
    return {name: Path(path) for name, path in contents.items()}


def main() -> int:
    """Serve the channel, or do one job."""
    parser = argparse.ArgumentParser(prog="kernelskill.backends.cuda.worker")
    parser.add_argument("--job", type=Path, help="folder of one job; without it the channel is served")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--core", type=Path, help="the compiled replay core")
    options = parser.parse_args()
    if options.job is not None:
        return run_job(options.job)
    loop = WorkerLoop(options.device, options.core)
    loop.prepare()
    serve(loop.answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
