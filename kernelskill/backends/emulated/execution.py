"""Carry out a plan's operations inside the worker's child process."""

from __future__ import annotations

import ctypes
import math
import time
from typing import Any

from kernelskill.backends.emulated.engine import FAULTS, SPACES, Fault, KernelObject, LaunchRequest, Runtime
from kernelskill.backends.emulated.memory import DeviceMemory
from kernelskill.backends.emulated.places import SourcePlaces
from kernelskill.backends.emulated.results import Results, race_notes

_OUTCOME = {"out_of_bounds": "out_of_bounds", "timeout": "timeout", "memory": "out_of_memory"}
_MAX_RESIDENT = 1 << 16
_RACE_BLOCKS = 3
_MOST_NOTES = 16


class Failed(Exception):
    """An operation that ended the plan: a status and one line."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Executor:
    """Runs the operations of one plan in the order in which the launcher asked for them.

    That order is legal for every use of streams and events: what a stream waits for was asked for before.
    """

    def __init__(
        self,
        runtime: Runtime,
        plain: KernelObject,
        module: dict[str, Any],
        memory: DeviceMemory,
        limits: dict[str, Any],
    ) -> None:
        self._runtime = runtime
        self._plain = plain
        self._module = module
        self._memory = memory
        self._limits = limits
        self.traced: KernelObject | None = None
        self.places = SourcePlaces(module)
        self.notes: list[str] = []
        self._runs = 0

    def run(self, operations: list[dict[str, Any]], deadline_s: float) -> None:
        """Carry out all operations; every second time the blocks of a launch come in the opposite order.

        Raises:
            Failed: One of them failed.
        """
        self.notes = []
        self._runs += 1
        deadline = time.monotonic() + deadline_s
        for operation in operations:
            self.one(operation, deadline)

    def one(self, operation: dict[str, Any], deadline: float) -> None:
        """Carry out one operation.

        Raises:
            Failed: It failed.
        """
        memory = self._memory
        match operation["op"]:
            case "launch":
                self.launch(operation, deadline)
            case "memset":
                place = memory.address(operation["destination"])
                ctypes.memset(place, operation["value"] & 0xFF, operation["size_bytes"])
            case "copy_device":
                source, target = memory.address(operation["source"]), memory.address(operation["destination"])
                ctypes.memmove(target, source, operation["size_bytes"])
            case "copy_device_2d":
                self._copy_rows(operation)
            case "copy_host":
                data = self._bytes(operation["data"])
                ctypes.memmove(memory.address(operation["destination"]), data, len(data))
            case "graph_launch":
                for inner in operation["operations"]:
                    self.one(inner, deadline)
            case "encode_tensor_map":
                raise Failed("unsupported", "tensor maps are not emulated")
            case _:  # streams, events and host waits order what is in order already
                pass

    def _copy_rows(self, operation: dict[str, Any]) -> None:
        source, target = (
            self._memory.address(operation["source"]),
            self._memory.address(operation["destination"]),
        )
        for row in range(operation["height"]):
            ctypes.memmove(
                target + row * operation["destination_pitch"],
                source + row * operation["source_pitch"],
                operation["width_bytes"],
            )

    def _bytes(self, blob: dict[str, Any]) -> bytes:
        data = bytearray.fromhex(blob["raw"])
        if blob["tensor_maps"]:
            raise Failed("unsupported", "tensor maps are not emulated")
        for patch in blob["pointers"]:
            address = self._memory.address(patch["address"]) & (1 << 64) - 1
            data[patch["position"] : patch["position"] + 8] = address.to_bytes(8, "little")
        return bytes(data)

    def launch(self, operation: dict[str, Any], deadline: float, **changes: Any) -> None:
        """Carry out one kernel launch.

        Raises:
            Failed: It failed.
        """
        name = operation["kernel"]
        request = self.request(operation)
        keep = changes.pop("keep", [])
        for field, value in changes.items():
            setattr(request, field, value)
        if not changes:
            self._sample_for_races(request, name, keep)
            # A kernel whose threads wait may count on earlier blocks, as GPUs start them in order.
            request.backwards = self._runs % 2 == 0 and not self._module["kernels"][name]["waits"]
        left = deadline - time.monotonic()
        if left <= 0:
            raise Failed("timeout", f"kernel {self.places.kernel(name)}: the time was over before it began")
        ended = self._runtime.launch(ctypes.byref(request), left)
        if request.trace_mode == 1:
            self._note_races(name)
        if ended:
            raise self._failure(self._runtime.last_fault(), name)

    def _sample_for_races(self, request: LaunchRequest, name: str, keep: list[Any]) -> None:
        """Let a few blocks run instrumented, so that races in shared memory are found on the way."""
        if self.traced is None or not self._module["kernels"][name]["uses_shared"]:
            return
        total = request.grid[0] * request.grid[1] * request.grid[2]
        chosen = sorted({0, total // 2, total - 1})[:_RACE_BLOCKS]
        array = (ctypes.c_uint64 * len(chosen))(*chosen)
        keep.append(array)
        request.traced = self.traced.functions[name]
        request.sampled = ctypes.cast(array, ctypes.POINTER(ctypes.c_uint64))
        request.sampled_count = len(chosen)
        request.trace_mode = 1
        Results(self._runtime).reset()

    def _note_races(self, name: str) -> None:
        for note in race_notes(Results(self._runtime).races(), self.places, name):
            if note not in self.notes and len(self.notes) < _MOST_NOTES:
                self.notes.append(note)

    def request(self, operation: dict[str, Any]) -> LaunchRequest:
        """Return a launch as the runtime takes it.

        Raises:
            Failed: The kernel or the launch is not one that can be carried out.
        """
        name = operation["kernel"]
        kernel = self._module["kernels"].get(name)
        if kernel is None:
            reason, chain = self._refusal(name)
            line = self.places.of_chain(chain)[1]
            where = f", line {line}" if line else ""
            raise Failed("unsupported", f"kernel {self.places.kernel(name)}{where}: {reason} is not emulated")
        if operation["cluster"] is not None and tuple(operation["cluster"]) != (1, 1, 1):
            raise Failed(
                "unsupported", f"kernel {self.places.kernel(name)}: thread block clusters are not emulated"
            )
        self._check_shape(operation, kernel)
        request = LaunchRequest()
        request.plain = self._plain.functions[name]
        request.grid = tuple(operation["grid"])
        request.block = tuple(operation["block"])
        request.static_shared = kernel["static_shared"]
        request.dynamic_shared = operation["dynamic_shared_bytes"]
        request.local_bytes = kernel["local_bytes"]
        request.registers = kernel["registers"]
        request.cooperative = operation["cooperative"]
        request.threads = 1 if kernel["ordered"] or kernel["waits"] else self._limits["threads"]
        request.max_resident = operation.get("resident") or _MAX_RESIDENT
        request.sites = len(self._module["sites"])
        request.basic_blocks = len(self._module["blocks"])
        request.workspace = self._memory.workspace
        data = self._arguments(operation, kernel)
        self._parameters = ctypes.create_string_buffer(data, max(16, len(data)))
        request.parameters = ctypes.addressof(self._parameters)
        request.parameter_bytes = len(data)
        return request

    def _refusal(self, name: str) -> tuple[str, list[list[int]]]:
        refused = self._module["refused"]
        reason, chain = refused.get(name, refused.get("*", ["a kernel that the device code lacks", []]))
        return reason, chain

    def _check_shape(self, operation: dict[str, Any], kernel: dict[str, Any]) -> None:
        name = self.places.kernel(operation["kernel"])
        threads = operation["block"][0] * operation["block"][1] * operation["block"][2]
        if not 1 <= threads <= 1024 or min(operation["grid"]) < 1:
            raise Failed(
                "launch_error", f"kernel {name}: grid {operation['grid']}, block {operation['block']}"
            )
        blocks, resident = math.prod(operation["grid"]), operation.get("resident") or _MAX_RESIDENT
        if operation["cooperative"] and blocks > resident:
            raise Failed(
                "launch_error",
                f"kernel {name}: a cooperative grid of {blocks} blocks, the GPU holds {resident} at once",
            )
        shared = operation["dynamic_shared_bytes"] + kernel["static_shared"]
        allowed = self._limits["shared_bytes"]
        if shared > allowed:
            raise Failed(
                "launch_error", f"kernel {name}: {shared} bytes of shared memory, the GPU allows {allowed}"
            )

    def _arguments(self, operation: dict[str, Any], kernel: dict[str, Any]) -> bytes:
        data = bytearray()
        if len(operation["arguments"]) != len(kernel["parameters"]):
            raise Failed(
                "launch_error", f"kernel {self.places.kernel(operation['kernel'])}: number of arguments"
            )
        for blob, (offset, size) in zip(operation["arguments"], kernel["parameters"], strict=True):
            value = self._bytes(blob)
            data.extend(bytes(max(0, offset - len(data))))
            data.extend(value[:size].ljust(size, b"\0"))
        return bytes(data)

    def _failure(self, fault: Fault, name: str) -> Failed:
        kind = FAULTS[fault.fault]
        status = _OUTCOME.get(kind, "runtime_error")
        where = self.places.describe(fault.site, name)
        who = f"block ({fault.ctaid[0]},{fault.ctaid[1]},{fault.ctaid[2]}) thread ({fault.tid[0]},{fault.tid[1]},{fault.tid[2]})"
        return Failed(status, f"{where}: {self._fault_text(fault, kind)}, {who}")

    def _fault_text(self, fault: Fault, kind: str) -> str:
        verb = ("read", "write", "atomic")[fault.access]
        space = SPACES[fault.space]
        size = fault.size
        if kind in ("out_of_bounds", "misaligned", "read_only"):
            words = {
                "out_of_bounds": "outside of",
                "misaligned": "misaligned in",
                "read_only": "not allowed in",
            }[kind]
            if space in ("shared", "local"):
                return f"{size}-byte {verb} {words} {space} memory at byte offset {_signed(fault.address)}"
            return f"{size}-byte {verb} {words} {self._memory.describe(fault.address)}"
        return {
            "deadlock": f"deadlock: {fault.address} of {size} threads wait here and the others never come",
            "timeout": "still running when the time was over",
            "trap": "trap",
            "assertion": f"assertion failed: {fault.text.decode(errors='replace')}",
            "stack_overflow": f"stack overflow ({size} bytes of local memory more)",
            "bad_mask": f"a lane calls with mask {fault.address:#010x} that does not name it",
            "memory": "no memory for the stacks of the threads",
        }.get(kind, kind)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
