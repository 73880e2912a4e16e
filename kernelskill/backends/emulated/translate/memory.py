"""Loads, stores, moves and address conversions."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Name, Operand, Sum, Vector
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import CPP, size, unsigned, width
from kernelskill.backends.emulated.translate.values import SPECIAL, Symbol

SPACES = (
    "global",
    "shared",
    "local",
    "param",
    "const",
    "shared::cta",
    "shared::cluster",
    "param::entry",
    "param::func",
)
VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def space_of(op: Op) -> str:
    """Return the state space of an access; `generic` where it names none."""
    found = op.pick(*SPACES).partition("::")[0]
    return found or "generic"


def access(tr: FunctionTranslator, op: Op, place: Operand, bytes_: int, kind: str) -> str:
    """Return the checked host address of an access as an expression.

    Args:
        tr: The function.
        op: The instruction.
        place: Its bracketed operand.
        bytes_: Width of the whole access.
        kind: `read`, `write` or `atomic`.
    """
    space = space_of(op)
    if space == "shared":
        tr.uses_shared = True
    template = {"const": "global", "param": "global"}.get(space, space)
    extra = {"const": ", ks::Space::constant", "param": ", ks::Space::parameter"}.get(space, "")
    return f"ks::{template}<{bytes_}, ks::Access::{kind}{extra}>(t, {tr.address(place)}, {tr.site()})"


def _vector(op: Op) -> int:
    return next((VECTORS[part] for part in op.modifiers if part in VECTORS), 1)


def _lockstep(op: Op) -> str:
    """Volatile shared accesses are what old warp-synchronous code relies on: the warp goes step by step."""
    return " ks::ks_lockstep(t);" if op.has("volatile") and space_of(op) in ("shared", "generic") else ""


def load(tr: FunctionTranslator, op: Op) -> str:
    """`ld`, `ldu`."""
    kind, lanes = op.type, _vector(op)
    targets = tr.elements(op.operand(0))
    if len(targets) != lanes:
        raise op.unsupported("vector of another length")
    symbol = tr.symbol(op.operand(1))
    if symbol is not None and symbol.space == "param":
        place = f"(const uint8_t*){tr.address(op.operand(1))}"
    else:
        place = access(tr, op, op.operand(1), size(kind) * lanes, "read")
    sets = " ".join(
        tr.assign(target, kind, f"ks::get<{CPP[kind]}>(a_, {n})") for n, target in enumerate(targets)
    )
    return f"{{ const uint8_t* a_ = {place}; {sets} }}{_lockstep(op)}"


def store(tr: FunctionTranslator, op: Op) -> str:
    """`st`."""
    kind, lanes = op.type, _vector(op)
    if op.has("async", "bulk"):
        raise op.unsupported()
    values = tr.elements(op.operand(1))
    if len(values) != lanes:
        raise op.unsupported("vector of another length")
    symbol = tr.symbol(op.operand(0))
    if symbol is not None and symbol.space == "param":
        place = f"(uint8_t*){tr.address(op.operand(0))}"
    else:
        place = access(tr, op, op.operand(0), size(kind) * lanes, "write")
    puts = " ".join(f"ks::put<{CPP[kind]}>(a_, {n}, {tr.value(v, kind)});" for n, v in enumerate(values))
    return f"{{ uint8_t* a_ = {place}; {puts} }}{_lockstep(op)}"


def move(tr: FunctionTranslator, op: Op) -> str:
    """`mov`, with packing and unpacking."""
    kind, target, source = op.type, op.operand(0), op.operand(1)
    if isinstance(source, Vector):
        return _pack(tr, op, target, source)
    if isinstance(target, Vector):
        return _unpack(tr, op, target, source)
    if isinstance(source, Name) and source.text in tr.context.functions and source.text not in SPECIAL:
        return tr.assign(target, "u64", f"{tr.context.functions[source.text]}ull")
    if isinstance(source, Name | Sum) and _names_symbol(tr, source):
        return tr.assign(target, unsigned(kind), tr.value(source, unsigned(kind)))
    return tr.assign(target, kind, tr.value(source, kind))


def _names_symbol(tr: FunctionTranslator, source: Name | Sum) -> bool:
    name = source.text if isinstance(source, Name) else source.base.text
    return name not in SPECIAL and isinstance(tr.meaning(name), Symbol)


def _pack(tr: FunctionTranslator, op: Op, target: Operand, source: Vector) -> str:
    count = len(source.elements)
    part = width(op.type) // count
    whole, piece = unsigned(op.type) if op.type != "b128" else "b128", f"u{part}"
    terms = [
        f"(({CPP[whole]}){tr.value(element, piece)} << {n * part})"
        for n, element in enumerate(source.elements)
    ]
    return tr.assign(target, whole, "(" + " | ".join(terms) + ")")


def _unpack(tr: FunctionTranslator, op: Op, target: Vector, source: Operand) -> str:
    part = width(op.type) // len(target.elements)
    whole = unsigned(op.type) if op.type != "b128" else "b128"
    sets = [
        tr.assign(element, f"u{part}", f"({CPP[f'u{part}']})(v_ >> {n * part})")
        for n, element in enumerate(target.elements)
        if not (isinstance(element, Name) and element.text == "_")
    ]
    return f"{{ {CPP[whole]} v_ = {tr.value(source, whole)}; {' '.join(sets)} }}"


def convert_address(tr: FunctionTranslator, op: Op) -> str:
    """`cvta`: global, local and constant addresses are generic ones already; shared ones lie in a window."""
    kind = op.type
    value = tr.value(op.operand(1), kind)
    if space_of(op) == "shared":
        sign = "-" if op.has("to") else "+"
        value = f"(({CPP[kind]})({value} {sign} (uint64_t)t.shared))"
    return tr.assign(op.operand(0), kind, value)


def in_space(tr: FunctionTranslator, op: Op) -> str:
    """`isspacep`."""
    address = tr.value(op.operand(1), "u64")
    windows = {
        "shared": f"({address} - (uint64_t)t.shared < t.shared_size)",
        "local": f"({address} - (uint64_t)t.local < t.local_size)",
        "global": f"ks::ks_is_global({address}, 0)",
        "const": f"ks::ks_is_global({address}, 1)",
        "param": "false",
    }
    return tr.assign(op.operand(0), "pred", windows[space_of(op)])


def nothing(tr: FunctionTranslator, op: Op) -> str:
    """Prefetches and cache hints: no effect on results."""
    return ";"


def create_policy(tr: FunctionTranslator, op: Op) -> str:
    """`createpolicy`: a cache hint; any value will do."""
    return tr.assign(op.operand(0), "u64", "0ull")


def map_shared(tr: FunctionTranslator, op: Op) -> str:
    """`mapa`: refused, as clusters are."""
    raise op.unsupported("thread block clusters")


HANDLERS: dict[str, Handler] = {
    "ld": load,
    "ldu": load,
    "st": store,
    "mov": move,
    "cvta": convert_address,
    "isspacep": in_space,
    "prefetch": nothing,
    "prefetchu": nothing,
    "applypriority": nothing,
    "discard": nothing,
    "createpolicy": create_policy,
    "mapa": map_shared,
    "getctarank": map_shared,
}
