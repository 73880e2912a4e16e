"""Names of system calls that host code may not make, and what they would be for."""

from __future__ import annotations

import platform

_THREADS = "starts a process or a thread"
_NETWORK = "uses the network"
_OTHERS = "looks into another process"
_SIGNALS = "sends a signal to another process"

_X86_64 = {
    41: ("socket", _NETWORK),
    42: ("connect", _NETWORK),
    43: ("accept", _NETWORK),
    44: ("sendto", _NETWORK),
    49: ("bind", _NETWORK),
    53: ("socketpair", _NETWORK),
    56: ("clone", _THREADS),
    57: ("fork", _THREADS),
    58: ("vfork", _THREADS),
    59: ("execve", _THREADS),
    62: ("kill", _SIGNALS),
    101: ("ptrace", _OTHERS),
    200: ("tkill", _SIGNALS),
    234: ("tgkill", _SIGNALS),
    310: ("process_vm_readv", _OTHERS),
    311: ("process_vm_writev", _OTHERS),
    322: ("execveat", _THREADS),
    435: ("clone3", _THREADS),
}
_AARCH64 = {
    117: ("ptrace", _OTHERS),
    129: ("kill", _SIGNALS),
    130: ("tkill", _SIGNALS),
    131: ("tgkill", _SIGNALS),
    198: ("socket", _NETWORK),
    199: ("socketpair", _NETWORK),
    200: ("bind", _NETWORK),
    202: ("accept", _NETWORK),
    203: ("connect", _NETWORK),
    206: ("sendto", _NETWORK),
    220: ("clone", _THREADS),
    221: ("execve", _THREADS),
    270: ("process_vm_readv", _OTHERS),
    271: ("process_vm_writev", _OTHERS),
    281: ("execveat", _THREADS),
    435: ("clone3", _THREADS),
}


def describe_system_call(number: int) -> str:
    """Return one line that names a forbidden system call of this machine's processor."""
    table = _AARCH64 if platform.machine() == "aarch64" else _X86_64
    if number in table:
        name, purpose = table[number]
        return f"host code {purpose} (system call {name})"
    return f"host code makes the forbidden system call {number}"
