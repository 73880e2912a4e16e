"""Conversions, comparisons and selections."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Name, Operand, Pair
from kernelskill.backends.emulated.translate.floating import ROUNDINGS, half_format
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import CPP, is_float, is_half, unsigned

_INTEGRAL = {"rni": 0, "rzi": 1, "rmi": 2, "rpi": 3}
_FP8 = {"e4m3x2": "ks::E4m3", "e5m2x2": "ks::E5m2"}


def convert(tr: FunctionTranslator, op: Op) -> str:
    """`cvt` between all scalar types, and to half pairs."""
    if op.has("pack"):
        raise op.unsupported()
    if len(op.types) < 2:
        raise op.unsupported()
    target, source = op.types[-2], op.types[-1]
    if target in ("f16x2", "bf16x2") and source == "f32":
        return _to_pair(tr, op, target)
    if target in _FP8 or source in _FP8:
        return _fp8(tr, op, target, source)
    value = tr.value(op.operand(1), source)
    if target == "tf32":
        return tr.assign(op.operand(0), "u32", f"ks::to_tf32({value})")
    if is_half(source):
        value, source = f"{half_format(source)}::widen({value})", "f32"
        if op.types[-2] == op.types[-1] and op.pick(*_INTEGRAL):
            return _to_half(tr, op, target, f"ks::integral<{op.choice(_INTEGRAL)}>({value})", "f32")
    if is_half(target):
        return _to_half(tr, op, target, value, source)
    return tr.assign(op.operand(0), target, _scalar(op, target, source, value))


def _scalar(op: Op, target: str, source: str, value: str) -> str:
    flush = op.has("ftz")
    if is_float(source):
        value = f"ks::flush({value})" if flush and source == "f32" else value
        if is_float(target):
            return _float_to_float(op, target, source, value, flush)
        mode = next((_INTEGRAL[part] for part in op.modifiers if part in _INTEGRAL), 1)
        return f"ks::to_integer<{CPP[target]}>(ks::integral<{mode}>({value}))"
    if is_float(target):
        rounding = next((ROUNDINGS[part] for part in op.modifiers if part in ROUNDINGS), 0)
        code = (
            f"({CPP[target]}){value}"
            if not rounding
            else f"ks::from_integer<{CPP[target]}, {rounding}>({value})"
        )
        return f"ks::saturate({code})" if op.has("sat") else code
    if op.has("sat"):
        return f"ks::clamp_integer<{CPP[target]}>({value})"
    return f"({CPP[target]}){value}"


def _float_to_float(op: Op, target: str, source: str, value: str, flush: bool) -> str:
    mode = next((_INTEGRAL[part] for part in op.modifiers if part in _INTEGRAL), None)
    rounding = next((ROUNDINGS[part] for part in op.modifiers if part in ROUNDINGS), 0)
    if mode is not None:
        value = f"ks::integral<{mode}>({value})"
    if target != source:
        rounded = target == "f32" and rounding
        value = f"ks::narrow<{rounding}>({value})" if rounded else f"({CPP[target]}){value}"
    if flush and target == "f32":
        value = f"ks::flush({value})"
    return f"ks::saturate({value})" if op.has("sat") else value


def _half_flags(op: Op) -> int:
    rounding = next((ROUNDINGS[part] for part in op.modifiers if part in ROUNDINGS), 0)
    return rounding | (4 if op.has("relu") else 0) | (8 if op.has("sat") else 0)


def _to_half(tr: FunctionTranslator, op: Op, target: str, value: str, source: str) -> str:
    if source != "f32":
        value = f"ks::to_odd({value})"  # rounds once: odd in single precision, then as asked
    return tr.assign(op.operand(0), target, f"{half_format(target)}::narrow<{_half_flags(op)}>({value})")


def _to_pair(tr: FunctionTranslator, op: Op, target: str) -> str:
    if op.has("rs") or len(op.operands) != 3:
        raise op.unsupported()
    call = f"{half_format(target)}::narrow<{_half_flags(op)}>"
    high, low = tr.value(op.operand(1), "f32"), tr.value(op.operand(2), "f32")
    return tr.assign(op.operand(0), "u32", f"((uint32_t){call}({high}) << 16 | {call}({low}))")


def _fp8(tr: FunctionTranslator, op: Op, target: str, source: str) -> str:
    if target in _FP8 and source == "f32" and len(op.operands) == 3:
        high, low = tr.value(op.operand(1), "f32"), tr.value(op.operand(2), "f32")
        return tr.assign(op.operand(0), "u16", f"ks::to_fp8<{_FP8[target]}>({high}, {low})")
    if target in _FP8 and source == "f16x2":
        return tr.assign(
            op.operand(0), "u16", f"ks::pair_to_fp8<{_FP8[target]}>({tr.value(op.operand(1), 'u32')})"
        )
    if target == "f16x2":
        return tr.assign(
            op.operand(0), "u32", f"ks::from_fp8<{_FP8[source]}>({tr.value(op.operand(1), 'u16')})"
        )
    raise op.unsupported()


_COMPARE = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
    "equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">=",
    "num": "num", "nan": "nan",
}  # fmt: skip
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu")


def _comparison(tr: FunctionTranslator, op: Op, kind: str, first: Operand, second: Operand) -> str:
    name = next((part for part in op.modifiers if part in _COMPARE), "")
    if not name:
        raise op.unsupported()
    held = unsigned(kind) if kind[0] == "b" and kind[:2] != "bf" else kind
    a, b = tr.value(first, held), tr.value(second, held)
    if is_half(kind):
        a, b = f"{half_format(kind)}::widen({a})", f"{half_format(kind)}::widen({b})"
    elif op.has("ftz"):
        a, b = f"ks::flush({a})", f"ks::flush({b})"
    if name == "num":
        return f"(!__builtin_isunordered({a}, {b}))"
    if name == "nan":
        return f"((bool)__builtin_isunordered({a}, {b}))"
    floating = is_float(kind) or is_half(kind)
    if floating and name in _UNORDERED:
        return f"(({a} {_COMPARE[name]} {b}) || __builtin_isunordered({a}, {b}))"
    if floating and name == "ne":
        return f"({a} != {b} && !__builtin_isunordered({a}, {b}))"
    return f"({a} {_COMPARE[name]} {b})"


def _combined(tr: FunctionTranslator, op: Op, compared: str) -> str:
    joined = op.pick("and", "or", "xor")
    if not joined:
        return compared
    sign = {"and": "&", "or": "|", "xor": "^"}[joined]
    return f"(bool)({compared} {sign} {tr.value(op.operand(3), 'pred')})"


def set_predicate(tr: FunctionTranslator, op: Op) -> str:
    """`setp`: one or two predicates from a comparison, also of half pairs."""
    kind, target = op.type, op.operand(0)
    if kind in ("f16x2", "bf16x2"):
        return _pair_predicate(tr, op)
    code = _comparison(tr, op, kind, op.operand(1), op.operand(2))
    if isinstance(target, Pair):
        joined = op.pick("and", "or", "xor")
        negated = f"!{code}"
        first, second = _combined(tr, op, code), _combined(tr, op, negated) if joined else negated
        sets = (tr.assign(target.first, "pred", "c_"), tr.assign(target.second, "pred", "d_"))
        return f"{{ bool c_ = {first}, d_ = {second}; {' '.join(sets)} }}"
    return tr.assign(target, "pred", _combined(tr, op, code))


def _lanes(tr: FunctionTranslator, op: Op) -> tuple[str, str]:
    """Return the comparisons of the low and the high lanes of two pairs."""
    name = next((part for part in op.modifiers if part in _COMPARE), "")
    if not name:
        raise op.unsupported()
    form = half_format(op.type)
    a, b = tr.value(op.operand(1), "u32"), tr.value(op.operand(2), "u32")
    sign = _COMPARE[name]
    found = []
    for part in (0, 16):
        x, y = f"{form}::widen((uint16_t)({a} >> {part}))", f"{form}::widen((uint16_t)({b} >> {part}))"
        if name in ("num", "nan"):
            code = f"{'!' if name == 'num' else ''}__builtin_isunordered({x}, {y})"
        else:
            unordered = f"__builtin_isunordered({x}, {y})"
            code = (
                f"(({x} {sign} {y}) || {unordered})"
                if name in _UNORDERED
                else f"(({x} {sign} {y}) && !{unordered})"
            )
        found.append(f"(bool)({code})")
    return found[0], found[1]


def _pair_predicate(tr: FunctionTranslator, op: Op) -> str:
    target = op.operand(0)
    low, high = _lanes(tr, op)
    if not isinstance(target, Pair):
        raise op.unsupported()
    low, high = _combined(tr, op, low), _combined(tr, op, high)
    first, second = tr.assign(target.first, "pred", "c_"), tr.assign(target.second, "pred", "d_")
    return f"{{ bool c_ = {low}, d_ = {high}; {first} {second} }}"


def set_value(tr: FunctionTranslator, op: Op) -> str:
    """`set`: all ones or 1.0 where a comparison holds."""
    if len(op.types) < 2:
        raise op.unsupported()
    target, kind = op.types[-2], op.types[-1]
    if kind in ("f16x2", "bf16x2"):
        one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(target, 0xFFFF)
        low, high = _lanes(tr, op)
        code = f"(({low} ? {one}u : 0u) | ({high} ? {one}u : 0u) << 16)"
        return tr.assign(op.operand(0), "u32", code)
    code = _combined(tr, op, _comparison(tr, op, kind, op.operand(1), op.operand(2)))
    if is_float(target):
        return tr.assign(op.operand(0), target, f"({code} ? ({CPP[target]})1 : ({CPP[target]})0)")
    if is_half(target):
        one = 0x3C00 if target == "f16" else 0x3F80
        return tr.assign(op.operand(0), target, f"(uint16_t)({code} ? {one} : 0)")
    whole = unsigned(target)
    return tr.assign(op.operand(0), whole, f"({CPP[whole]})({code} ? -1 : 0)")


def select(tr: FunctionTranslator, op: Op) -> str:
    """`selp`."""
    kind = op.type
    a, b = tr.value(op.operand(1), kind), tr.value(op.operand(2), kind)
    return tr.assign(op.operand(0), kind, f"({tr.value(op.operand(3), 'pred')} ? {a} : {b})")


def select_by_sign(tr: FunctionTranslator, op: Op) -> str:
    """`slct`."""
    if len(op.types) < 2:
        raise op.unsupported()
    kind, condition = op.types[-2], op.types[-1]
    a, b = tr.value(op.operand(1), kind), tr.value(op.operand(2), kind)
    return tr.assign(op.operand(0), kind, f"({tr.value(op.operand(3), condition)} >= 0 ? {a} : {b})")


def is_name(operand: Operand) -> bool:
    """Whether an operand is a plain name."""
    return isinstance(operand, Name)


HANDLERS: dict[str, Handler] = {
    "cvt": convert,
    "setp": set_predicate,
    "set": set_value,
    "selp": select,
    "slct": select_by_sign,
}
