"""What threads do together: atomics, barriers, and the calls that only a whole warp or block can make."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.arithmetic import convert, negative
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.memory import add_store
from kernelskill.algorithm.lifting.sharing import barrier
from kernelskill.algorithm.lifting.values import Pointer
from kernelskill.algorithm.model import StoreMode
from kernelskill.source.syntax import named

_ATOMICS: dict[str, StoreMode] = {
    "atomicAdd": "+",
    "atomicSub": "+",
    "atomicMax": "max",
    "atomicMin": "min",
    "atomicAnd": "&",
    "atomicOr": "|",
    "atomicXor": "^",
}
_REFUSED = (
    "__shfl",
    "__sync",
    "__ballot",
    "__any",
    "__all",
    "__match",
    "__reduce",
    "__activemask",
    "__nanosleep",
)
_UNKNOWN = frozenset(
    {"printf", "assert", "clock", "clock64", "__trap", "__threadfence", "__threadfence_block"}
)


def statement_call(machine: Machine, node: Node) -> bool:
    """Execute an atomic whose result is not used; returns whether the call was one.

    Raises:
        CannotLift: Threads work together in a way that is not understood.
    """
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or listed is None:
        return False
    name = machine.text(function)
    if name == "__syncthreads":
        barrier(machine, node)
        return True
    refuse_cooperation(machine, node, name)
    for suffix in ("_block", "_system"):
        name = name.removesuffix(suffix)
    if name not in _ATOMICS or any(f.name == name for _, f in machine.functions()):
        return False
    arguments = named(listed)
    target = machine.value(arguments[0])
    if len(arguments) != 2 or not isinstance(target, Pointer) or not target.layout.is_scalar:
        raise machine.refuse(node, f"{machine.text(node)!r} is not understood")
    value: Expression = convert(machine.number(arguments[1]), target.layout.kind)
    if name == "atomicSub":
        value = convert(negative(value, machine.ranges), target.layout.kind)
    add_store(machine, target.buffer, target.offset, value, target.layout.kind, _ATOMICS[name])
    return True


def refuse_cooperation(machine: Machine, node: Node, name: str) -> None:
    """Refuse calls whose meaning depends on other threads or on the clock."""
    if name.startswith(_REFUSED):
        raise machine.refuse(
            node, f"cooperative: threads wait for one another or exchange values by {name!r}"
        )
    if name in _UNKNOWN:
        raise machine.refuse(node, f"the call of {name!r} is not understood")
