"""The worker's child process: holds one build, answers messages. Run with `-m`."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

from kernelskill.backends.emulated.engine import KernelObject, Runtime
from kernelskill.backends.emulated.execution import Executor, Failed
from kernelskill.backends.emulated.memory import DeviceMemory, NoMemory
from kernelskill.backends.emulated.sampling import Sampler
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
        try:
            match message["do"]:
                case "load":
                    self.plan = message["plan"]
                    self.memory.lay_out(self.plan["allocations"], message["guard_bytes"], message["salt"])
                case "fill":
                    self.poison = message["poison"] & 0xFF
                    self.memory.fill(self.poison)
                    self._put(message["contents"])
                case "put":
                    self._put(message["contents"])
                case "run":
                    self.executor.run(self.plan["operations"], message["deadline_s"])
                    return {"status": "passed", "detail": "", "notes": self.executor.notes}
                case "read":
                    self._read(message["buffer"], message["file"])
                case "damaged_guards":
                    return {"damaged": self.memory.damaged(self.poison)}
                case "trace":
                    sampler = Sampler(self.runtime, self.executor, self.module, message["l1_bytes"])
                    return {"launches": sampler.trace(self.plan["operations"], message["deadline_s"])}
                case "traced":
                    self.load_traced(Path(message["file"]))
                    self.memory.publish()
                case unknown:
                    return {"harness": f"unknown message {unknown!r}"}
        except Failed as failed:
            return {"status": failed.status, "detail": failed.detail, "notes": self.executor.notes}
        except NoMemory as error:
            return {"status": "out_of_memory", "detail": str(error), "notes": []}
        return {"ok": True}

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
