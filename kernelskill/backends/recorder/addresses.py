"""Tell device addresses from plain values by two recordings whose allocations lie at different places."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kernelskill.backends.recorder.transcript import Transcript, TranscriptError
from kernelskill.schema.launch_plan import Address, Blob, PointerPatch, TensorMapPatch

SLACK_BYTES = 256 << 20
"""How far outside an allocation an address still belongs to it; as in `device_memory.cpp`."""
CLEARED_NOTE = (
    "bytes of kernel arguments that held host addresses (padding or pointers to host memory) were cleared"
)
_MARK = b"sensormT"
TENSOR_MAP_MARK = _MARK.hex()
"""How the stand-in of a tensor map starts, in hexadecimal; as in `tensor_maps.cpp`."""
_MAP_BYTES = 128
_WORD = 8
_FIRST_HOST_ADDRESS = 0x5500 << 32
_HOST_END = 1 << 48


class RecordingsDiffer(Exception):
    """Two recordings of one call ask for different things."""


class HostAddress(Exception):
    """A kernel would be handed an address of host memory."""


class AddressPair:
    """The allocations of two recordings of the same call."""

    def __init__(self, first: Transcript, second: Transcript) -> None:
        _require_same_allocations(first, second)
        self._places = (_Places(first), _Places(second))
        self._pinned = (first.pinned, second.pinned)
        self.notes: set[str] = set()

    def address(self, first: int, second: int) -> Address:
        """Return the place that both addresses mean.

        Raises:
            RecordingsDiffer: They mean different places, or none.
        """
        place = self.find(first, second)
        if place is None:
            raise RecordingsDiffer("an address")
        return place

    def find(self, first: int, second: int) -> Address | None:
        """Return the place that both addresses mean, or None."""
        places = (self._places[0].find(first), self._places[1].find(second))
        if places[0] is None or places[0] != places[1]:
            return None
        return Address(allocation=places[0][0], offset=places[0][1])

    def blob(self, first: str, second: str) -> Blob:
        """Return the bytes with their addresses left open.

        Raises:
            RecordingsDiffer: A place differs and is no device address.
            HostAddress: A whole argument is an address of host memory.
            TranscriptError: The texts are not hexadecimal.
        """
        if first == second and TENSOR_MAP_MARK not in first:
            return Blob(raw=_checked_hex(first))
        try:
            data = (bytes.fromhex(first), bytes.fromhex(second))
        except ValueError as error:
            raise TranscriptError("bytes are not hexadecimal") from error
        if len(data[0]) != len(data[1]):
            raise RecordingsDiffer("the size of an argument")
        return self._open_places(*data)

    def _open_places(self, first: bytes, second: bytes) -> Blob:
        clean = bytearray(first)
        maps = _take_tensor_maps(clean)
        pointers = []
        position = 0
        while position < len(first):
            if first[position] == second[position]:
                position += 1
                continue
            found = self._pointer_at(first, second, position)
            if found is None:
                start, end = self._host_bytes(first, second, position)
                clean[start:end] = bytes(end - start)
                position = end
                continue
            clean[found.position : found.position + _WORD] = bytes(_WORD)
            pointers.append(found)
            position = found.position + _WORD
        return Blob(raw=clean.hex(), pointers=tuple(pointers), tensor_maps=maps)

    def _pointer_at(self, first: bytes, second: bytes, position: int) -> PointerPatch | None:
        """Return the device address that covers a differing byte, aligned ones first."""
        aligned = position // _WORD * _WORD
        starts = [aligned, *(s for s in range(position, position - _WORD, -1) if s != aligned)]
        for start in starts:
            if 0 <= start <= len(first) - _WORD:
                place = self.find(_word(first, start), _word(second, start))
                if place is not None:
                    return PointerPatch(position=start, address=place)
        return None

    def _host_bytes(self, first: bytes, second: bytes, position: int) -> tuple[int, int]:
        """Return the span of a host address that no kernel can use, such as what was left in padding."""
        start = position // _WORD * _WORD
        if start + _WORD > len(first):
            raise RecordingsDiffer("an argument, by bytes that depend on an address, on time or on chance")
        words = (_word(first, start), _word(second, start))
        for word, pinned in zip(words, self._pinned, strict=True):
            if any(base <= word < end for base, end in pinned):
                raise HostAddress("a kernel is given pinned host memory (cudaMallocHost)")
        if all(_FIRST_HOST_ADDRESS <= word < _HOST_END for word in words):
            if len(first) == _WORD:
                raise HostAddress("a kernel argument is an address of host memory")
            self.notes.add(CLEARED_NOTE)
            return start, start + _WORD
        halves = [word >> 32 for word in words]
        same_low = (words[0] ^ words[1]) & 0xFFFFFFFF == 0
        if same_low and all(_FIRST_HOST_ADDRESS >> 32 <= half < 1 << 16 for half in halves):
            self.notes.add(CLEARED_NOTE)
            return start + 4, start + _WORD
        raise RecordingsDiffer(
            "an argument, by bytes that depend on an address, on time or on chance, or were never set"
        )


class _Places:
    """The allocations of one recording, by address."""

    def __init__(self, transcript: Transcript) -> None:
        spans = sorted((a["base"], a["size"], a["id"]) for a in transcript.allocations)
        self._bases = [base for base, _, _ in spans]
        self._spans = spans

    def find(self, address: int) -> tuple[int, int] | None:
        """Return allocation and offset, or None."""
        index = bisect_right(self._bases, address + SLACK_BYTES) - 1
        if index < 0:
            return None
        base, size, number_ = self._spans[index]
        return (number_, address - base) if address <= base + size + SLACK_BYTES else None


def _require_same_allocations(first: Transcript, second: Transcript) -> None:
    keys = [
        [(a.get("kind"), a.get("name"), a.get("size")) for a in transcript.allocations if a["first_call"]]
        for transcript in (first, second)
    ]
    if keys[0] != keys[1]:
        raise RecordingsDiffer("the allocations")


def _take_tensor_maps(data: bytearray) -> tuple[TensorMapPatch, ...]:
    found = []
    position = data.find(_MARK)
    while position >= 0:
        if position + _MAP_BYTES > len(data):
            break
        found.append(TensorMapPatch(position=position, tensor_map=_word(data, position + _WORD)))
        data[position : position + _MAP_BYTES] = bytes(_MAP_BYTES)
        position = data.find(_MARK, position + _MAP_BYTES)
    return tuple(found)


def _word(data: Sequence[int], start: int) -> int:
    return int.from_bytes(bytes(data[start : start + _WORD]), "little")


def _checked_hex(text: str) -> str:
    try:
        bytes.fromhex(text)
    except ValueError as error:
        raise TranscriptError("bytes are not hexadecimal") from error
    return text
