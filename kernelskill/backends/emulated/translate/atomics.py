"""Atomic operations."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Name, Operand
from kernelskill.backends.emulated.translate.floating import half_format
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.memory import VECTORS, access, space_of
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import CPP, is_half, size, unsigned

_OPERATIONS = ("add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec")
_METHODS = {"and": "and_", "or": "or_", "xor": "xor_"}
_COMMUTING = ("add", "min", "max", "and", "or", "xor")


def atomic(tr: FunctionTranslator, op: Op) -> str:
    """`atom` and `red` of every type, vectors included."""
    if op.has("async") or op.type == "b128":
        raise op.unsupported()
    operation = op.choice({name: name for name in _OPERATIONS})
    kind = op.type
    held = unsigned(kind) if kind[0] == "b" and not is_half(kind) and kind != "b128" else kind
    returns = op.root == "atom"
    rest = op.operands[1:] if returns else op.operands
    if len(rest) < 2:
        raise op.unsupported("too few operands")
    floating = held[0] == "f" or is_half(held)
    tr.ordered |= floating or (returns and not _unused(op.operand(0))) or operation not in _COMMUTING
    lanes = next((VECTORS[part] for part in op.modifiers if part in VECTORS), 1)
    place = access(tr, op, rest[0], size(kind) * lanes, "atomic")
    template = f"ks::{'Half' if is_half(kind) else 'Plain'}Atomic<{_parameters(kind, held)}>"
    shared = "true" if space_of(op) == "shared" else "false"
    arguments = [tr.elements(argument) for argument in rest[1:]]
    targets: tuple[Operand, ...] = tr.elements(op.operand(0)) if returns else (Name("_"),) * lanes
    code = []
    for lane in range(lanes):
        values = ", ".join(tr.value(argument[lane], held) for argument in arguments)
        call = (
            f"{template}::{_METHODS.get(operation, operation)}<{shared}>(a_ + {lane * size(kind)}, {values})"
        )
        code.append(tr.assign(targets[lane], held, call))
    return f"{{ uint8_t* a_ = {place}; {' '.join(code)} }}"


def _unused(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.text == "_"


def _parameters(kind: str, held: str) -> str:
    if is_half(kind):
        return f"{half_format(kind)}, {'true' if kind.endswith('x2') else 'false'}"
    return CPP[held]


HANDLERS: dict[str, Handler] = {"atom": atomic, "red": atomic}
