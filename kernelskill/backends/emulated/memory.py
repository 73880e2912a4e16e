"""Device memory of one plan inside the worker's child process."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

from kernelskill.backends.emulated.engine import Allocation, Runtime, Variable

_RESERVED_BYTES = 1 << 40
_PAGE = 4096
_ALIGN = 512
_SALT_STRIDE = 0x11000
WORKSPACE_BYTES = 256
"""Room for the barrier that a cooperative grid counts in."""


class NoMemory(Exception):
    """The plan needs more memory than there is."""


@dataclass(slots=True)
class Region:
    """One allocation with guard bands around it."""

    id: int
    name: str
    kind: str
    base: int
    size: int
    guard: int

    @property
    def label(self) -> str:
        """As people read it."""
        return {"buffer": f"buffer {self.name}", "symbol": f"variable {self.name}"}.get(self.kind, self.name)


class DeviceMemory:
    """Regions in one reserved range of addresses."""

    def __init__(
        self, runtime: Runtime, variables: list[Variable], relocations: list[tuple[int, int, int, int]]
    ) -> None:
        self._runtime = runtime
        self._variables = variables
        self._relocations = relocations
        self._range = runtime.reserve(_RESERVED_BYTES)
        if not self._range:
            raise NoMemory("no address space could be reserved")
        self._committed = (0, 0)
        self.regions: dict[int, Region] = {}
        self.workspace = 0

    def lay_out(self, allocations: list[dict[str, Any]], guard: int, salt: int) -> None:
        """Place all allocations of a plan, the module's variables and the grid barrier.

        Raises:
            NoMemory: There is not enough.
        """
        self.regions = {}
        symbols = {a["name"]: a["id"] for a in allocations if a["kind"] == "symbol"}
        at = self._range + (salt % 4096) * _SALT_STRIDE + _PAGE
        first = at
        wanted = [
            (a["id"], a["name"], a["kind"], a["size_bytes"]) for a in allocations if a["kind"] != "symbol"
        ]
        for number, variable in enumerate(self._variables):
            identity = symbols.get(variable.name, -100 - number)
            wanted.append((identity, variable.name, "symbol", variable.size))
        wanted.append((-1, "the grid barrier", "internal", WORKSPACE_BYTES))
        order = sorted(range(len(wanted)), key=lambda n: (n * (2 * salt + 1)) % (len(wanted) * 2 + 1))
        for n in order:
            identity, name, kind, size = wanted[n]
            base = -(-(at + guard) // _ALIGN) * _ALIGN
            label = name if kind != "temporary" else f"temporary {identity}"
            self.regions[identity] = Region(identity, label, kind, base, size, guard)
            at = base + size + guard
        self._commit(first, at - first + _PAGE)
        self.workspace = self.regions[-1].base
        self.publish()

    def _commit(self, start: int, length: int) -> None:
        available = _available_bytes()
        if available and length > available:
            raise NoMemory(f"the plan needs {length >> 20} MiB, this machine has {available >> 20} MiB free")
        if self._committed[1]:
            self._runtime.discard(*self._committed)
        low = start // _PAGE * _PAGE
        high = -(-(start + length) // _PAGE) * _PAGE
        self._committed = (low, high - low)
        if self._runtime.commit(low, high - low):
            raise NoMemory(f"{length >> 20} MiB could not be had")

    def publish(self) -> None:
        """Tell the runtime the allocations and the loaded objects their variables."""
        constant = {v.name for v in self._variables if v.constant}
        rows = [
            Allocation(
                region.base, region.size, region.id, not (region.kind == "symbol" and region.name in constant)
            )
            for region in self.regions.values()
        ]
        self._runtime.set_allocations((Allocation * len(rows))(*rows), len(rows))
        places = {region.name: region.base for region in self.regions.values() if region.kind == "symbol"}
        for variable in self._variables:
            variable.place(places[variable.name])

    def fill(self, poison: int) -> None:
        """Set everything to a byte, then the variables to their first values."""
        ctypes.memset(self._committed[0], poison, self._committed[1])
        places = {region.name: region for region in self.regions.values() if region.kind == "symbol"}
        for variable in self._variables:
            base = places[variable.name].base
            ctypes.memset(base, 0, variable.size)
            if variable.initial:
                ctypes.memmove(base, variable.initial, min(len(variable.initial), variable.size))
        for number, offset, target, addend in self._relocations:
            base = places[self._variables[number].name].base
            value = places[self._variables[target].name].base + addend
            ctypes.memmove(base + offset, value.to_bytes(8, "little"), 8)
        ctypes.memset(self.workspace, 0, WORKSPACE_BYTES)

    def damaged(self, poison: int) -> list[str]:
        """Return the regions whose guard bands no longer hold the poison byte."""
        found = []
        for region in self.regions.values():
            if region.kind == "internal" or not region.guard:
                continue
            band = bytes([poison]) * region.guard
            before = ctypes.string_at(region.base - region.guard, region.guard)
            after = ctypes.string_at(region.base + region.size, region.guard)
            if before != band or after != band:
                found.append(region.name)
        return found

    def address(self, place: dict[str, Any]) -> int:
        """Return the address that `Address` means."""
        return self.regions[place["allocation"]].base + int(place["offset"])

    def describe(self, address: int) -> str:
        """Return where an address lies: the nearest region and the byte offset into it."""
        if not self.regions:
            return f"address {address:#x}"
        nearest = min(
            self.regions.values(), key=lambda r: max(r.base - address, address - (r.base + r.size - 1), 0)
        )
        if max(nearest.base - address, address - (nearest.base + nearest.size)) > max(
            1 << 24, 4 * nearest.size
        ):
            return f"address {address:#x}, near no buffer"
        return f"{nearest.label} at byte offset {address - nearest.base} of {nearest.size}"


def _available_bytes() -> int:
    """Return how much memory this machine can still give, 0 where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123 - no pathlib in a lean child
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_AVPHYS_PAGES") * _PAGE
