"""Child processes with limits: one command to its end, or a long-lived child with a message channel.

A supervisor process stands between us and every child. It kills the child's whole tree on a
time-out, on `close`, and when we are killed ourselves.
"""

from __future__ import annotations

import os
import selectors
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.isolation.channel import VARIABLE, Channel, ChannelClosed
from kernelskill.isolation.confinement import Confinement
from kernelskill.isolation.environment import clean_environment, private_folder
from kernelskill.isolation.output import CappedOutput
from kernelskill.isolation.supervised import GRACE_S, Supervised, spawn
from kernelskill.schema.base import Record

__all__ = [
    "Child",
    "ChildKilled",
    "ChildResult",
    "ChildTimeout",
    "Limits",
    "clean_environment",
    "private_folder",
    "run_child",
]

_END_S = GRACE_S + 8.0
"""After this long a supervisor that was told to stop is taken for dead."""
_STRAY_OUTPUT_S = 0.5
_PART = 1 << 16
_TAIL_CHARS = 2000


class Limits(Record):
    """What a child may use. None is no limit of ours."""

    wall_s: float
    """Wall time of `run_child`; a `Child` has a time-out for each call instead."""
    cpu_s: int | None = None
    output_bytes: int = 1 << 20
    """Kept of stdout and of stderr each; the middle of more is left out."""
    file_bytes: int | None = None
    """Largest file that it may write."""
    processes: int | None = None
    """Processes and threads of its user, other children of that user included; no effect on root."""
    address_bytes: int | None = None
    """Address space; never for a process that uses a GPU."""


class ChildResult(Record):
    """How a command ended."""

    returncode: int
    """Negative: the signal that ended it."""
    timed_out: bool
    stdout: str
    stderr: str
    seconds: float


class ChildTimeout(HarnessError):
    """A child did not answer a message in time; it has been killed."""


class ChildKilled(WorkerDied):
    """A child was killed from outside (SIGKILL), as by a machine out of memory; what it did is not to blame."""


def run_child(
    command: list[str],
    *,
    limits: Limits,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: bytes | str | None = None,
    unprivileged: bool = False,
    confinement: Confinement | None = None,
) -> ChildResult:
    """Run a command to its end; nothing that it started is left afterwards.

    Args:
        command: Program and arguments; no shell.
        limits: `wall_s` ends it with SIGTERM, and 2 s later with SIGKILL.
        cwd: Working folder; `private_folder()` makes one that an unprivileged child can use.
        env: The whole environment; `clean_environment(cwd)` by default.
        stdin: Input; empty by default.
        unprivileged: Run as an unprivileged user where we are root.
        confinement: The files that it may see; all by default.

    Raises:
        HarnessError: The command could not be started at all.
    """
    started = time.monotonic()
    given = stdin.encode() if isinstance(stdin, str) else stdin
    process = spawn(
        command,
        cwd=cwd,
        env=clean_environment(cwd) if env is None else env,
        rlimits=_rlimits(limits),
        unprivileged=unprivileged,
        confinement=confinement,
        with_stdin=given is not None,
    )
    conversation = _Conversation(process, limits.output_bytes, given or b"")
    try:
        timed_out = conversation.run(started + limits.wall_s)
    finally:
        process.kill()
        process.close_pipes()
    if process.returncode is None and not timed_out:
        raise WorkerDied(f"the supervisor of {command[0]!r} was killed")
    return ChildResult(
        returncode=-9 if process.returncode is None else process.returncode,
        timed_out=timed_out,
        stdout=conversation.stdout.text(),
        stderr=conversation.stderr.text(),
        seconds=time.monotonic() - started,
    )


class _Conversation:
    """Feeds a command its input and drains its output until it has ended."""

    def __init__(self, process: Supervised, output_bytes: int, given: bytes) -> None:
        self.stdout = CappedOutput(output_bytes)
        self.stderr = CappedOutput(output_bytes)
        self._process = process
        self._left = memoryview(given)
        self._selector = selectors.DefaultSelector()
        self._selector.register(process.control, selectors.EVENT_READ)
        for pipe, output in ((process.stdout, self.stdout), (process.stderr, self.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, output)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE)

    def run(self, deadline: float) -> bool:
        """Return whether the deadline passed before the command had ended."""
        timed_out = False
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                if timed_out:
                    return True
                timed_out = True
                self._process.stop()
                deadline = time.monotonic() + _END_S
                continue
            if self._step(left):
                self._take_rest()
                return timed_out

    def _step(self, timeout_s: float) -> bool:
        ended = False
        for key, _ in self._selector.select(timeout_s):
            if isinstance(key.data, CappedOutput):
                self._drain(key.fd, key.data)
            elif key.fileobj is self._process.control:
                ended = self._process.listen(0)
            else:
                self._feed()
        return ended

    def _drain(self, fd: int, output: CappedOutput) -> bool:
        try:
            data = os.read(fd, _PART)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(fd)
            return False
        output.add(data)
        return True

    def _feed(self) -> None:
        stdin = self._process.stdin
        if stdin is None:
            return
        with suppress(BlockingIOError):
            try:
                self._left = self._left[os.write(stdin.fileno(), self._left[:_PART]) :]
            except BrokenPipeError:
                self._left = self._left[:0]
        if not self._left:
            self._selector.unregister(stdin)
            stdin.close()

    def _take_rest(self) -> None:
        """Take what the pipes still hold; a process that escaped may keep them open, so within bounds."""
        deadline = time.monotonic() + _STRAY_OUTPUT_S
        for pipe, output in ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr)):
            if pipe is None or pipe.fileno() not in self._selector.get_map():
                continue
            while time.monotonic() < deadline and self._drain(pipe.fileno(), output):
                pass
        self._selector.close()


class Child:
    """A long-lived child that answers messages. Safe to use from several threads: calls take turns."""

    def __init__(self, process: Supervised, channel: Channel, output_bytes: int) -> None:
        self._process = process
        self._channel = channel
        self._errors = CappedOutput(output_bytes)
        self._turn = threading.Lock()
        self._open = True
        self._drain = threading.Thread(target=self._drain_output, name="child output", daemon=True)
        self._drain.start()

    @classmethod
    def start(
        cls,
        command: list[str],
        *,
        cwd: Path,
        limits: Limits,
        env: dict[str, str] | None = None,
        unprivileged: bool = False,
        confinement: Confinement | None = None,
    ) -> Child:
        """Start a child whose main loop is `channel.serve`.

        Its stdout and stderr never mix with the messages: stdout is thrown away, of stderr the first
        and last bytes are kept. `limits.wall_s` does not apply: each call has its own time-out.

        Raises:
            HarnessError: The command could not be started at all.
        """
        to_child = os.pipe()
        from_child = os.pipe()
        theirs = (to_child[0], from_child[1])
        whole_env = dict(clean_environment(cwd) if env is None else env)
        whole_env[VARIABLE] = f"{theirs[0]},{theirs[1]}"
        channel = Channel(from_child[0], to_child[1])
        try:
            process = spawn(
                command,
                cwd=cwd,
                env=whole_env,
                rlimits=_rlimits(limits),
                unprivileged=unprivileged,
                confinement=confinement,
                pass_fds=theirs,
            )
        except BaseException:
            channel.close()
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        return cls(process, channel, limits.output_bytes)

    def call(self, message: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Send a message and return the answer.

        Raises:
            ChildTimeout: No answer in time; the child has been killed.
            ChildKilled: The child was killed from outside.
            WorkerDied: The child has ended, or what it sent is no message.
        """
        with self._turn:
            if not self._open:
                raise WorkerDied("the child has been closed")
            deadline = time.monotonic() + timeout_s
            try:
                self._channel.send(message, deadline=deadline)
                return self._channel.receive(deadline=deadline)
            except TimeoutError as error:
                self._release()
                raise ChildTimeout(f"the child did not answer within {timeout_s:g} s") from error
            except ChannelClosed as error:
                self._process.await_end(_STRAY_OUTPUT_S)
                self._release()
                killed = self._process.returncode in (None, -signal.SIGKILL)
                raise (ChildKilled if killed else WorkerDied)(self._obituary(str(error))) from error

    @property
    def errors(self) -> str:
        """What the child has written to stderr, the middle left out where it is long."""
        return self._errors.text()

    def close(self) -> None:
        """End the child; from any thread, more than once. A call in progress raises `WorkerDied`."""
        if self._open:
            self._process.stop()
        with self._turn:
            if self._open:
                self._process.await_end(_END_S)
                self._release()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _release(self) -> None:
        """Kill what still runs and give the descriptors back. Called by whoever has the turn."""
        self._open = False
        self._process.kill()
        self._channel.close()
        self._drain.join(_STRAY_OUTPUT_S)
        if not self._drain.is_alive():
            self._process.close_pipes()

    def _obituary(self, reason: str) -> str:
        code = self._process.returncode
        how = (
            "was killed"
            if code is None
            else f"ended with signal {-code}"
            if code < 0
            else f"exited with {code}"
        )
        tail = self.errors.strip()[-_TAIL_CHARS:]
        return f"the child {how} ({reason})" + (f"; its last words:\n{tail}" if tail else "")

    def _drain_output(self) -> None:
        with selectors.DefaultSelector() as selector:
            for pipe, output in ((self._process.stdout, None), (self._process.stderr, self._errors)):
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, output)
            while selector.get_map():
                for key, _ in selector.select():
                    _drain_once(selector, key)


def _drain_once(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    data = os.read(key.fd, _PART)
    if not data:
        selector.unregister(key.fileobj)
    elif isinstance(key.data, CappedOutput):
        key.data.add(data)


def _rlimits(limits: Limits) -> dict[str, int]:
    named = {
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_AS": limits.address_bytes,
        "RLIMIT_CORE": 0,
    }
    return {name: value for name, value in named.items() if value is not None}
