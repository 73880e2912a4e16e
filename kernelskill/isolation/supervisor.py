"""The process between kernelskill and a child: sets limits, kills the whole tree, outlives nobody.

Run by path with `python -I -S supervisor.py <control fd>`, and started for every child, so it imports as
little as it can of the standard library and nothing else. The control socket brings the order (a
length of four bytes and marshalled values) and then single letters; its end of file means that
kernelskill is gone. Answers are lines: `pid N`, then `ended N` or `error NUMBER NAME`.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import struct
import sys
import time

TYPE_CHECKING = False  # `typing` would double the time this takes to start
if TYPE_CHECKING:
    from typing import Any, NoReturn

_SIGKILL, _SIGPIPE, _SIGTERM, _SIG_DFL = 9, 13, 15, 0
_FOLDER_MODE, _MODE_KIND = 0o040000, 0o170000
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_POLL_S = 1.0
_REAP_POLL_S = 0.005
_REAP_DEADLINE_S = 5.0
_SYS_LANDLOCK_CREATE_RULESET, _SYS_LANDLOCK_ADD_RULE, _SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
_ABI_NETWORK, _ABI_SCOPE = 4, 6
_FS_READ = 0b1101
"""Execute, read files, list folders."""
_FS_FIRST_BEYOND_V1 = 1 << 13
_FS_ALL = (1 << 15) - 1
"""Up to truncate, the third version's; each version before knows one bit less."""
_FS_OF_FILES = 0b111 | 1 << 14
_NET_BIND_AND_CONNECT = 0b11
_SCOPE_SOCKETS_AND_SIGNALS = 0b11
STOP = b"T"
"""Asks for SIGTERM to the group, then SIGKILL to everything after the grace time."""


def main() -> int:
    """Start the ordered child, wait for it, kill what it left behind."""
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    order = _read_order(control)
    if order is None:
        return 1
    try:
        pid = _start(order)
    except OSError as error:
        _answer(control, f"error {error.errno} {error.filename}")
        return 1
    _let_go_of_the_childs_files(order["files"])
    _answer(control, f"pid {pid}")
    returncode = _wait(pid, control, order["grace_s"])
    _kill_descendants()
    _answer(control, f"ended {returncode}")
    return 0


def _read_order(control: int) -> dict[str, Any] | None:
    length = _exactly(control, 4)
    data = _exactly(control, struct.unpack("<I", length)[0]) if length else b""
    if not data:
        return None
    order: dict[str, Any] = marshal.loads(data)
    return order


def _exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = os.read(fd, size - len(data))
        if not part:
            return b""
        data += part
    return data


def _answer(control: int, line: str) -> None:
    try:
        os.write(control, line.encode() + b"\n")
    except OSError:  # nobody is left to hear it
        return


def _start(order: dict[str, Any]) -> int:
    """Fork and execute; an error of the child before `exec` comes back through a pipe."""
    failed_read, failed_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_child(order, failed_write)
    os.close(failed_write)
    with os.fdopen(failed_read, "rb") as pipe:
        failure = pipe.read()
    if failure:
        os.waitpid(pid, 0)
        number, filename = failure.decode().split(" ", 1)
        raise OSError(int(number), os.strerror(int(number)), filename)
    return pid


def _become_child(order: dict[str, Any], failed_write: int) -> NoReturn:
    command: list[str] = order["command"]
    try:
        os.setsid()
        for name, value in order["rlimits"].items():
            _lower_limit(getattr(resource, name), value)
        if order["uid"] is not None:
            os.setgroups([])
            os.setgid(order["uid"])
            os.setuid(order["uid"])
        if order["uid"] is not None or order["confinement"] is not None:
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        if order["confinement"] is not None:
            _confine(**order["confinement"])
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # after setuid, which clears it
        # Python ignores SIGPIPE; an ordinary program does not expect that.
        ctypes.CDLL(None).signal(_SIGPIPE, ctypes.c_void_p(_SIG_DFL))
        os.execvpe(command[0], command, order["env"])
    except OSError as error:
        os.write(failed_write, f"{error.errno} {command[0]}".encode())
    os._exit(127)


def _confine(readable: list[str], writable: list[str], network: bool) -> None:
    """Let this process see and change only what is named (Landlock); older kernels confine less or nothing."""
    version = _syscall(_SYS_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION)
    if version < 1:
        return
    handled = _FS_ALL & ((_FS_FIRST_BEYOND_V1 << min(version, 3) - 1) - 1)
    fields = [handled, 0 if network else _NET_BIND_AND_CONNECT, _SCOPE_SOCKETS_AND_SIGNALS]
    known = 1 if version < _ABI_NETWORK else 2 if version < _ABI_SCOPE else 3
    attributes = struct.pack(f"<{known}Q", *fields[:known])
    ruleset = _checked_syscall(_SYS_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    for paths, access in ((readable, _FS_READ), (writable, handled)):
        for path in paths:
            _allow(ruleset, path, access & handled)
    _checked_syscall(_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # nothing there, or nothing that this user could read anyhow
        return
    if os.fstat(fd).st_mode & _MODE_KIND != _FOLDER_MODE:
        access &= _FS_OF_FILES
    rule = struct.pack("<Qi", access, fd)
    _checked_syscall(_SYS_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0)
    os.close(fd)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return int(libc.syscall(ctypes.c_long(number), *(_long(argument) for argument in arguments)))


def _checked_syscall(number: int, *arguments: int | bytes | None) -> int:
    result = _syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "landlock")
    return result


def _long(argument: int | bytes | None) -> object:
    return ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_char_p(argument)


def _lower_limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    # The signal of the soft limit comes first, the hard limit kills what ignores it.
    extra = 2 if kind == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else 0
    resource.setrlimit(kind, (ceiling, ceiling + extra))


def _let_go_of_the_childs_files(files: list[int]) -> None:
    """Close what only the child needs, so that its end is seen as end of file."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    for file in files:
        os.close(file)


def _wait(pid: int, control: int, grace_s: float) -> int:
    parent = os.getppid()
    ended = os.pidfd_open(pid)
    deadline: float | None = None
    while True:
        timeout = _POLL_S if deadline is None else max(0.0, deadline - time.monotonic())
        watched = [ended] if deadline is not None else [ended, control]
        readable, _, _ = select.select(watched, [], [], timeout)
        if ended in readable:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if (control in readable and _letter(control) != STOP) or os.getppid() != parent:
            deadline = 0.0
        elif control in readable:
            _signal_group(pid, _SIGTERM)
            deadline = time.monotonic() + grace_s
        if deadline is not None and time.monotonic() >= deadline:
            _signal_group(pid, _SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _letter(control: int) -> bytes:
    try:
        return os.read(control, 1)
    except ConnectionResetError:  # kernelskill died before it had read our answer
        return b""


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _kill_descendants() -> None:
    """Kill and reap all that is left; orphans come to this process, whatever their session."""
    deadline = time.monotonic() + _REAP_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return
        for pid in _descendants():
            try:
                os.kill(pid, _SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_REAP_POLL_S)


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - called in a race with a fork bomb, so kept cheap
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                    status = file.read()
            except OSError:
                continue
            parents[int(entry)] = int(status.rpartition(b")")[2].split()[1])
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return sorted(found - {os.getpid()})
        found |= more


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl")


if __name__ == "__main__":
    raise SystemExit(main())
