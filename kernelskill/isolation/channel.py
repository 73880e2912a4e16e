"""Framed JSON messages between kernelskill and a child, on descriptors that nothing else uses.

A frame is a length (four bytes, little-endian) and that many bytes of UTF-8 JSON. The child finds its
two descriptors in the environment variable `KERNELSKILL_CHANNEL` as `<read>,<write>`.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

VARIABLE = "KERNELSKILL_CHANNEL"
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct("<I")
_PART = 1 << 16


class ChannelClosed(Exception):
    """The other end of a channel is gone, or what it sent is no frame."""


class Channel:
    """One end of a channel. Not thread-safe; the owner serialises its use."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    def send(self, message: dict[str, Any], *, deadline: float | None = None) -> None:
        """Send one message.

        Args:
            message: JSON values.
            deadline: On the clock of `time.monotonic`; None waits for ever.

        Raises:
            TimeoutError: The other end did not read in time.
            ChannelClosed: The other end is gone.
            ValueError: The message is larger than `MAX_MESSAGE_BYTES`.
        """
        body = json.dumps(message, separators=(",", ":")).encode()
        if len(body) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(body)} bytes is larger than {MAX_MESSAGE_BYTES}")
        left = memoryview(_LENGTH.pack(len(body)) + body)
        while left:
            _wait_for(self._write_fd, select.POLLOUT, deadline)
            try:
                left = left[os.write(self._write_fd, left[:_PART]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise ChannelClosed("the other end of the channel is gone") from error

    def receive(self, *, deadline: float | None = None) -> dict[str, Any]:
        """Wait for one message.

        Raises:
            TimeoutError: None came in time.
            ChannelClosed: The other end is gone or sent something else than a message.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > MAX_MESSAGE_BYTES:
            raise ChannelClosed(f"a message of {length} bytes is larger than {MAX_MESSAGE_BYTES}")
        try:
            message = json.loads(self._exactly(length, deadline))
        except ValueError as error:
            raise ChannelClosed("a message is not JSON") from error
        if not isinstance(message, dict):
            raise ChannelClosed("a message is not a JSON object")
        return message

    def close(self) -> None:
        """Close both descriptors."""
        for fd in {self._read_fd, self._write_fd}:
            os.close(fd)

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        data = bytearray()
        while len(data) < size:
            _wait_for(self._read_fd, select.POLLIN, deadline)
            try:
                part = os.read(self._read_fd, min(_PART, size - len(data)))
            except BlockingIOError:
                continue
            if not part:
                raise ChannelClosed("the other end of the channel is gone")
            data += part
        return bytes(data)


def serve(handler: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer each message with what `handler` makes of it, until the other end closes.

    An exception of the handler ends the process; its traceback on stderr reaches the parent as
    `WorkerDied`.

    Raises:
        KeyError: The process was not started with a channel.
    """
    read_fd, write_fd = (int(fd) for fd in os.environ.pop(VARIABLE).split(","))
    for fd in (read_fd, write_fd):
        os.set_inheritable(fd, False)
    channel = Channel(read_fd, write_fd)
    while True:
        try:
            message = channel.receive()
        except ChannelClosed:
            return
        channel.send(handler(message))


def _wait_for(fd: int, events: int, deadline: float | None) -> None:
    poll = select.poll()
    poll.register(fd, events)
    timeout_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(timeout_ms):
        raise TimeoutError("the other end of the channel did not answer in time")
