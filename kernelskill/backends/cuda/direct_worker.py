"""The untrusted child that calls a launcher: `python -m kernelskill.backends.cuda.direct_worker`.

Candidate host code runs in this process, so nothing that it answers is proof of anything.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from pathlib import Path
from typing import Any

from kernelskill.backends.cuda.driver import DEVICE_L2_BYTES, Driver, DriverError
from kernelskill.backends.cuda.memory import PlanMemory
from kernelskill.backends.cuda.timing import COLD_AFTER_S, LEAST_WARM_UPS, WARM_UP_S
from kernelskill.backends.cuda.worker import failure
from kernelskill.errors import HarnessError
from kernelskill.isolation.channel import serve
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import Address, Allocation

_SLOT_BYTES = 32
"""Room for one argument; the same in `recorder/caller.py`."""
_DEFAULT_STREAM = 0


class LauncherReturned(Exception):
    """The launcher returned an error code."""


class DirectExecution:
    """One launcher with the buffers of one call."""

    def __init__(self, device: int, library: Path) -> None:
        self._driver = Driver()
        self._driver.enter(device)
        self._library = ctypes.CDLL(str(library))
        self._entry = ctypes.cast(self._library.kernelskill_entry, ctypes.c_void_p)
        self._call = self._library.kernelskill_call
        self._call.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_longlong))
        self._call.restype = None
        self._flush_bytes = 2 * max(self._driver.device_attribute(device, DEVICE_L2_BYTES), 1 << 22)
        self._flush = 0
        self._busy_until = 0.0
        self._memory: PlanMemory | None = None
        self._slots = ctypes.create_string_buffer(_SLOT_BYTES)
        self._returns = "void"

    @property
    def memory(self) -> PlanMemory:
        """The memory of the current call.

        Raises:
            HarnessError: No call is loaded.
        """
        if self._memory is None:
            raise HarnessError("no call is loaded")
        return self._memory

    def load(self, message: dict[str, Any]) -> None:
        """Allocate the buffers and lay the arguments out."""
        if self._memory is not None:
            self._memory.release()
        names = list(message["buffers"])
        allocations = tuple(
            Allocation(id=number, kind="buffer", name=name, size_bytes=int(message["buffers"][name]))
            for number, name in enumerate(names)
        )
        guard_bytes, salt = int(message["guard_bytes"]), int(message["salt"])
        self._memory = PlanMemory(self._driver, allocations, 0, (), guard_bytes=guard_bytes, salt=salt)
        self._returns = str(message["returns"])
        self._slots = ctypes.create_string_buffer(_SLOT_BYTES * max(1, len(message["arguments"])))
        for number, argument in enumerate(message["arguments"]):
            if "buffer" in argument:
                place = Address(allocation=names.index(argument["buffer"]), offset=int(argument["offset"]))
                data = self._memory.address(place).to_bytes(8, "little")
            else:
                data = bytes.fromhex(argument.get("hex", "00" * 8))
            ctypes.memmove(ctypes.addressof(self._slots) + number * _SLOT_BYTES, data, len(data))

    def run(self) -> None:
        """Call the launcher and wait.

        Raises:
            DriverError: The device failed.
            LauncherReturned: The launcher returned an error.
        """
        self._launch()
        self._driver.synchronize()

    def time(self, samples: int, flush_l2: bool) -> dict[str, list[float]]:
        """Return event and wall times in ms; every sample starts from the last fill."""
        if not self._flush:
            self._flush = self._driver.allocate(self._flush_bytes)
        start, end = self._driver.event(timing=True), self._driver.event(timing=True)
        self._warm_up()
        events, walls = [], []
        for number in range(samples):
            self._driver.forget_persisting()
            self.memory.reset(_DEFAULT_STREAM)
            if flush_l2:
                self._driver.fill_async(self._flush, number & 0xFF, self._flush_bytes, _DEFAULT_STREAM)
            self._driver.synchronize()
            began = time.perf_counter()
            self._driver.call("cuEventRecord", start, _DEFAULT_STREAM)
            self._launch()
            self._driver.call("cuEventRecord", end, _DEFAULT_STREAM)
            self._driver.synchronize()
            walls.append((time.perf_counter() - began) * 1e3)
            events.append(self._driver.elapsed_ms(start, end))
        self._busy_until = time.monotonic()
        return {"events_ms": events, "walls_ms": walls}

    def _warm_up(self) -> None:
        """Call the launcher until the clocks are up, as the replay worker does."""
        started = time.monotonic()
        seconds = WARM_UP_S if started - self._busy_until > COLD_AFTER_S else 0.0
        done = 0
        while done < LEAST_WARM_UPS or time.monotonic() - started < seconds:
            self.memory.reset(_DEFAULT_STREAM)
            self.run()
            done += 1

    def _launch(self) -> None:
        result = ctypes.c_longlong()
        self._call(self._entry, ctypes.addressof(self._slots), ctypes.byref(result))
        if self._returns != "void" and result.value:
            raise LauncherReturned(f"the launcher returned {result.value}")


class DirectLoop:
    """Answers one message at a time."""

    def __init__(self, device: int, library: Path) -> None:
        self._device = device
        self._path = library
        self._execution: DirectExecution | None = None

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return `{"ok": ...}`, `{"failed": ...}`, `{"unavailable": ...}` or `{"harness": ...}`."""
        try:
            if self._execution is None:
                self._execution = DirectExecution(self._device, self._path)
        except (DriverError, OSError) as error:
            return {"unavailable": str(error)}
        try:
            return {"ok": self._do(self._execution, message)}
        except LauncherReturned as error:
            return {"failed": {"status": Status.LAUNCH_ERROR.value, "detail": str(error)}}
        except DriverError as error:
            return {"failed": failure(error)}
        except (HarnessError, OSError) as error:
            return {"harness": str(error)}

    def _do(self, execution: DirectExecution, message: dict[str, Any]) -> dict[str, Any]:
        contents = {name: Path(path) for name, path in message.get("contents", {}).items()}
        match message["do"]:
            case "load":
                execution.load(message)
            case "fill":
                execution.memory.fill(contents, int(message["poison"]))
            case "put":
                execution.memory.put(contents)
            case "run":
                execution.run()
            case "read":
                execution.memory.read(message["buffer"], Path(message["destination"]))
            case "damaged_guards":
                return {"damaged": list(execution.memory.damaged_guards())}
            case "time":
                return dict(execution.time(int(message["samples"]), bool(message["flush_l2"])))
            case unknown:
                raise HarnessError(f"the worker knows no {unknown!r}")
        return {}


def main() -> int:
    """Serve the channel."""
    parser = argparse.ArgumentParser(prog="kernelskill.backends.cuda.direct_worker")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--library", type=Path, required=True)
    options = parser.parse_args()
    serve(DirectLoop(options.device, options.library).answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
