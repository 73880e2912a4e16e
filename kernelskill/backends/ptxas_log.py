"""Resource usage from `ptxas -v`, kernel by kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


@dataclass(frozen=True)
class KernelUsage:
    """What ptxas says of one kernel, in bytes."""

    registers: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0


def parse_usage(log: str) -> dict[str, KernelUsage]:
    """Return mangled kernel name to usage; device functions that were not inlined are left out."""
    usage: dict[str, KernelUsage] = {}
    entry = described = ""
    for line in log.splitlines():
        if found := _ENTRY.search(line):
            entry = described = found[1]
            usage[entry] = KernelUsage()
        elif found := _PROPERTIES.search(line):
            described = found[1]
        elif (found := _STACK.search(line)) and described in usage:
            stack, stores, loads = (int(figure) for figure in found.groups())
            usage[described] = replace(
                usage[described], stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads
            )
        elif (found := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            usage[entry] = replace(
                usage[entry], registers=int(found[1]), shared_bytes=int(shared[1]) if shared else 0
            )
    return usage
