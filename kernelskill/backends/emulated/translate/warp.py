"""Exchanges between the lanes of a warp."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Operand, Pair
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import CPP, unsigned


def _targets(op: Op) -> tuple[Operand, Operand | None]:
    target = op.operand(0)
    if isinstance(target, Pair):
        return target.first, target.second
    return target, None


def shuffle(tr: FunctionTranslator, op: Op) -> str:
    """`shfl.sync`; the older form without a mask means the whole warp."""
    mode = op.choice({"up": "up", "down": "down", "bfly": "bfly", "idx": "idx"})
    mask = tr.value(op.operand(4), "u32") if op.has("sync") else "0xffffffffu"
    value, lane, clamp = (tr.value(op.operand(n), "u32") for n in (1, 2, 3))
    first, second = _targets(op)
    code = f"ks::shuffle_{mode}(t, {mask}, {value}, {lane}, {clamp}, {tr.site()}, &ok_)"
    also = tr.assign(second, "pred", "ok_") if second is not None else ""
    return f"{{ bool ok_; uint32_t v_ = {code}; {tr.assign(first, 'u32', 'v_')} {also} }}"


def vote(tr: FunctionTranslator, op: Op) -> str:
    """`vote.sync`: all, any, uni, ballot."""
    mode = op.choice({"all": "all", "any": "any", "uni": "uni", "ballot": "ballot"})
    mask = tr.value(op.operand(2), "u32") if op.has("sync") else "0xffffffffu"
    code = f"ks::vote_{mode}(t, {mask}, {tr.value(op.operand(1), 'pred')}, {tr.site()})"
    return tr.assign(op.operand(0), "u32" if mode == "ballot" else "pred", code)


def match(tr: FunctionTranslator, op: Op) -> str:
    """`match.sync`."""
    mode = "all" if op.has("all") else "any"
    kind = unsigned(op.type)
    value, mask = tr.value(op.operand(1), kind), tr.value(op.operand(2), "u32")
    first, second = _targets(op)
    code = f"ks::match_{mode}(t, {mask}, (uint64_t){value}, {tr.site()}, &ok_)"
    also = tr.assign(second, "pred", "ok_") if second is not None else ""
    return f"{{ bool ok_ = false; uint32_t v_ = {code}; {tr.assign(first, 'u32', 'v_')} {also} }}"


def reduce(tr: FunctionTranslator, op: Op) -> str:
    """`redux.sync` of integers and of single precision."""
    operation = op.choice({name: name for name in ("add", "min", "max", "and", "or", "xor")})
    kind = op.type if op.type[0] != "b" else unsigned(op.type)
    value, mask = tr.value(op.operand(1), kind), tr.value(op.operand(2), "u32")
    if kind == "f32":
        flags = "true" if op.has("abs") else "false", "true" if op.has("NaN") else "false"
        code = f"ks::redux_{operation}_float<{flags[0]}, {flags[1]}>(t, {mask}, {value}, {tr.site()})"
        return tr.assign(op.operand(0), kind, code)
    return tr.assign(
        op.operand(0), kind, f"ks::redux_{operation}<{CPP[kind]}>(t, {mask}, {value}, {tr.site()})"
    )


def active_mask(tr: FunctionTranslator, op: Op) -> str:
    """`activemask`: those of the warp that meet here."""
    return tr.assign(op.operand(0), "u32", f"ks::ks_active_mask(t, {tr.site()})")


def elect(tr: FunctionTranslator, op: Op) -> str:
    """`elect.sync`: the lowest lane."""
    first, second = _targets(op)
    mask = tr.value(op.operand(1), "u32")
    also = tr.assign(second, "pred", "v_ == t.lane") if second is not None else ""
    code = f"ks::elect(t, {mask}, {tr.site()})"
    return f"{{ uint32_t v_ = {code}; {tr.assign(first, 'u32', 'v_')} {also} }}"


HANDLERS: dict[str, Handler] = {
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "activemask": active_mask,
    "elect": elect,
}
