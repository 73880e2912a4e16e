"""The worker's child process: holds one build, answers messages. Run with `-m`."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelskill.backends.emulated.engine import KernelObject, Runtime
from kernelskill.backends.emulated.execution import Executor, Failed
from kernelskill.backends.emulated.memory import DeviceMemory, NoMemory
from kernelskill.backends.emulated.sampling import Sampler, launches_of
from kernelskill.isolation.channel import serve

_PART = 1 << 24


class Device:
    """The loaded build and the plan that is current."""

    def __init__(self, folder: Path, limits: dict[str, Any]) -> None:
        self.module = json.loads((folder / "module.json").read_text(encoding="utf-8"))
        self.runtime = Runtime(folder / "runtime.so")
        self.plain = KernelObject(folder / "kernels.so")
        self.memory = DeviceMemory(self.runtime, self.plain.variables, self.plain.relocations)
        self.module["display_names"] = limits.get("display_names", {})
        self.executor = Executor(self.runtime, self.plain, self.module, self.memory, limits)
        self.poison = 0
        self.plan: dict[str, Any] = {}
        if (folder / "traced.so").exists():
            self.load_traced(folder / "traced.so")

    def load_traced(self, path: Path) -> None:
        """Load the instrumented object; its variables are the plain one's."""
        self.executor.traced = KernelObject(path)
        for mine, other in zip(self.plain.variables, self.executor.traced.variables, strict=True):
            mine.slots.extend(other.slots)

    def handle(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answer one message."""
        actions: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "load": self._load,
            "fill": self._fill,
            "put": lambda asked: self._put(asked["contents"]),
            "run": self._run,
            "read": lambda asked: self._read(asked["buffer"], asked["file"]),
            "damaged_guards": lambda asked: {"damaged": self.memory.damaged(self.poison)},
            "trace": self._trace,
            "traced": self._traced,
        }
        try:
            return actions[message["do"]](message) or {"ok": True}
        except Failed as failed:
            return {"status": failed.status, "detail": failed.detail, "notes": self.executor.notes}
        except NoMemory as error:
            return {"status": "out_of_memory", "detail": str(error), "notes": []}

    def _load(self, message: dict[str, Any]) -> None:
        self.plan = message["plan"]
        for number, launch in enumerate(launches_of(self.plan["operations"])):
            launch["resident"] = dict(message["resident"]).get(number)
        self.memory.lay_out(self.plan["allocations"], message["guard_bytes"], message["salt"])

    def _fill(self, message: dict[str, Any]) -> None:
        self.poison = message["poison"] & 0xFF
        self.memory.fill(self.poison)
        self._put(message["contents"])

    def _run(self, message: dict[str, Any]) -> dict[str, Any]:
        self.executor.run(self.plan["operations"], message["deadline_s"])
        return {"status": "passed", "detail": "", "notes": self.executor.notes}

    def _trace(self, message: dict[str, Any]) -> dict[str, Any]:
        sampler = Sampler(self.runtime, self.executor, self.module, message["l1_bytes"])
        return {"launches": sampler.trace(self.plan["operations"], message["deadline_s"])}

    def _traced(self, message: dict[str, Any]) -> None:
        self.load_traced(Path(message["file"]))
        self.memory.publish()

    def _region(self, buffer: str) -> tuple[int, int]:
        for region in self.memory.regions.values():
            if region.kind == "buffer" and region.name == buffer:
                return region.base, region.size
        raise KeyError(buffer)

    def _put(self, contents: dict[str, str]) -> None:
        for buffer, file in contents.items():
            base, size = self._region(buffer)
            view = memoryview((ctypes.c_ubyte * size).from_address(base)).cast("B")
            with open(file, "rb", buffering=0) as source:  # noqa: PTH123 - raw reads
                at = 0
                while at < size:
                    got = source.readinto(view[at : at + _PART])
                    if not got:
                        break
                    at += got
            Path(file).unlink()

    def _read(self, buffer: str, file: str) -> None:
        base, size = self._region(buffer)
        view = memoryview((ctypes.c_ubyte * size).from_address(base)).cast("B")
        with open(file, "wb", buffering=0) as target:  # noqa: PTH123 - raw writes
            for at in range(0, size, _PART):
                target.write(view[at : at + _PART])


def main() -> None:
    """Serve until the other end closes."""
    folder = Path(sys.argv[1])
    device = Device(folder, json.loads(sys.argv[2]))
    os.chdir(folder)
    serve(device.handle)


if __name__ == "__main__":
    main()
