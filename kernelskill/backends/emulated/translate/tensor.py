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


@dataclass(frozen=True, slots=True)
class Layout:
    """How the lanes of a warp hold a matrix; the fast dimension is that of neighbours in memory."""

    slow: int
    fast: int
    group: int
    """Neighbours that a lane holds, and moves together."""

    @property
    def text(self) -> str:
        """Its type in the generated code."""
        return f"ks::WmmaLayout<{self.slow}, {self.fast}, {self.group}>"

    @property
    def count(self) -> int:
        """Elements of a lane."""
        return self.slow * self.fast // 32


def _layout(op: Op, shape: Shape, part: str, kind: str, rows: bool) -> Layout:
    """Return how a warp holds one matrix of a product.

    Args:
        op: The instruction, for its refusal.
        shape: Of the product.
        part: `a`, `b`, `c` or `d`.
        kind: Type of the elements.
        rows: Whether rows are contiguous in memory; sums are held by rows in any case.
    """
    size_of_part = {"a": (shape.m, shape.k), "b": (shape.k, shape.n)}.get(part, (shape.m, shape.n))
    slow, fast = size_of_part if rows or part in "cd" else size_of_part[::-1]
    group = 2 if part in "cd" else max(1, 4 // size(kind))
    while group > 1 and fast % (4 * group):
        group //= 2
    if slow % 8 or fast % (4 * group):
        raise op.unsupported("shape")
    return Layout(slow, fast, group)


@dataclass(frozen=True, slots=True)
class _Moved:
    """What a load or store of a fragment moves."""

    layout: Layout
    together: int
    """Neighbours that one access moves."""
    place: str
    """Checked address of the access that begins with element `j_`."""


def _moved(tr: FunctionTranslator, op: Op, kind: str, stride: Operand | None, place: Operand) -> _Moved:
    shape = Shape.of(op)
    part = op.choice({"a": "a", "b": "b", "c": "c", "d": "d"})
    row_major = op.has("row")
    layout = _layout(op, shape, part, kind, row_major)
    strided = row_major or part in "ab"
    # Sums that are stored by columns have no neighbours; groups that fill no register are taken apart too.
    together = layout.group if strided and (part in "cd" or layout.group * size(kind) == 4) else 1
    leading = tr.value(stride, "u32") if stride is not None else f"{layout.fast if strided else layout.slow}u"
    checked = access(tr, op, place, size(kind) * together, "write" if op.has("store") else "read")
    address = tr.address(place)
    flag = "true" if strided else "false"
    where = f"ks::wmma_place<{CPP[kind]}, {layout.text}, {flag}>(t, j_, {leading}, {address})"
    return _Moved(layout, together, checked.replace(f"(t, {address}, ", f"(t, {where}, ", 1))


def _wmma_load(tr: FunctionTranslator, op: Op) -> str:
    kind, bits_ = op.type, 8 * size(op.type)
    stride = op.operand(2) if len(op.operands) > 2 else None
    moved = _moved(tr, op, kind, stride, op.operand(1))
    count, together, place = moved.layout.count, moved.together, moved.place
    targets = tr.elements(op.operand(0))
    wide = bits_ == 64
    room = count if wide else max(count * bits_ // 32, len(targets))
    held = "uint64_t" if wide else "uint32_t"
    unit = {8: "uint8_t", 16: "uint16_t", 32: "uint32_t", 64: "uint64_t"}[bits_]
    kept = f"v_[j_ + i_] = ks::get<{unit}>(a_, i_);"
    if bits_ < 32:
        kept = f"v_[(j_ + i_) * {bits_} / 32] |= (uint32_t)ks::get<{unit}>(a_, i_) << ((j_ + i_) * {bits_} % 32);"
    loop = (
        f"{held} v_[{room}] = {{0}}; for (unsigned j_ = 0; j_ < {count}; j_ += {together}) {{ "
        f"const uint8_t* a_ = {place}; for (unsigned i_ = 0; i_ < {together}; i_++) {kept} }}"
    )
    sets = " ".join(
        tr.assign(x, "u64" if wide else "u32", f"v_[{n}]") for n, x in enumerate(targets) if n < room
    )
    return f"{{ {loop} ks::ks_meet(t, 0xffffffffu, 0, {tr.site()}); {sets} }}"


def _wmma_store(tr: FunctionTranslator, op: Op) -> str:
    kind = op.type
    stride = op.operand(2) if len(op.operands) > 2 else None
    moved = _moved(tr, op, kind, stride, op.operand(0))
    count, together = moved.layout.count, moved.together
    values = tr.elements(op.operand(1))
    if kind == "f16":
        array = _registers(tr, op.operand(1), "v_", max(len(values), count // 2))
        put = "ks::put<uint16_t>(a_, i_, (uint16_t)(v_[(j_ + i_) / 2] >> 16 * ((j_ + i_) % 2)));"
    else:
        listed = ", ".join(tr.value(x, kind) for x in values)
        array = f"{CPP[kind]} v_[{count}] = {{{listed}}};"
        put = f"ks::put<{CPP[kind]}>(a_, i_, v_[j_ + i_]);"
    loop = (
        f"for (unsigned j_ = 0; j_ < {count}; j_ += {together}) {{ uint8_t* a_ = {moved.place}; "
        f"for (unsigned i_ = 0; i_ < {together}; i_++) {put} }}"
    )
    return f"{{ {array} {loop} }}"


def _wmma_multiply(tr: FunctionTranslator, op: Op) -> str:
    shape, types = Shape.of(op), op.types
    if len(types) == 2:
        result, added = types
        left = right = "f16"
    elif len(types) == 4:
        result, left, right, added = types
    else:
        raise op.unsupported()
    layouts = [part == "row" for part in op.modifiers if part in ("row", "col")]
    if left not in _ELEMENT or right not in _ELEMENT or len(layouts) != 2:
        raise op.unsupported()
    room = 16
    a, b = _registers(tr, op.operand(1), "a_", room), _registers(tr, op.operand(2), "b_", room)
    sides = []
    for part, kind, rows in (("a", left, layouts[0]), ("b", right, layouts[1])):
        sides += [_layout(op, shape, part, kind, rows).text, "true" if rows else "false"]
    sums = _layout(op, shape, "d", result, True).text
    call = (
        f"ks::wmma_sums<{_ELEMENT[left]}, {_ELEMENT[right]}, {shape.m}, {shape.n}, {shape.k}, "
        f"{', '.join(sides)}, {sums}>(t, a_, b_, s_, {tr.site()});"
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
