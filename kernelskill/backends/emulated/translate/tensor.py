"""Matrix instructions of a warp: `mma.sync`, `ldmatrix`, `stmatrix`, `wmma`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelskill.backends.emulated.ptx.syntax import Operand
from kernelskill.backends.emulated.translate.function import FunctionTranslator, Handler
from kernelskill.backends.emulated.translate.memory import access, space_of
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import CPP, size

_ELEMENT = {
    "f16": "ks::ElementF16", "bf16": "ks::ElementBf16", "tf32": "ks::ElementTf32",
    "s8": "ks::ElementS8", "u8": "ks::ElementU8",
}  # fmt: skip
_PER_REGISTER = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4, "f32": 1, "s32": 1, "f64": 1}
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows, columns and depth of a product."""

    m: int
    n: int
    k: int

    @classmethod
    def of(cls, op: Op) -> Shape:
        """Read it from the opcode."""
        for part in op.modifiers:
            if match := _SHAPE.fullmatch(part):
                return cls(*map(int, match.groups()))
        raise op.unsupported()


def _registers(tr: FunctionTranslator, operand: Operand, name: str, room: int) -> str:
    """Return the declaration of an array with a fragment's registers."""
    values = ", ".join(tr.value(element, "u32") for element in tr.elements(operand))
    return f"uint32_t {name}[{room}] = {{{values}}};"


def _sums_in(tr: FunctionTranslator, operand: Operand, kind: str) -> str:
    """Return statements that load an accumulator into `s_`."""
    code = []
    for n, element in enumerate(tr.elements(operand)):
        if kind == "f16":
            value = tr.value(element, "u32")
            code.append(f"s_[{2 * n}] = ks::F16::widen(ks::low({value}));")
            code.append(f"s_[{2 * n + 1}] = ks::F16::widen(ks::high({value}));")
        else:
            code.append(f"s_[{n}] = {tr.value(element, kind)};")
    return " ".join(code)


def _sums_out(tr: FunctionTranslator, operand: Operand, kind: str, saturate: bool) -> str:
    """Return statements that store `s_` into an accumulator."""
    code = []
    for n, element in enumerate(tr.elements(operand)):
        if kind == "f16":
            pair = f"ks::both(ks::F16::narrow<0>((float)s_[{2 * n}]), ks::F16::narrow<0>((float)s_[{2 * n + 1}]))"
            code.append(tr.assign(element, "u32", pair))
        elif kind == "s32":
            value = f"ks::to_integer<int32_t>(s_[{n}])" if saturate else f"(int32_t)(int64_t)s_[{n}]"
            code.append(tr.assign(element, kind, value))
        else:
            code.append(tr.assign(element, kind, f"({CPP[kind]})s_[{n}]"))
    return " ".join(code)


def multiply(tr: FunctionTranslator, op: Op) -> str:
    """`mma.sync` with 16 rows and 8 columns, and 8 x 8 x 4 in double precision."""
    shape, types = Shape.of(op), op.types
    if not op.has("sync") or len(types) != 4 or op.has("sp", "sp::ordered_metadata", "block_scale"):
        raise op.unsupported()
    result, left, right, added = types
    if left == "f64" and shape == Shape(8, 8, 4):
        return _double(tr, op)
    fits = shape.m == 16 and shape.n == 8 and op.has("row") and op.has("col")
    if (
        not fits
        or left not in _ELEMENT
        or right not in _ELEMENT
        or _PER_REGISTER[left] != _PER_REGISTER[right]
    ):
        raise op.unsupported()
    per = _PER_REGISTER[left]
    if shape.k % (4 * per):
        raise op.unsupported()
    a, b = (tr.elements(op.operand(n)) for n in (1, 2))
    if len(a) != 2 * shape.k // (4 * per) or len(b) != shape.k // (4 * per):
        raise op.unsupported("number of registers")
    loads = " ".join(f"f_.a[{n}] = {tr.value(x, 'u32')};" for n, x in enumerate(a))
    loads += " " + " ".join(f"f_.b[{n}] = {tr.value(x, 'u32')};" for n, x in enumerate(b))
    call = f"ks::mma_sums<{_ELEMENT[left]}, {_ELEMENT[right]}, {shape.k}>(t, f_, s_, {tr.site()});"
    before = _sums_in(tr, op.operand(3), added)
    after = _sums_out(tr, op.operand(0), result, op.has("satfinite"))
    return f"{{ ks::Fragments f_; double s_[4]; {loads} {before} {call} {after} }}"


def _double(tr: FunctionTranslator, op: Op) -> str:
    (a,), (b,) = tr.elements(op.operand(1)), tr.elements(op.operand(2))
    call = f"ks::mma_f64(t, {tr.value(a, 'f64')}, {tr.value(b, 'f64')}, s_, {tr.site()});"
    before, after = _sums_in(tr, op.operand(3), "f64"), _sums_out(tr, op.operand(0), "f64", False)
    return f"{{ double s_[2]; {before} {call} {after} }}"


def load_matrix(tr: FunctionTranslator, op: Op) -> str:
    """`ldmatrix`, `stmatrix` of 8 x 8 matrices of 16 bits."""
    count = op.choice({"x1": 1, "x2": 2, "x4": 4})
    if not op.has("m8n8") or op.type != "b16":
        raise op.unsupported()
    tr.uses_shared = True
    store = op.root == "stmatrix"
    place, vector = (op.operand(0), op.operand(1)) if store else (op.operand(1), op.operand(0))
    address = tr.address(place)
    if space_of(op) == "generic":
        address = f"({address} - (uint64_t)t.shared)"
    transposed = "true" if op.has("trans") else "false"
    if store:
        values = _registers(tr, vector, "v_", count)
        return f"{{ {values} ks::load_matrix_store<{count}>(t, {address}, {transposed}, v_, {tr.site()}); }}"
    sets = " ".join(tr.assign(x, "u32", f"v_[{n}]") for n, x in enumerate(tr.elements(vector)))
    return f"{{ uint32_t v_[{count}]; ks::load_matrix<{count}>(t, {address}, {transposed}, v_, {tr.site()}); {sets} }}"


def wmma(tr: FunctionTranslator, op: Op) -> str:
    """`wmma.load`, `wmma.store`, `wmma.mma`."""
    if op.has("load"):
        return _wmma_load(tr, op)
    if op.has("store"):
        return _wmma_store(tr, op)
    return _wmma_multiply(tr, op)


def _fragment(op: Op, shape: Shape) -> tuple[int, int]:
    """Return rows and columns of the matrix that a load or store names."""
    sizes = {
        "a": (shape.m, shape.k),
        "b": (shape.k, shape.n),
        "c": (shape.m, shape.n),
        "d": (shape.m, shape.n),
    }
    rows, columns = op.choice(sizes)
    return rows, columns


def _wmma_access(
    tr: FunctionTranslator, op: Op, kind: str, stride: Operand | None, place: Operand
) -> tuple[str, int]:
    """Return code that sets `p_` to the place of element `j_`, and the elements of a lane."""
    shape = Shape.of(op)
    rows, columns = _fragment(op, shape)
    row_major = op.has("row")
    leading = tr.value(stride, "u32") if stride is not None else f"{columns if row_major else rows}u"
    bytes_ = size(kind)
    checked = access(tr, op, place, bytes_, "write" if op.has("store") else "read")
    address = tr.address(place)
    count = rows * columns // 32
    where = (
        f"ks::wmma_place<{CPP[kind]}, {rows}, {columns}, {'true' if row_major else 'false'}>"
        f"(t.lane * {count} + j_, {leading}, {address})"
    )
    return checked.replace(f"(t, {address}, ", f"(t, {where}, ", 1), count


def _wmma_load(tr: FunctionTranslator, op: Op) -> str:
    kind = op.type
    stride = op.operand(2) if len(op.operands) > 2 else None
    place, count = _wmma_access(tr, op, kind, stride, op.operand(1))
    targets = tr.elements(op.operand(0))
    if kind in ("f64", "f32", "s32"):
        value = "uint64_t" if kind == "f64" else "uint32_t"
        loop = f"{value} v_[{count}]; for (unsigned j_ = 0; j_ < {count}; j_++) v_[j_] = ks::get<{value}>({place}, 0);"
        held = "u64" if kind == "f64" else "u32"
        sets = " ".join(tr.assign(x, held, f"v_[{n}]") for n, x in enumerate(targets) if n < count)
        return f"{{ {loop} ks::ks_meet(t, 0xffffffffu, 0, {tr.site()}); {sets} }}"
    room, bits_ = max(count * size(kind) // 4, len(targets)), 8 * size(kind)
    loop = (
        f"uint32_t v_[{room}] = {{0}}; for (unsigned j_ = 0; j_ < {count}; j_++) "
        f"v_[j_ * {bits_} / 32] |= (uint32_t)ks::get<{'uint16_t' if bits_ == 16 else 'uint8_t'}>({place}, 0) "
        f"<< (j_ * {bits_} % 32);"
    )
    if bits_ == 32:
        loop = f"uint32_t v_[{room}] = {{0}}; for (unsigned j_ = 0; j_ < {count}; j_++) v_[j_] = ks::get<uint32_t>({place}, 0);"
    sets = " ".join(tr.assign(x, "u32", f"v_[{n}]") for n, x in enumerate(targets))
    return f"{{ {loop} ks::ks_meet(t, 0xffffffffu, 0, {tr.site()}); {sets} }}"


def _wmma_store(tr: FunctionTranslator, op: Op) -> str:
    kind = op.type
    stride = op.operand(2) if len(op.operands) > 2 else None
    place, count = _wmma_access(tr, op, kind, stride, op.operand(0))
    values = tr.elements(op.operand(1))
    if kind == "f16":
        array = _registers(tr, op.operand(1), "v_", max(len(values), count // 2))
        return f"{{ {array} for (unsigned j_ = 0; j_ < {count}; j_++) ks::put<uint16_t>({place}, 0, (uint16_t)(v_[j_ / 2] >> 16 * (j_ % 2))); }}"
    listed = ", ".join(tr.value(x, kind) for x in values)
    return f"{{ {CPP[kind]} v_[{count}] = {{{listed}}}; for (unsigned j_ = 0; j_ < {count}; j_++) ks::put<{CPP[kind]}>({place}, 0, v_[j_]); }}"


def _wmma_multiply(tr: FunctionTranslator, op: Op) -> str:
    shape, types = Shape.of(op), op.types
    if len(types) == 2:
        result, added = types
        left = right = "f16"
    elif len(types) == 4:
        result, left, right, added = types
    else:
        raise op.unsupported()
    if left not in _ELEMENT or right not in _ELEMENT:
        raise op.unsupported()
    room = 16
    a, b = _registers(tr, op.operand(1), "a_", room), _registers(tr, op.operand(2), "b_", room)
    call = (
        f"ks::wmma_sums<{_ELEMENT[left]}, {_ELEMENT[right]}, {shape.m}, {shape.n}, {shape.k}>"
        f"(t, a_, b_, s_, {tr.site()});"
    )
    before = _sums_in(tr, op.operand(3), added)
    after = _sums_out(tr, op.operand(0), result, op.has("satfinite"))
    return f"{{ {a} {b} double s_[{shape.m * shape.n // 32}]; {before} {call} {after} }}"


HANDLERS: dict[str, Handler] = {
    "mma": multiply,
    "ldmatrix": load_matrix,
    "stmatrix": load_matrix,
    "wmma": wmma,
}
