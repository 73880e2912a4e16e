"""The runtime library as Python sees it; only the worker's child process uses it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

FAULTS = (
    "none", "out_of_bounds", "misaligned", "read_only", "deadlock", "timeout", "trap", "assertion",
    "stack_overflow", "bad_mask", "launch", "memory",
)  # fmt: skip
SPACES = ("global", "shared", "local", "constant", "generic", "parameter")

_Dim = ctypes.c_uint32 * 3


class Allocation(ctypes.Structure):
    """`ks::Allocation`."""

    _fields_ = (
        ("base", ctypes.c_uint64), ("size", ctypes.c_uint64), ("id", ctypes.c_int32), ("writable", ctypes.c_bool),
    )  # fmt: skip


class Fault(ctypes.Structure):
    """`ks::FaultRecord`."""

    _fields_ = (
        ("fault", ctypes.c_int32), ("site", ctypes.c_int32), ("space", ctypes.c_int32), ("access", ctypes.c_int32),
        ("address", ctypes.c_uint64), ("size", ctypes.c_uint64), ("ctaid", _Dim), ("tid", _Dim),
        ("text", ctypes.c_char * 256),
    )  # fmt: skip


class LaunchRequest(ctypes.Structure):
    """`ks::LaunchRequest`."""

    _fields_ = (
        ("plain", ctypes.c_void_p), ("traced", ctypes.c_void_p), ("grid", _Dim), ("block", _Dim),
        ("static_shared", ctypes.c_uint32), ("dynamic_shared", ctypes.c_uint32),
        ("local_bytes", ctypes.c_uint32), ("registers", ctypes.c_uint32),
        ("parameters", ctypes.c_void_p), ("parameter_bytes", ctypes.c_uint64),
        ("cooperative", ctypes.c_uint32), ("threads", ctypes.c_uint32),
        ("max_resident", ctypes.c_uint32), ("lenient", ctypes.c_uint32),
        ("only_sampled", ctypes.c_uint32), ("sampled_count", ctypes.c_uint32),
        ("sampled", ctypes.POINTER(ctypes.c_uint64)), ("sites", ctypes.c_uint64),
        ("basic_blocks", ctypes.c_uint32), ("trace_mode", ctypes.c_uint32), ("workspace", ctypes.c_uint64), ("l1_bytes", ctypes.c_uint64),
        ("backwards", ctypes.c_uint32),
    )  # fmt: skip


class KernelEntry(ctypes.Structure):
    """`ks::KernelEntry`."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("static_shared", ctypes.c_uint32),
        ("local_bytes", ctypes.c_uint32), ("registers", ctypes.c_uint32), ("spins", ctypes.c_uint32),
    )  # fmt: skip


class VariableEntry(ctypes.Structure):
    """`ks::VariableEntry`."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("size", ctypes.c_uint64), ("align", ctypes.c_uint32), ("space", ctypes.c_int32),
        ("initial", ctypes.c_void_p), ("initial_size", ctypes.c_uint64),
        ("address", ctypes.POINTER(ctypes.c_uint64)),
    )  # fmt: skip


class RelocationEntry(ctypes.Structure):
    """`ks::RelocationEntry`."""

    _fields_ = (
        ("variable", ctypes.c_uint32), ("offset", ctypes.c_uint64), ("target", ctypes.c_uint32),
        ("addend", ctypes.c_uint64),
    )  # fmt: skip


class Variable:
    """A device variable of the loaded module."""

    def __init__(self, entry: VariableEntry) -> None:
        self.name = str(entry.name.decode())
        self.size = int(entry.size)
        self.align = int(entry.align)
        self.constant = entry.space == 3
        self.initial = ctypes.string_at(entry.initial, entry.initial_size) if entry.initial else b""
        self.slots = [entry.address]

    def place(self, address: int) -> None:
        """Tell every loaded object where the variable lies."""
        for slot in self.slots:
            slot[0] = address


class KernelObject:
    """One shared object of translated kernels."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        self.functions: dict[str, int] = {}
        for entry in self._table("ks_kernels", KernelEntry):
            if not entry.name:
                break
            self.functions[entry.name.decode()] = int(entry.function)
        self.variables: list[Variable] = []
        for entry in self._table("ks_variables", VariableEntry):
            if not entry.name:
                break
            self.variables.append(Variable(entry))
        self.relocations: list[tuple[int, int, int, int]] = []
        for entry in self._table("ks_relocations", RelocationEntry):
            if entry.variable == 0xFFFFFFFF:
                break
            self.relocations.append((entry.variable, entry.offset, entry.target, entry.addend))

    def _table(self, name: str, entry: type[ctypes.Structure]) -> Any:
        """Return an endless array over a table that ends with a mark of its own."""
        return (entry * (1 << 20)).in_dll(self._library, name)


class Runtime:
    """The runtime library with its functions declared."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        u64, i32 = ctypes.c_uint64, ctypes.c_int32
        self.reserve = self._function(library, "ks_reserve", u64, u64)
        self.commit = self._function(library, "ks_commit", i32, u64, u64)
        self.discard = self._function(library, "ks_discard", i32, u64, u64)
        self.set_allocations = self._function(
            library, "ks_set_allocations", None, ctypes.POINTER(Allocation), u64
        )
        self.launch = self._function(
            library, "ks_launch", i32, ctypes.POINTER(LaunchRequest), ctypes.c_double
        )
        self.fault = self._function(library, "ks_fault", None, ctypes.POINTER(Fault))
        self.dropped = self._function(library, "ks_dropped", u64)
        self.library = library

    @staticmethod
    def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
        return function

    def last_fault(self) -> Fault:
        """Return what ended the last launch."""
        fault = Fault()
        self.fault(ctypes.byref(fault))
        return fault
