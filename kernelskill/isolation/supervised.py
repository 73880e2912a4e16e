"""Starting a command under the supervisor, and ending it with all that it started."""

from __future__ import annotations

import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.isolation import supervisor
from kernelskill.isolation.confinement import Confinement
from kernelskill.isolation.environment import unprivileged_uid

GRACE_S = 2.0
"""Time between SIGTERM to the group and SIGKILL to everything."""
_START_S = 60.0
_KILL_S = 10.0
_SUPERVISOR = str(Path(supervisor.__file__).resolve())


class Supervised:
    """A running command with its supervisor. Not thread-safe but for `stop`."""

    def __init__(self, popen: subprocess.Popen[bytes], control: socket.socket, command: str) -> None:
        self._popen = popen
        self._command = command
        self._unread = b""
        self._pid: int | None = None
        self._returncode: int | None = None
        self.control = control

    @property
    def stdin(self) -> IO[bytes] | None:
        """Pipe into the command, where one was asked for."""
        return self._popen.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        """Pipe from the command."""
        return self._popen.stdout

    @property
    def stderr(self) -> IO[bytes] | None:
        """Pipe from the command."""
        return self._popen.stderr

    @property
    def returncode(self) -> int | None:
        """How the command ended, once `listen` has heard of it; negative for a signal."""
        return self._returncode

    def listen(self, timeout_s: float) -> bool:
        """Hear what the supervisor says; return whether it has said its last.

        Raises:
            HarnessError: The command could not be started.
        """
        if not _readable(self.control, timeout_s):
            return False
        try:
            data = self.control.recv(65536)
        except ConnectionResetError:
            data = b""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._take(line.decode(errors="replace"))
        return not data

    def await_start(self) -> None:
        """Wait until the command runs.

        Raises:
            HarnessError: It could not be started.
        """
        deadline = time.monotonic() + _START_S
        while self._pid is None:
            if self.listen(max(0.0, deadline - time.monotonic())) or time.monotonic() >= deadline:
                raise WorkerDied(f"the supervisor of {self._command!r} did not start")

    def await_end(self, timeout_s: float) -> bool:
        """Wait until the command and all it started have ended; return whether they have."""
        deadline = time.monotonic() + timeout_s
        while not self.listen(max(0.0, deadline - time.monotonic())):
            if time.monotonic() >= deadline:
                return False
        return True

    def stop(self) -> None:
        """Ask for SIGTERM to the group, then SIGKILL to everything."""
        with suppress(OSError):
            self.control.send(supervisor.STOP)

    def kill(self) -> None:
        """End everything at once and release the descriptors; safe to call again."""
        self.control.close()  # the supervisor takes this for our death
        try:
            self._popen.wait(_KILL_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        if self._returncode is None and self._pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)

    def close_pipes(self) -> None:
        """Close our ends of the standard streams."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "error":
            number, _, name = rest.partition(" ")
            raise HarnessError(f"cannot start {name!r}: {os.strerror(int(number))}")
        if word == "pid":
            self._pid = int(rest)
        else:
            self._returncode = int(rest)


def spawn(
    command: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    rlimits: dict[str, int],
    unprivileged: bool,
    confinement: Confinement | None = None,
    with_stdin: bool = False,
    pass_fds: tuple[int, ...] = (),
) -> Supervised:
    """Start a command under a supervisor of its own.

    Raises:
        HarnessError: The command could not be started.
    """
    ours, theirs = socket.socketpair()
    try:
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", _SUPERVISOR, str(theirs.fileno())],
            stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={"LC_ALL": "C.UTF-8"},
            pass_fds=(theirs.fileno(), *pass_fds),
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise HarnessError(f"cannot start {command[0]!r} in {str(cwd)!r}: {error.strerror}") from error
    finally:
        theirs.close()
    supervised = Supervised(popen, ours, command[0])
    order = {
        "command": command,
        "env": env,
        "rlimits": rlimits,
        "uid": unprivileged_uid() if unprivileged else None,
        "confinement": None if confinement is None else confinement.model_dump(mode="json"),
        "grace_s": GRACE_S,
        "files": list(pass_fds),
    }
    try:
        with suppress(BrokenPipeError):  # a supervisor that is gone already is found out below
            data = marshal.dumps(order)
            ours.sendall(struct.pack("<I", len(data)) + data)
        supervised.await_start()
    except BaseException:
        supervised.kill()
        supervised.close_pipes()
        raise
    return supervised


def _readable(connection: socket.socket, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
