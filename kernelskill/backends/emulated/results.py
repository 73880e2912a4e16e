"""What the runtime gathered of traced blocks, read through ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

from kernelskill.backends.emulated.engine import Runtime
from kernelskill.backends.emulated.places import SourcePlaces


def _structure(fields: tuple[tuple[str, Any], ...]) -> type[ctypes.Structure]:
    return type("Row", (ctypes.Structure,), {"_fields_": fields})


_U64, _U32, _I32 = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32
SITE_FIELDS = (
    "requests", "lanes", "bytes", "sectors", "lines", "partial_sectors", "wavefronts", "conflicts",
    "missed_requests", "missed_sectors", "same_address", "same_address_most",
)  # fmt: skip
_Site = _structure(
    (
        *((name, _U64) for name in SITE_FIELDS),
        ("space", _U32),
        ("access", _U32),
        ("size", _U32),
        ("pad", _U32),
    )
)
_Block = _structure((("issues", _U64), ("threads", _U64)))
_Region = _structure(
    (("allocation", _I32), ("pad", _U32), ("read", _U64), ("written", _U64), ("blocks", _U64))
)
_Race = _structure((("first", _I32), ("second", _I32), ("count", _U64)))
_TOTALS = (
    "blocks", "warps", "barriers", "hot_atomics", "hot_blocks", "atomics",
    "line_requests", "line_lanes", "line_addresses", "line_blocks",
)  # fmt: skip
_Totals = _structure(tuple((name, _U64) for name in _TOTALS))


class Results:
    """What the runtime gathered, read through ctypes."""

    def __init__(self, runtime: Runtime) -> None:
        self._library = runtime.library

    def reset(self) -> None:
        """Forget everything."""
        self._library.ks_trace_reset()

    def _rows(self, function: str, row: type[ctypes.Structure], room: int) -> list[Any]:
        array = (row * max(1, room))()
        call = getattr(self._library, function)
        call.restype, call.argtypes = ctypes.c_uint64, (ctypes.c_void_p, ctypes.c_uint64)
        return list(array[: call(array, room)])

    def races(self, room: int = 64) -> list[tuple[int, int]]:
        """Return pairs of sites that race."""
        return [(row.first, row.second) for row in self._rows("ks_trace_races", _Race, room)]

    def collect(self, sites: int, blocks: int) -> dict[str, Any]:
        """Return everything as JSON values."""
        names = (*SITE_FIELDS, "space", "access", "size")
        totals = _Totals()
        self._library.ks_trace_totals(ctypes.byref(totals))
        return {
            "sites": {
                str(number): {name: getattr(row, name) for name in names}
                for number, row in enumerate(self._rows("ks_trace_sites", _Site, sites))
                if row.requests
            },
            "blocks": {
                str(number): [row.issues, row.threads]
                for number, row in enumerate(self._rows("ks_trace_blocks", _Block, blocks))
                if row.issues
            },
            "regions": [
                [row.allocation, row.read, row.written, row.blocks]
                for row in self._rows("ks_trace_regions", _Region, 1 << 14)
            ],
            "totals": {name: getattr(totals, name) for name in _TOTALS},
        }


def race_notes(pairs: list[tuple[int, int]], places: SourcePlaces, kernel: str) -> list[str]:
    """Return one line for each pair of source lines that race."""
    found: list[str] = []
    for first, second in pairs:
        lines = sorted({places.place(first)[1], places.place(second)[1]})
        where = f"line {lines[0]} and line {lines[-1]}"
        note = f"race: kernel {places.kernel(kernel)}, {where} touch shared memory without a barrier between"
        if note not in found:
            found.append(note)
    return found
