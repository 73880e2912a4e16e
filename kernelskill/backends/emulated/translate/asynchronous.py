"""Asynchronous copies and memory barriers (`mbarrier`). Copies happen at once."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Integer
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.memory import space_of
from kernelskill.backends.emulated.translate.opcode import Op


def copy(tr: FunctionTranslator, op: Op) -> str:
    """`cp.async` from global to shared memory, its groups and waits."""
    if not op.has("async") or op.has("bulk", "tensor"):
        raise op.unsupported()
    if op.has("commit_group", "wait_group", "wait_all"):
        return ";"
    if op.has("mbarrier"):
        return f"ks::mbarrier_arrive(t, {tr.address(op.operand(0))}, {0 if op.has('noinc') else 2}, {tr.site()});"
    amount = op.operand(2)
    if not isinstance(amount, Integer) or amount.value not in (4, 8, 16):
        raise op.unsupported()
    bytes_ = amount.value
    tr.uses_shared = True
    source, target = tr.address(op.operand(1)), tr.address(op.operand(0))
    given = (
        tr.value(op.operand(3), "u32")
        if len(op.operands) > 3 and op.modifiers[-1] != "L2::cache_hint"
        else f"{bytes_}u"
    )
    return f"ks::copy_async<{bytes_}>(t, {target}, {source}, {given}, {tr.site()}, {tr.site()});"


def memory_barrier(tr: FunctionTranslator, op: Op) -> str:
    """`mbarrier`: barrier objects in shared memory of the block's own."""
    if op.has("shared::cluster", "cluster", "expect_tx", "complete_tx", "noComplete"):
        raise op.unsupported()
    tr.uses_shared = True
    place = op.operand(0) if op.has("init", "inval") else op.operand(1)
    address = tr.address(place)
    if space_of(op) == "generic":
        address = f"({address} - (uint64_t)t.shared)"
    if op.has("init"):
        return f"ks::mbarrier_init(t, {address}, {tr.value(op.operand(1), 'u32')}, {tr.site()});"
    if op.has("inval"):
        return ";"
    if op.has("arrive", "arrive_drop"):
        if op.has("arrive_drop"):
            raise op.unsupported()
        count = tr.value(op.operand(2), "u32") if len(op.operands) > 2 else "1u"
        call = f"ks::mbarrier_arrive_count(t, {address}, {count}, 0, {tr.site()})"
        return tr.assign(op.operand(0), "u64", call)
    if op.has("test_wait", "try_wait"):
        phase = tr.value(op.operand(2), "u32" if op.has("parity") else "u64")
        phase = f"({phase} & 1u)" if op.has("parity") else f"ks::mbarrier_phase_of({phase})"
        return tr.assign(op.operand(0), "pred", f"ks::mbarrier_done(t, {address}, {phase}, {tr.site()})")
    raise op.unsupported()


HANDLERS: dict[str, Handler] = {"cp": copy, "mbarrier": memory_barrier}
