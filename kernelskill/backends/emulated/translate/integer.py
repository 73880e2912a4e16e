"""Integer arithmetic and logic."""

from __future__ import annotations

from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import CPP, signed, unsigned, width


def _values(tr: FunctionTranslator, op: Op, kind: str, first: int = 1) -> list[str]:
    return [tr.value(operand, kind) for operand in op.operands[first:]]


def add(tr: FunctionTranslator, op: Op) -> str:
    """`add`, `sub` with saturation and carry out, and `add` of pairs."""
    kind = op.type
    sign = "+" if op.root == "add" else "-"
    if op.has("sat"):
        return tr.assign(op.operand(0), kind, f"ks::{op.root}_sat({', '.join(_values(tr, op, kind))})")
    if op.has("cc"):
        return with_carry(tr, op)
    a, b = _values(tr, op, unsigned(kind))
    if kind.endswith("16x2"):
        return tr.assign(op.operand(0), unsigned(kind), f"ks::add_pair({a}, {b})")
    return tr.assign(op.operand(0), unsigned(kind), f"({CPP[unsigned(kind)]})({a} {sign} {b})")


def with_carry(tr: FunctionTranslator, op: Op) -> str:
    """`add.cc`, `addc`, `sub.cc`, `subc`: the carry lives in a variable of the thread."""
    kind = unsigned(op.type)
    a, b = _values(tr, op, kind)
    name = op.root.rstrip("c") if op.root in ("addc", "subc") else op.root
    carry_in = "t.carry" if op.root.endswith("c") else "0u"
    carry_out = "&t.carry" if op.has("cc") else "nullptr"
    return tr.assign(op.operand(0), kind, f"ks::{name}_carry<{CPP[kind]}>({a}, {b}, {carry_in}, {carry_out})")


def multiply(tr: FunctionTranslator, op: Op) -> str:
    """`mul`: low, high or wide."""
    return tr.assign(op.operand(0), *_product(tr, op))


def _product(tr: FunctionTranslator, op: Op) -> tuple[str, str]:
    """Return type and expression of the product of operands 1 and 2."""
    kind = op.type
    if op.has("wide"):
        wide = f"{kind[0]}{width(kind) * 2}"
        a, b = tr.value(op.operand(1), kind), tr.value(op.operand(2), kind)
        return wide, f"(({CPP[wide]}){a} * ({CPP[wide]}){b})"
    if op.has("hi"):
        a, b = tr.value(op.operand(1), kind), tr.value(op.operand(2), kind)
        return kind, f"ks::mul_hi<{CPP[kind]}>({a}, {b})"
    whole = unsigned(kind)
    a, b = tr.value(op.operand(1), whole), tr.value(op.operand(2), whole)
    if width(kind) == 16:
        return whole, f"(uint16_t)((uint32_t){a} * (uint32_t){b})"
    return whole, f"({a} * {b})"


def multiply_add(tr: FunctionTranslator, op: Op) -> str:
    """`mad`, `madc`."""
    kind, product = _product(tr, op)
    whole = unsigned(kind)
    addend = tr.value(op.operand(3), whole)
    if op.has("cc") or op.root == "madc":
        carry_in = "t.carry" if op.root == "madc" else "0u"
        carry_out = "&t.carry" if op.has("cc") else "nullptr"
        call = f"ks::add_carry<{CPP[whole]}>(({CPP[whole]}){product}, {addend}, {carry_in}, {carry_out})"
        return tr.assign(op.operand(0), whole, call)
    if op.has("sat"):
        return tr.assign(op.operand(0), kind, f"ks::add_sat({product}, {tr.value(op.operand(3), kind)})")
    return tr.assign(op.operand(0), whole, f"({CPP[whole]})(({CPP[whole]}){product} + {addend})")


def multiply24(tr: FunctionTranslator, op: Op) -> str:
    """`mul24`, `mad24`."""
    kind = op.type
    a, b = tr.value(op.operand(1), kind), tr.value(op.operand(2), kind)
    shift = 16 if op.has("hi") else 0
    product = f"({CPP[kind]})(ks::low24({a}) * ks::low24({b}) >> {shift})"
    if op.root == "mad24":
        product = f"({CPP[kind]})({product} + {tr.value(op.operand(3), kind)})"
    return tr.assign(op.operand(0), kind, product)


def divide(tr: FunctionTranslator, op: Op) -> str:
    """`div`, `rem`."""
    kind = op.type
    a, b = _values(tr, op, kind)
    return tr.assign(op.operand(0), kind, f"ks::{op.root}_int<{CPP[kind]}>({a}, {b})")


def extreme(tr: FunctionTranslator, op: Op) -> str:
    """`min`, `max` of integers."""
    kind = op.type
    if kind.endswith("x2"):
        element = "int16_t" if kind[0] == "s" else "uint16_t"
        a, b = _values(tr, op, kind)
        return tr.assign(op.operand(0), kind, f"ks::{op.root}_pair<{element}>({a}, {b})")
    values = _values(tr, op, kind)
    code = f"ks::{op.root}_int<{CPP[kind]}>({values[0]}, {values[1]})"
    if op.has("relu"):
        code = f"ks::max_int<{CPP[kind]}>({code}, 0)"
    return tr.assign(op.operand(0), kind, code)


def unary(tr: FunctionTranslator, op: Op) -> str:
    """`neg`, `abs`, `not`, `cnot`."""
    kind = op.type
    if kind == "pred":
        return tr.assign(op.operand(0), "pred", f"!{tr.value(op.operand(1), 'pred')}")
    whole = unsigned(kind)
    a = tr.value(op.operand(1), whole)
    code = {
        "neg": f"0 - {a}",
        "abs": f"({tr.value(op.operand(1), signed(kind))} < 0 ? 0 - {a} : {a})",
        "not": f"~{a}",
        "cnot": f"({a} == 0 ? 1 : 0)",
    }[op.root]
    return tr.assign(op.operand(0), whole, f"({CPP[whole]})({code})")


def logic(tr: FunctionTranslator, op: Op) -> str:
    """`and`, `or`, `xor`."""
    sign = {"and": "&", "or": "|", "xor": "^"}[op.root]
    kind = op.type if op.type == "pred" else unsigned(op.type)
    a, b = _values(tr, op, kind)
    return tr.assign(op.operand(0), kind, f"({CPP[kind]})({a} {sign} {b})")


def logic3(tr: FunctionTranslator, op: Op) -> str:
    """`lop3`."""
    if op.has("BoolOp", "or", "and") or len(op.operands) != 5:
        raise op.unsupported()
    a, b, c, table = _values(tr, op, "u32")
    return tr.assign(op.operand(0), "u32", f"ks::lop3({a}, {b}, {c}, {table})")


def shift(tr: FunctionTranslator, op: Op) -> str:
    """`shl`, `shr`: counts past the width give zero or the sign."""
    kind = signed(op.type) if op.root == "shr" and op.type[0] == "s" else unsigned(op.type)
    a, count = tr.value(op.operand(1), kind), tr.value(op.operand(2), "u32")
    return tr.assign(op.operand(0), kind, f"ks::{op.root}<{CPP[kind]}>({a}, {count})")


def plain_call(function: str, arguments: tuple[str, ...], result: str = "") -> Handler:
    """Return a handler that calls one runtime function.

    Args:
        function: Name in the runtime; `{t}` stands for the C++ type.
        arguments: Type of each argument; `t` is the instruction's type, `u` its unsigned form.
        result: Type of the result; the instruction's where empty.
    """

    def handler(tr: FunctionTranslator, op: Op) -> str:
        table = {"t": op.type, "u": unsigned(op.type) if op.type != "pred" else "pred"}
        kinds = [table.get(kind, kind) for kind in arguments]
        values = ", ".join(tr.value(op.operand(n + 1), kind) for n, kind in enumerate(kinds))
        kind = table.get(result, result) or op.type
        name = function.format(t=CPP[op.type], u=CPP[table["u"]])
        return tr.assign(op.operand(0), kind, f"({CPP[kind]})ks::{name}({values})")

    return handler


def funnel_shift(tr: FunctionTranslator, op: Op) -> str:
    """`shf`."""
    a, b, count = _values(tr, op, "u32")
    side = "left" if op.has("l") else "right"
    how = "wrap" if op.has("wrap") else "clamp"
    return tr.assign(op.operand(0), "u32", f"ks::funnel_{side}({a}, {b}, ks::count_{how}({count}))")


def find_leading(tr: FunctionTranslator, op: Op) -> str:
    """`bfind`."""
    shifted = "true" if op.has("shiftamt") else "false"
    call = f"ks::bfind<{CPP[op.type]}>({tr.value(op.operand(1), op.type)}, {shifted})"
    return tr.assign(op.operand(0), "u32", call)


def permute(tr: FunctionTranslator, op: Op) -> str:
    """`prmt`."""
    mode = op.pick("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    a, b, c = _values(tr, op, "u32")
    name = f"prmt_{mode}" if mode else "prmt"
    return tr.assign(op.operand(0), "u32", f"ks::{name}({a}, {b}, {c})")


def dot_product(tr: FunctionTranslator, op: Op) -> str:
    """`dp4a`, `dp2a`."""
    if len(op.types) != 2:
        raise op.unsupported()
    first, second = ("int8_t" if kind[0] == "s" else "uint8_t" for kind in op.types)
    wide = "int16_t" if op.types[0][0] == "s" else "uint16_t"
    a, b, c = _values(tr, op, "u32")
    if op.root == "dp4a":
        call = f"ks::dp4a<{first}, {second}>({a}, {b}, {c})"
    else:
        call = f"ks::dp2a<{wide}, {second}>({a}, {b}, {c}, {'true' if op.has('hi') else 'false'})"
    return tr.assign(op.operand(0), "u32", call)


def bit_mask(tr: FunctionTranslator, op: Op) -> str:
    """`bmsk`."""
    a, b = _values(tr, op, "u32")
    how = "true" if op.has("clamp") else "false"
    return tr.assign(op.operand(0), "u32", f"ks::bmsk({a}, {b}, {how})")


INTEGER: dict[str, Handler] = {
    "add": add,
    "sub": add,
    "mul": multiply,
    "mad": multiply_add,
    "div": divide,
    "min": extreme,
    "max": extreme,
    "neg": unary,
    "abs": unary,
}
"""Handlers of instructions that floating-point types share; `dispatch` chooses."""

HANDLERS: dict[str, Handler] = {
    "rem": divide,
    "addc": with_carry,
    "subc": with_carry,
    "madc": multiply_add,
    "mul24": multiply24,
    "mad24": multiply24,
    "not": unary,
    "cnot": unary,
    "and": logic,
    "or": logic,
    "xor": logic,
    "lop3": logic3,
    "shl": shift,
    "shr": shift,
    "shf": funnel_shift,
    "bfind": find_leading,
    "prmt": permute,
    "dp4a": dot_product,
    "dp2a": dot_product,
    "bmsk": bit_mask,
    "bfe": plain_call("bfe<{t}>", ("t", "u32", "u32")),
    "bfi": plain_call("bfi<{u}>", ("u", "u", "u32", "u32"), "u"),
    "brev": plain_call("brev<{u}>", ("u",), "u"),
    "popc": plain_call("popc<{u}>", ("u",), "u32"),
    "clz": plain_call("clz<{u}>", ("u",), "u32"),
    "fns": plain_call("fns", ("u32", "u32", "s32"), "u32"),
    "sad": plain_call("sad<{t}>", ("t", "t", "u")),
    "szext": plain_call("szext<{t}>", ("t", "u32")),
}
