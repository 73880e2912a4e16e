"""Atomics of lanes that meet at one element: combined in the warp, then one atomic for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.atomic_updates import (
    AtomicUpdate,
    converted_value,
    find_updates,
    is_once_a_block,
    refuse_moving_address,
    refuse_observers,
)
from kernelskill.skills.combining import Combining, atomic_of
from kernelskill.skills.device_code import fresh_name, place_before
from kernelskill.skills.expression_types import is_integer
from kernelskill.skills.kernel_launches import launches_of
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.influence import MEMORY, influences
from kernelskill.source.scopes import flow_of
from kernelskill.source.unit import SourceUnit

_LINE = "threadIdx.x % 32"
_ANY = "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32"


@dataclass(frozen=True)
class WarpAtomics:
    """The atomics of a kernel that lanes can do together."""

    kernel: KernelDef
    counters: tuple[AtomicUpdate, ...]
    """Atomics whose old value is used; all lanes add one constant to one element."""
    scattered: tuple[AtomicUpdate, ...]
    """Atomics on data-dependent elements, whose old value is not used."""
    lane: str
    assumptions: tuple[str, ...]


def read_warp_atomics(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> WarpAtomics:
    """Return the atomics that lanes of a warp can do together.

    Raises:
        SkillRefused: There are none.
    """
    every = find_updates(unit, kernel, context)
    entries = launches_of(unit, kernel, context)
    is_line = all(entry.launch.block.values[1:] == (1, 1) for entry in entries)
    counters: list[AtomicUpdate] = []
    scattered: list[AtomicUpdate] = []
    refusal = ""
    for update in every:
        try:
            (scattered if update.is_statement else counters).append(_checked(unit, kernel, update))
        except SkillRefused as refused:
            refusal = refusal or refused.reason
    assumptions: tuple[str, ...] = ()
    if scattered:
        try:
            assumptions = refuse_observers(unit, kernel, scattered, context)
        except SkillRefused as refused:
            scattered, refusal = [], refused.reason
    if not counters and not scattered:
        raise SkillRefused(refusal)
    return WarpAtomics(kernel, tuple(counters), tuple(scattered), _LINE if is_line else _ANY, assumptions)


def _checked(unit: SourceUnit, kernel: KernelDef, update: AtomicUpdate) -> AtomicUpdate:
    """Return an update that lanes can do together.

    Raises:
        SkillRefused: They can't.
    """
    line = update.access.line
    if is_once_a_block(unit, kernel, update):
        raise SkillRefused(f"line {line} is done by one thread of many already")
    if update.is_statement:
        met = [influences(flow_of(unit, kernel), part, unit.syntax, part) for part in update.access.indices]
        if not any(MEMORY in one for one in met):
            raise SkillRefused(f"which element line {line} updates does not depend on data")
        return update
    if update.combining.name != "sum" or not is_integer(update.combining.kind):
        raise SkillRefused(f"line {line} uses what {update.name} returns, and it counts nothing")
    if unit.constants.value(update.value) is None:
        raise SkillRefused(f"line {line} adds different amounts and uses what {update.name} returns")
    refuse_moving_address(unit, kernel, update.address, kernel.span.end, everywhere=True)
    return update


def write_warp_atomics(unit: SourceUnit, found: WarpAtomics, context: SkillContext) -> Rewrite:
    """Write the functions and their calls."""
    edits = EditSet(unit)
    place = place_before(unit, found.kernel)
    before = unit.data[: found.kernel.span.start].decode().replace("\r\n", "\n")
    names: dict[str, str] = {}
    for update in (*found.counters, *found.scattered):
        counted = _is_counted(unit, update)
        wanted = "warp_count" if not update.is_statement else f"warp_{update.combining.name}"
        make = _counter if not update.is_statement else _counted if counted else _grouped
        text = make(wanted, update.combining, found.lane)
        if text not in names:
            name = wanted
            if text not in before:
                name = fresh_name(unit, context, wanted, list(names.values()))
                edits.insert_before(place, make(name, update.combining, found.lane) + "\n")
            names[text] = name
        value = converted_value(unit, found.kernel, update, context)
        address = " ".join(unit.text_of(update.address).split())
        edits.replace(update.call, f"{names[text]}({address}, {value})")
    return Rewrite(edits=edits.edits, assumptions=found.assumptions)


def _is_counted(unit: SourceUnit, update: AtomicUpdate) -> bool:
    """Whether all lanes add one integer."""
    is_sum = update.combining.name == "sum" and is_integer(update.combining.kind)
    return is_sum and unit.constants.value(update.value) is not None


def _counter(name: str, combining: Combining, lane: str) -> str:
    kind = combining.kind
    return (
        "// One atomic for all lanes that are here together, as if they had come one after the other.\n"
        f"__device__ __forceinline__ {kind} {name}({kind}* counter, {kind} amount)\n"
        "{\n"
        "    const unsigned active = __activemask();\n"
        f"    const int lane = {lane}, leader = __ffs(active) - 1;\n"
        f"    {kind} first = 0;\n"
        "    if (lane == leader)\n"
        "        first = atomicAdd(counter, amount * __popc(active));\n"
        "    first = __shfl_sync(active, first, leader);\n"
        "    return first + amount * __popc(active & ((1u << lane) - 1));\n"
        "}\n"
    )


def _head(name: str, combining: Combining, lane: str, comment: str) -> str:
    return (
        f"// {comment}\n"
        f"__device__ __forceinline__ void {name}({combining.kind}* address, {combining.kind} value)\n"
        "{\n"
        "    const unsigned peers = __match_any_sync(__activemask(), (unsigned long long)address);\n"
        f"    const int lane = {lane};\n"
    )


def _counted(name: str, combining: Combining, lane: str) -> str:
    return (
        _head(name, combining, lane, "One atomic for the lanes that add the same value to the same element.")
        + "    if (lane == __ffs(peers) - 1)\n"
        f"        {atomic_of(combining)}(address, value * __popc(peers));\n"
        "}\n"
    )


def _grouped(name: str, combining: Combining, lane: str) -> str:
    kind = combining.kind
    return (
        _head(name, combining, lane, "One atomic for the lanes that update the same element.")
        + f"    {kind} together = {combining.neutral};\n"
        "    for (unsigned left = peers; left != 0; left &= left - 1) {\n"
        f"        const {kind} other = __shfl_sync(peers, value, __ffs(left) - 1);\n"
        f"        {combining.update('together', 'other')}\n"
        "    }\n"
        "    if (lane == __ffs(peers) - 1)\n"
        f"        {atomic_of(combining)}(address, together);\n"
        "}\n"
    )


def names_of(found: WarpAtomics, unit: SourceUnit) -> str:
    """Return the addresses that are updated, for people."""
    every = (*found.counters, *found.scattered)
    return ", ".join(dict.fromkeys(unit.text_of(update.address) for update in every))
