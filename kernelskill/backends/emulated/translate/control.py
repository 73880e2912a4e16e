"""Branches, calls, barriers and fences."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Group, Name, Operand
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.refusal import Unsupported
from kernelskill.backends.emulated.translate.values import Symbol


def branch(tr: FunctionTranslator, op: Op) -> str:
    """`bra`."""
    target = op.operand(0)
    if not isinstance(target, Name):
        raise op.unsupported()
    tr.end_block()
    return tr.jump(target.text)


def indexed_branch(tr: FunctionTranslator, op: Op) -> str:
    """`brx.idx`."""
    index, table = op.operand(0), op.operand(1)
    if not op.has("idx") or not isinstance(table, Name):
        raise op.unsupported()
    labels = tr.branch_targets.get(table.text)
    if labels is None:
        raise op.unsupported("unknown branch table")
    tr.end_block()
    cases = " ".join(f"case {n}: {tr.jump(label)} break;" for n, label in enumerate(labels))
    return f"switch ({tr.value(index, 'u32')}) {{ {cases} default: {_fail(tr, 'trap')} }}"


def _fail(tr: FunctionTranslator, fault: str) -> str:
    return f"ks::ks_fail(t, (int32_t)ks::Fault::{fault}, {tr.site()}, 0, 0, 0, 0);"


def leave(tr: FunctionTranslator, op: Op) -> str:
    """`ret`, and `exit` of a kernel."""
    tr.end_block()
    if op.root == "exit" and not tr.function.entry:
        raise op.unsupported("in a device function")
    return "return;"


def stop(tr: FunctionTranslator, op: Op) -> str:
    """`trap`, `brkpt`."""
    return _fail(tr, "trap")


def _known_call(
    tr: FunctionTranslator, name: str, arguments: tuple[str, ...], results: tuple[str, ...]
) -> str:
    """Return the code of a function that the driver provides, or an empty text."""

    def argument(index: int, kind: str) -> str:
        return f"ks::get<{kind}>((const uint8_t*){arguments[index]}, 0)"

    if name == "vprintf" and len(arguments) == 2:
        print_ = f"ks::ks_print(t, {argument(0, 'uint64_t')}, {argument(1, 'uint64_t')});"
        result = f" ks::put<uint32_t>((uint8_t*){results[0]}, 0, 0u);" if results else ""
        return print_ + result
    if name == "__assertfail" and len(arguments) >= 4:
        where = f"{argument(0, 'uint64_t')}, {argument(1, 'uint64_t')}, {argument(2, 'uint32_t')}"
        return f"ks::ks_assert_fail(t, {tr.site()}, {where}, {argument(3, 'uint64_t')});"
    return ""


def _places(tr: FunctionTranslator, group: Operand | None) -> tuple[str, ...]:
    """Return the addresses of the parameter variables in a group."""
    if group is None:
        return ()
    elements = group.elements if isinstance(group, Group) else (group,)
    places: list[str] = []
    for element in elements:
        meaning = tr.meaning(element.text) if isinstance(element, Name) else None
        if not isinstance(meaning, Symbol) or meaning.space != "param":
            raise Unsupported(f"call argument {element!r}")
        places.append(meaning.address)
    return tuple(places)


def call(tr: FunctionTranslator, op: Op) -> str:
    """`call`: direct or through a function's number."""
    operands = list(op.operands)
    returns = operands.pop(0) if operands and isinstance(operands[0], Group) else None
    if not operands or not isinstance(operands[0], Name):
        raise op.unsupported()
    target = operands[0].text
    group = operands[1] if len(operands) > 1 and isinstance(operands[1], Group) else None
    results, arguments = _places(tr, returns), _places(tr, group)
    known = _known_call(tr, target, arguments, results)
    if known:
        return known
    every = ", ".join(f"(uint8_t*){place}" for place in (*results, *arguments)) or "nullptr"
    if target in tr.context.functions:
        tr.calls.add(target)
        return f"{{ uint8_t* p_[] = {{{every}}}; d{tr.context.functions[target]}(t, p_); }}"
    try:
        number = tr.value(Name(target), "u64")
    except Unsupported:
        raise Unsupported(f"instruction call of {target}, which the device code does not hold") from None
    tr.calls.add("*")
    return (
        f"{{ uint8_t* p_[] = {{{every}}}; uint64_t n_ = {number}; "
        f"if (n_ - 1 >= kFunctions) {{ {_fail(tr, 'trap')} }} functions_[n_](t, p_); }}"
    )


def barrier(tr: FunctionTranslator, op: Op) -> str:
    """`bar`, `barrier`: of a warp, of a block, with a count or a reduction."""
    if op.has("cluster"):
        return f"ks::ks_barrier(t, 15, 0, {tr.site()});" if op.has("wait") else ";"
    if op.has("warp"):
        return f"ks::ks_meet(t, {tr.value(op.operand(0), 'u32')}, 0, {tr.site()});"
    if op.has("red"):
        return _barrier_reduction(tr, op)
    number = tr.value(op.operand(0), "u32")
    count = tr.value(op.operand(1), "u32") if len(op.operands) > 1 else "0u"
    function = "ks_barrier_arrive" if op.has("arrive") else "ks_barrier"
    return f"ks::{function}(t, {number}, {count}, {tr.site()});"


def _barrier_reduction(tr: FunctionTranslator, op: Op) -> str:
    operation = op.choice({"popc": 0, "and": 1, "or": 2})
    number = tr.value(op.operand(1), "u32")
    has_count = len(op.operands) > 3
    count = tr.value(op.operand(2), "u32") if has_count else "0u"
    predicate = tr.value(op.operand(3 if has_count else 2), "pred")
    call_ = f"ks::ks_barrier_reduce(t, {number}, {count}, {predicate}, {operation}, {tr.site()})"
    return tr.assign(
        op.operand(0), "u32" if operation == 0 else "pred", call_ if operation == 0 else f"({call_} != 0)"
    )


def fence(tr: FunctionTranslator, op: Op) -> str:
    """`membar`, `fence`: memory is consistent here; only the compiler is held back."""
    return '__asm__ volatile("" ::: "memory");'


def sleep(tr: FunctionTranslator, op: Op) -> str:
    """`nanosleep`: give way."""
    return f"ks::ks_spin(t, {tr.site()});"


def nothing(tr: FunctionTranslator, op: Op) -> str:
    """`pmevent`, `setmaxnreg`, `griddepcontrol`: no effect on results."""
    return ";"


HANDLERS: dict[str, Handler] = {
    "bra": branch,
    "brx": indexed_branch,
    "ret": leave,
    "exit": leave,
    "trap": stop,
    "brkpt": stop,
    "call": call,
    "bar": barrier,
    "barrier": barrier,
    "membar": fence,
    "fence": fence,
    "nanosleep": sleep,
    "pmevent": nothing,
    "setmaxnreg": nothing,
    "griddepcontrol": nothing,
}
