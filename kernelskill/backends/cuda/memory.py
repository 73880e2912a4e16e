"""The memory of one plan on the device: buffers and temporaries between guard bands, device variables."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelskill.backends.cuda.driver import Driver, DriverError
from kernelskill.errors import HarnessError
from kernelskill.schema.launch_plan import Address, Allocation

_ALIGNMENT = 512
"""Shifts keep the alignment that the driver gives its own allocations."""
_SHIFTS = 29
_DECOY_BYTES = 1 << 20
_PIECE_BYTES = 64 << 20
_SCRUBBED = 0
_OUT_OF_MEMORY = 2
_NOT_FOUND = 500


class Region:
    """One allocation: `size` bytes at `address`, guards before and after."""

    def __init__(self, name: str, base: int, address: int, size: int, total: int) -> None:
        self.name = name
        self.base = base
        self.address = address
        self.size = size
        self.total = total

    @property
    def guards(self) -> tuple[tuple[int, int], ...]:
        """Start and size of the bytes that nobody may touch."""
        front = self.address - self.base
        return ((self.base, front), (self.address + self.size, self.total - front - self.size))


class PlanMemory:
    """Everything that a plan's addresses mean. Contents are set by `fill`."""

    def __init__(
        self,
        driver: Driver,
        allocations: tuple[Allocation, ...],
        module: int,
        variables: tuple[str, ...],
        *,
        guard_bytes: int,
        salt: int,
    ) -> None:
        self._driver = driver
        self._owned: list[int] = []
        self._regions: dict[int, Region] = {}
        self._buffers: dict[str, Region] = {}
        self._symbols: dict[int, tuple[int, int]] = {}
        self._snapshots: dict[str, int | np.ndarray] = {}
        self._poison = 0
        self._variables: list[tuple[int, int, int]] = []
        self.unreachable: tuple[str, ...] = ()
        """Variables that the driver does not find by name: only a new module resets them."""
        try:
            self._keep_variables(module, variables)
            self._place(allocations, module, guard_bytes, salt)
            driver.synchronize()
        except DriverError:
            self.release()
            raise

    def address(self, place: Address) -> int:
        """Return the device address of a place; it may lie outside its allocation.

        Raises:
            HarnessError: The plan has no such allocation.
        """
        if place.allocation in self._regions:
            base = self._regions[place.allocation].address
        elif place.allocation in self._symbols:
            base = self._symbols[place.allocation][0]
        else:
            raise HarnessError(f"the plan has no allocation {place.allocation}")
        return (base + place.offset) & (2**64 - 1)

    def span(self, place: Address, size: int) -> int:
        """Return the device address of `size` bytes that must lie inside their allocation.

        Raises:
            HarnessError: They do not.
        """
        if place.allocation in self._regions:
            available = self._regions[place.allocation].size
        else:
            available = self._symbols.get(place.allocation, (0, 0))[1]
        if place.offset < 0 or size < 0 or place.offset + size > available:
            raise HarnessError(
                f"a copy or fill of {size} bytes at {place.offset} leaves allocation {place.allocation}"
            )
        return self.address(place)

    def fill(self, contents: Mapping[str, Path], poison: int) -> None:
        """Set everything to the byte `poison`, variables to their first values, buffers from files."""
        self._poison = poison
        for region in self._regions.values():
            self._driver.fill(region.base, poison, region.total)
        self._restore_variables(0)
        self.put(contents)
        self._snapshot()
        self._driver.synchronize()

    def put(self, contents: Mapping[str, Path]) -> None:
        """Overwrite buffers from files of exactly their size.

        Raises:
            HarnessError: A buffer is unknown or a file has another size.
        """
        for name, path in contents.items():
            region = self._buffer(name)
            size = path.stat().st_size
            if size != region.size:
                raise HarnessError(f"buffer {name!r} holds {region.size} bytes, its file {size}")
            with path.open("rb") as file:
                self._upload(region.address, file.fileno(), size)
        self._driver.synchronize()  # fills and copies may still run, on a stream that ours do not wait for

    def read(self, name: str, destination: Path) -> None:
        """Write a buffer's bytes to a file."""
        region = self._buffer(name)
        piece = np.empty(min(region.size, _PIECE_BYTES), np.uint8)
        with destination.open("wb") as file:
            for start in range(0, region.size, _PIECE_BYTES):
                size = min(_PIECE_BYTES, region.size - start)
                self._driver.download(piece.ctypes.data, region.address + start, size)
                file.write(piece[:size].data)

    def damaged_guards(self) -> tuple[str, ...]:
        """Return the names of regions whose guard bands no longer hold the poison byte."""
        in_order = (self._regions[number] for number in sorted(self._regions))
        return tuple(region.name for region in in_order if self._is_damaged(region))

    def reset(self, stream: int) -> None:
        """Bring everything back to the last `fill`, in stream order."""
        self._restore_variables(stream)
        for region in self._regions.values():
            snapshot = self._snapshots.get(region.name)
            if snapshot is None:
                self._driver.fill_async(region.address, self._poison, region.size, stream)
            elif isinstance(snapshot, int):
                self._driver.copy_async(region.address, snapshot, region.size, stream)
            else:
                self._driver.upload(region.address, snapshot.ctypes.data, region.size)
                self._driver.synchronize()

    def scrub(self) -> None:
        """Overwrite everything, so that no answer lies in memory that is given back."""
        for region in self._regions.values():
            self._driver.fill(region.base, _SCRUBBED, region.total)
        self._driver.synchronize()

    def release(self) -> None:
        """Give all memory back."""
        owned, self._owned = self._owned, []
        for address in owned:
            self._driver.free(address)

    def _place(self, allocations: tuple[Allocation, ...], module: int, guard_bytes: int, salt: int) -> None:
        if salt:
            self._own(_DECOY_BYTES * (1 + salt % 5))
        shift = _ALIGNMENT * (salt % _SHIFTS)
        ordered = sorted(allocations, key=lambda each: each.id, reverse=bool(salt % 2))
        for allocation in ordered:
            if allocation.kind == "symbol":
                self._symbols[allocation.id] = self._driver.variable(module, allocation.name)
                continue
            front = shift + -(-guard_bytes // _ALIGNMENT) * _ALIGNMENT
            total = front + allocation.size_bytes + guard_bytes
            base = self._own(total)
            name = allocation.name or f"temporary {allocation.id}"
            region = Region(name, base, base + front, allocation.size_bytes, total)
            self._regions[allocation.id] = region
            if allocation.kind == "buffer":
                self._buffers[allocation.name] = region

    def _own(self, size: int) -> int:
        address = self._driver.allocate(size)
        self._owned.append(address)
        return address

    def _keep_variables(self, module: int, names: tuple[str, ...]) -> None:
        for name in names:
            try:
                address, size = self._driver.variable(module, name)
            except DriverError as error:
                if error.code != _NOT_FOUND:
                    raise
                self.unreachable += (name,)
                continue
            kept = self._own(size)
            self._driver.copy(kept, address, size)
            self._variables.append((address, kept, size))

    def _restore_variables(self, stream: int) -> None:
        for address, kept, size in self._variables:
            if stream:
                self._driver.copy_async(address, kept, size, stream)
            else:
                self._driver.copy(address, kept, size)

    def _buffer(self, name: str) -> Region:
        if name not in self._buffers:
            known = ", ".join(sorted(self._buffers)) or "none"
            raise HarnessError(f"the plan has no buffer {name!r}; it has {known}")
        return self._buffers[name]

    def _upload(self, address: int, descriptor: int, size: int) -> None:
        if size == 0:
            return
        with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as mapped:
            view = np.frombuffer(mapped, np.uint8)
            self._driver.upload(address, view.ctypes.data, size)
            del view  # a map with a living view cannot be closed

    def _snapshot(self) -> None:
        """Keep what every timed replay starts from, on the device where it has room."""
        for name, region in self._buffers.items():
            kept = self._snapshots.get(name)
            if kept is None and region.size:
                kept = self._snapshots[name] = self._room(region.size)
            if isinstance(kept, int):
                self._driver.copy(kept, region.address, region.size)
            elif kept is not None:
                self._driver.download(kept.ctypes.data, region.address, region.size)

    def _room(self, size: int) -> int | np.ndarray:
        try:
            return self._own(size)
        except DriverError as error:
            if error.code != _OUT_OF_MEMORY:
                raise
            return np.empty(size, np.uint8)

    def _is_damaged(self, region: Region) -> bool:
        for start, size in region.guards:
            if size == 0:
                continue
            held = ctypes.create_string_buffer(size)
            self._driver.download(ctypes.addressof(held), start, size)
            if held.raw != bytes([self._poison]) * size:
                return True
        return False
