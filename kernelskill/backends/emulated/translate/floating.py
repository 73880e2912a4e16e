"""Floating-point arithmetic of single and double precision, half precision and pairs."""

from __future__ import annotations

from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.integer import INTEGER
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import CPP, is_float, is_half

ROUNDINGS = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}


def _rounding(op: Op) -> int:
    return next((ROUNDINGS[part] for part in op.modifiers if part in ROUNDINGS), 0)


def _arguments(tr: FunctionTranslator, op: Op) -> list[str]:
    values = [tr.value(operand, op.type) for operand in op.operands[1:]]
    if op.has("ftz") and is_float(op.type):
        values = [f"ks::flush({value})" for value in values]
    return values


def _finish(tr: FunctionTranslator, op: Op, code: str) -> str:
    if op.has("ftz") and is_float(op.type):
        code = f"ks::flush({code})"
    if op.has("sat"):
        code = f"ks::saturate({code})"
    return tr.assign(op.operand(0), op.type, code)


def arithmetic(tr: FunctionTranslator, op: Op) -> str:
    """`add`, `sub`, `mul`, `fma`, `mad`, `div` in any rounding."""
    values = _arguments(tr, op)
    rounding = _rounding(op)
    name = "fma" if op.root == "mad" else op.root
    if len(values) != (3 if name == "fma" else 2):
        raise op.unsupported("number of operands")
    if rounding:
        return _finish(tr, op, f"ks::{name}_rounded<{rounding}>({', '.join(values)})")
    if name == "fma":
        return _finish(tr, op, f"__builtin_fma{'f' if op.type == 'f32' else ''}({', '.join(values)})")
    sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[name]
    return _finish(tr, op, f"({values[0]} {sign} {values[1]})")


_UNARY = {
    "sqrt": "ks::root({a})",
    "rcp": "(1 / {a})",
    "rsqrt": "(1 / ks::root({a}))",
    "sin": "__builtin_sinf({a})",
    "cos": "__builtin_cosf({a})",
    "ex2": "__builtin_exp2f({a})",
    "lg2": "__builtin_log2f({a})",
    "tanh": "__builtin_tanhf({a})",
    "neg": "(-{a})",
    "abs": "ks::absolute({a})",
}


def unary(tr: FunctionTranslator, op: Op) -> str:
    """One-operand functions; the approximate ones are computed well."""
    if is_half(op.type):
        return half_unary(tr, op)
    if not is_float(op.type):
        raise op.unsupported()
    (a,) = _arguments(tr, op)
    rounding = _rounding(op)
    if rounding and op.root in ("sqrt", "rcp"):
        arguments = a if op.root == "sqrt" else f"({CPP[op.type]})1, {a}"
        name = "sqrt" if op.root == "sqrt" else "div"
        return _finish(tr, op, f"ks::{name}_rounded<{rounding}>({arguments})")
    return _finish(tr, op, _UNARY[op.root].format(a=a))


def extreme(tr: FunctionTranslator, op: Op) -> str:
    """`min`, `max`: a number wins over NaN unless `.NaN` is given; minus zero is less than zero."""
    values = _arguments(tr, op)
    if op.has("xorsign"):
        raise op.unsupported()
    nan = "true" if op.has("NaN") else "false"
    code = values[0]
    for other in values[1:]:
        code = f"ks::{op.root}_float<{CPP[op.type]}, {nan}>({code}, {other})"
    return _finish(tr, op, code)


def copy_sign(tr: FunctionTranslator, op: Op) -> str:
    """`copysign d, a, b`: the magnitude of b with the sign of a."""
    a, b = _arguments(tr, op)
    suffix = "f" if op.type == "f32" else ""
    return tr.assign(op.operand(0), op.type, f"__builtin_copysign{suffix}({b}, {a})")


def test(tr: FunctionTranslator, op: Op) -> str:
    """`testp`."""
    a = tr.value(op.operand(1), op.type)
    code = {
        "finite": f"__builtin_isfinite({a})",
        "infinite": f"__builtin_isinf({a})",
        "number": f"!__builtin_isnan({a})",
        "notanumber": f"__builtin_isnan({a})",
        "normal": f"__builtin_isnormal({a})",
        "subnormal": f"ks::subnormal({a})",
    }
    return tr.assign(op.operand(0), "pred", f"(bool)({op.choice(code)})")


def half_format(kind: str) -> str:
    """Return the runtime's name of a half format."""
    return "ks::Bf16" if kind.startswith("bf16") else "ks::F16"


def half_arithmetic(tr: FunctionTranslator, op: Op) -> str:
    """Arithmetic of half types and pairs: each lane in single precision, rounded once."""
    kind = op.type
    name = "fma" if op.root == "mad" else op.root
    lanes = "pair" if kind.endswith("x2") else "one"
    flags = sum(bit for part, bit in (("ftz", 1), ("sat", 2), ("relu", 4), ("NaN", 8)) if op.has(part))
    values = ", ".join(tr.value(operand, kind) for operand in op.operands[1:])
    return tr.assign(op.operand(0), kind, f"ks::half_{name}_{lanes}<{half_format(kind)}, {flags}>({values})")


def half_unary(tr: FunctionTranslator, op: Op) -> str:
    """`neg`, `abs`, `ex2`, `tanh` of half types and pairs."""
    if op.root not in ("neg", "abs", "ex2", "tanh"):
        raise op.unsupported()
    return half_arithmetic(tr, op)


def pair_arithmetic(tr: FunctionTranslator, op: Op) -> str:
    """`add`, `sub`, `mul`, `fma` of two single-precision lanes."""
    if op.root not in ("add", "sub", "mul", "fma") or _rounding(op):
        raise op.unsupported()
    values = ", ".join(tr.value(operand, "f32x2") for operand in op.operands[1:])
    return tr.assign(op.operand(0), "f32x2", f"ks::f32x2_{op.root}({values})")


_FLOAT: dict[str, Handler] = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "mad", "div"), arithmetic),
    **dict.fromkeys(("min", "max"), extreme),
    **dict.fromkeys(("neg", "abs"), unary),
}


def _dispatch(tr: FunctionTranslator, op: Op) -> str:
    """Choose by the kind of the type."""
    kind = op.type
    if kind == "f32x2":
        return pair_arithmetic(tr, op)
    if is_half(kind):
        if op.root == "div":
            raise op.unsupported()
        return half_arithmetic(tr, op)
    table = _FLOAT if is_float(kind) else INTEGER
    if op.root not in table:
        raise op.unsupported()
    return table[op.root](tr, op)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "mad", "div", "min", "max", "neg", "abs"), _dispatch),
    **dict.fromkeys(("sqrt", "rcp", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh"), unary),
    "copysign": copy_sign,
    "testp": test,
}
