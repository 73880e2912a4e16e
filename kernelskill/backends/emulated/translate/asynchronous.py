"""Asynchronous copies and memory barriers (`mbarrier`). Copies happen at once."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Integer
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
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
    given = tr.value(op.operand(3), "u32") if len(op.operands) > 3 and op.modifiers[-1] != "L2::cache_hint" else f"{bytes_}u"
    return f"ks::copy_async<{bytes_}>(t, {target}, {source}, {given}, {tr.site()}, {tr.site()});"


HANDLERS: dict[str, Handler] = {"cp": copy}
