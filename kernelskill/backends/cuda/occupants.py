"""Who else uses a GPU: asked of nvidia-smi before anything is timed, and after a kernel that hung.

A process that only holds memory disturbs nothing; a GPU counts as busy while it works for somebody else.
Where nvidia-smi is missing or does not tell (as of a part of a GPU), nothing is refused.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from kernelskill.backends.cuda.detect import ask_nvidia_smi
from kernelskill.errors import DeviceUnavailable
from kernelskill.schema.base import Record

BUSY_PERCENT = 10.0
"""Utilization above which somebody works there; its counter lags by up to a second."""
IDLE_WAIT_S = 6.0
"""Our own last work may still show in the counter for so long."""
FREE_WAIT_S = 60.0
"""How long a GPU may take to end a kernel whose process was killed."""
_POLL_S = 0.5
_ASK_S = 20.0
ACCEPT_VARIABLE = "KERNELSKILL_ACCEPT_BUSY_GPU"
"""Set to anything where a display or a service always works on the only GPU; times then waver with it."""
_UNAVAILABLE = (
    "see nvidia-smi; end what runs there, wait for it, or name another GPU with --device; "
    f"{ACCEPT_VARIABLE}=1 goes on anyway"
)


class Occupant(Record):
    """One process with memory on a GPU."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"{Path(self.name).name or self.name} (process {self.pid})"


def occupants(uuid: str) -> tuple[Occupant, ...]:
    """Return the processes that compute on a GPU, as far as nvidia-smi tells."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, "-i", uuid, "--query-compute-apps=pid,process_name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_occupants(done.stdout) if done.returncode == 0 else ()


def parse_occupants(text: str) -> tuple[Occupant, ...]:
    """Read one process a line: its number and its program."""
    found = []
    for line in text.splitlines():
        pid, _, name = line.partition(",")
        if pid.strip().isdigit():
            found.append(Occupant(pid=int(pid), name=name.strip() or "unknown"))
    return tuple(found)


def utilization(uuid: str) -> float | None:
    """Return the percentage of the last second in which a GPU worked, where it is told."""
    try:
        return float(ask_nvidia_smi(uuid, ("utilization.gpu",)).get("utilization.gpu", ""))
    except ValueError:
        return None


def becomes_idle(used: Callable[[], float | None], *, within_s: float, clock: Callable[[], float]) -> bool:
    """Return whether a GPU was seen idle, or does not tell, before the time was over."""
    deadline = clock() + within_s
    while True:
        percent = used()
        if percent is None or percent < BUSY_PERCENT:
            return True
        if clock() >= deadline:
            return False
        time.sleep(_POLL_S)


def require_idle(name: str, uuid: str, *, within_s: float = IDLE_WAIT_S) -> None:
    """Raise where somebody else works on a GPU; call it while nothing of ours does.

    Raises:
        DeviceUnavailable: The GPU is busy; names what runs there.
    """
    if os.environ.get(ACCEPT_VARIABLE):
        return
    if becomes_idle(lambda: utilization(uuid), within_s=within_s, clock=time.monotonic):
        return
    who = ", ".join(map(str, occupants(uuid))) or "a process that nvidia-smi does not name"
    raise DeviceUnavailable(f"{name} is busy: {who}", remedy=_UNAVAILABLE)


def require_free_again(name: str, uuid: str, *, within_s: float = FREE_WAIT_S) -> None:
    """Wait until a GPU has ended a kernel whose process was killed.

    Raises:
        DeviceUnavailable: It has not; nothing that runs there next could be trusted.
    """
    if not becomes_idle(lambda: utilization(uuid), within_s=within_s, clock=time.monotonic):
        raise DeviceUnavailable(
            f"{name} still works {within_s:g} s after a kernel that hung was ended",
            remedy="see nvidia-smi; the run goes on with `kernelskill resume` once the GPU is free",
        )
