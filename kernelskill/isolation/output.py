"""Text from a child, kept within a bound however much it writes."""

from __future__ import annotations


class CappedOutput:
    """Keeps the first and the last half of a limit and counts what lies between."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = max(1, limit_bytes // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Trimmed at twice the size, so that the cost per byte stays constant.
        if len(self._tail) > 2 * self._half:
            self._trim()

    def text(self) -> str:
        """Return what is kept, with a note where something was left out."""
        self._trim()
        note = f"\n[... {self._left_out} bytes left out ...]\n".encode() if self._left_out else b""
        return (bytes(self._head) + note + bytes(self._tail)).decode(errors="replace")

    def _trim(self) -> None:
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus
