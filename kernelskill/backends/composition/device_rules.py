"""What machine code proves: opcodes of PTX with their lines, and of SASS.

Only opcodes that the exact functions of the toolkit never use are evidence. `ex2.approx`, `lg2.approx`,
`rcp.approx`, `rsqrt.approx` and `div.approx` (MUFU.EX2, .LG2, .RCP, .RSQ) stand inside `expf`, `cbrtf`, `powf`,
`rsqrtf` or `fmodf` too and decide nothing; the source does. In SASS, `HFMA2.MMA R, -RZ, RZ, c, c` only loads
a constant and `HADD2.F32` only widens a half, so neither is arithmetic in half precision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.schema.build import Construct
from kernelskill.schema.task import Allowance

HALF = "half"
BFLOAT = "bfloat16"
EIGHT_BIT_FLOAT = "8-bit floating point"
TF32 = "TF32"
INTEGER_PRODUCTS = "8-bit integer products"
SINGLE = "float arithmetic"
DOUBLE = "double arithmetic"

_TYPES = {"f16": HALF, "f16x2": HALF, "bf16": BFLOAT, "bf16x2": BFLOAT, "tf32": TF32}
_INTEGERS = frozenset(["s8", "u8", "s4", "u4", "b1", "kind::i8"])
_EIGHT_BIT = re.compile(r"e[2345]m[1235](?:x\d)?|ue8m0x2|kind::(?:f8f6f4|mxf\w+)")
_PTX = re.compile(r"(?<![\w.%$])(?P<opcode>[a-z][a-z0-9_]*(?:\.[a-z]\w*(?:::\w+)*|\.\d\w*|::\w+)+)(?=[\s;])")
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*?inlined_at\s+(\d+)\s+(\d+))?", re.MULTILINE)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_BROKEN_OPCODE = re.compile(
    r"(?<=[a-z0-9])\s+\.(?!(?:loc|file|pragma|reg|param|section|visible|func)\b)(?=[a-z])"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FAST = (
    (re.compile(r"(?:sin|cos)\.approx(?:\.ftz)?\.f32"), "fast sine"),
    (re.compile(r"tanh\.approx\.f32"), "fast hyperbolic tangent"),
    (re.compile(r"sqrt\.approx(?:\.ftz)?\.f32"), "fast square root"),
    (re.compile(r"div\.full(?:\.ftz)?\.f32"), "fast division"),
    (re.compile(r"(?:add|sub|mul|mad|fma)(?:\.r[nzmp]i?)?\.ftz(?:\.sat)?\.f32"), "flushing of denormals"),
)
_ARITHMETIC = frozenset(["add", "sub", "mul", "mad", "fma", "div", "ex2", "tanh", "atom", "red", "multimem"])
_PRODUCTS = frozenset(["mma", "wmma", "wgmma", "tcgen05"])
_SASS = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][A-Z0-9_]*(?:\.\w+)*)(?P<operands>[^;]*);"
)
_SASS_PRODUCTS = re.compile(r"(?:[HIBQO]|HG|IG|QG|BG|UTC[A-Z0-9]*?)MMA")


@dataclass(frozen=True)
class _Meaning:
    family: str
    allowance: Allowance
    words: str
    harmless: bool = False


def ptx_constructs(ptx: str) -> Iterator[Construct]:
    """Yield what PTX shows, the first place of each family.

    Args:
        ptx: With the candidate's own paths in `.file`, relative to its root.
    """
    text = joined_opcodes(ptx)
    seen: set[tuple[str, bool]] = set()
    for match in _PTX.finditer(text):
        for meaning in _ptx_meanings(match["opcode"]):
            if (meaning.family, meaning.harmless) not in seen:
                seen.add((meaning.family, meaning.harmless))
                file, line = _place(text, match.start())
                yield _construct(meaning, match["opcode"], "ptx", file, line)


def sass_constructs(sass: str) -> Iterator[Construct]:
    """Yield what the disassembly of `nvdisasm` shows, each family once."""
    seen: set[str] = set()
    for match in _SASS.finditer(sass):
        meaning = _sass_meaning(match["opcode"], match["operands"])
        if meaning is not None and meaning.family not in seen:
            seen.add(meaning.family)
            yield _construct(meaning, match["opcode"], "sass", "", 0)


def joined_opcodes(ptx: str) -> str:
    """Return PTX without comments and without the blanks that an opcode may have before its dots."""
    text = _COMMENT.sub(lambda found: "\n" if "\n" in found.group() else " ", ptx)
    return _BROKEN_OPCODE.sub(".", text)


def reads_family(dtype: str) -> str:
    """Return the family of data that a pointer of this NumPy type holds, empty for ordinary types."""
    if dtype.startswith(("float8", "float6_", "float4_")):
        return data_of(EIGHT_BIT_FLOAT)
    if dtype in ("int8", "uint8", "int4", "uint4"):
        return INTEGER_PRODUCTS
    return {"float16": data_of(HALF), "bfloat16": data_of(BFLOAT)}.get(dtype, "")


def data_of(kind: str) -> str:
    """Return the family of values that are kept in a type."""
    return f"{kind} values"


def arithmetic_of(kind: str) -> str:
    """Return the family of computations in a type."""
    return f"{kind} arithmetic"


def _ptx_meanings(opcode: str) -> Iterator[_Meaning]:
    parts = opcode.split(".")
    for pattern, family in _FAST:
        if pattern.fullmatch(opcode):
            yield _Meaning(family, Allowance.FAST_MATH, "a hardware approximation")
    if parts[0] in _PRODUCTS:
        if parts[0] == "mma" or parts[1].startswith("mma"):
            yield from _products(parts)
    elif parts[0] in ("dp4a", "dp2a"):
        yield _Meaning(INTEGER_PRODUCTS, Allowance.LOWER_PRECISION, INTEGER_PRODUCTS)
    elif parts[0] == "cvt" and len(parts) >= 3:
        yield from _conversion(parts[-2], parts[-1])
    elif parts[0] in _ARITHMETIC:
        yield from _arithmetic(parts)


def _arithmetic(parts: list[str]) -> Iterator[_Meaning]:
    kinds = {_kind(part) for part in parts} - {""}
    for kind in sorted(kinds):
        yield _lower(arithmetic_of(kind), f"computes in {kind}")
    if not kinds and parts[0] in ("add", "sub", "fma", "div") and parts[-1] in ("f32", "f64"):
        family = SINGLE if parts[-1] == "f32" else DOUBLE
        yield _Meaning(family, Allowance.LOWER_PRECISION, f"computes in {family.split()[0]}", harmless=True)


def _conversion(target: str, source: str) -> Iterator[_Meaning]:
    kind, given = _kind(target), _kind(source)
    widens = given == EIGHT_BIT_FLOAT and kind in (HALF, BFLOAT)
    if kind and kind != given and not widens:
        yield _lower(data_of(kind), f"rounds values to {kind}")
    elif given:
        yield _Meaning(data_of(given), Allowance.LOWER_PRECISION, f"reads {given}", harmless=True)


def _products(parts: list[str]) -> Iterator[_Meaning]:
    """Tensor cores: sums in float of exact products need only data that the original has in that type."""
    types = [part for part in parts if _kind(part) or part in _INTEGERS or part in ("f32", "s32", "f64")]
    types += (
        ["tf32"] if "kind::tf32" in "::".join(parts) else ["f16"] if "kind::f16" in "::".join(parts) else []
    )
    kinds = {_kind(part) for part in types} - {""}
    if any(part in _INTEGERS for part in types) or "kind::i8" in "::".join(parts):
        yield _lower(INTEGER_PRODUCTS, "multiplies 8-bit integers on tensor cores")
    if types and types[0] == "f16" and parts[0] != "tcgen05":
        yield _lower(arithmetic_of(HALF), "sums in half precision on tensor cores")
    for kind in sorted(kinds):
        yield _lower(data_of(kind), f"multiplies {kind} on tensor cores")
    if not kinds and parts[0] == "wmma" and "f32" in types:
        yield _lower(data_of(HALF), "multiplies half on tensor cores")


def _sass_meaning(opcode: str, operands: str) -> _Meaning | None:
    parts = opcode.split(".")
    if _SASS_PRODUCTS.fullmatch(parts[0]):
        return _sass_products(parts)
    bfloat = any(part.startswith("BF16") for part in parts)
    if parts[0] in ("HFMA2", "HADD2", "HMUL2") and "RZ" not in operands and "F32" not in parts:
        kind = BFLOAT if bfloat else HALF
        return _lower(arithmetic_of(kind), f"computes in {kind}")
    if parts[0] == "MUFU" and parts[-1] in ("SIN", "COS", "TANH"):
        family = "fast hyperbolic tangent" if parts[-1] == "TANH" else "fast sine"
        return _Meaning(family, Allowance.FAST_MATH, "a hardware approximation")
    if parts[0] in ("F2F", "F2FP") and len(parts) > 1:
        return _sass_conversion(parts)
    return None


def _sass_conversion(parts: list[str]) -> _Meaning | None:
    kept = [part for part in parts[1:] if part not in ("SATFINITE", "RELU")]
    kind = _kind(kept[0].lower().removesuffix("_v2")) if kept else ""
    return _lower(data_of(kind), f"rounds values to {kind}") if kind else None


def _sass_products(parts: list[str]) -> _Meaning | None:
    kinds = {_kind(part.lower()) for part in parts[1:]} - {""}
    if parts[0] in ("IMMA", "BMMA", "IGMMA", "BGMMA") or "I8" in parts:
        return _lower(INTEGER_PRODUCTS, "multiplies 8-bit integers on tensor cores")
    if "QG" in parts[0] or parts[0] in ("QMMA", "OMMA"):
        kinds = {EIGHT_BIT_FLOAT}
    kind = next((kind for kind in (TF32, EIGHT_BIT_FLOAT, BFLOAT) if kind in kinds), HALF)
    if kind == HALF and "F16" in parts:
        return _lower(arithmetic_of(HALF), "sums in half precision on tensor cores")
    return _lower(data_of(kind), f"multiplies {kind} on tensor cores")


def _kind(part: str) -> str:
    return EIGHT_BIT_FLOAT if _EIGHT_BIT.fullmatch(part) else _TYPES.get(part, "")


def _lower(family: str, words: str) -> _Meaning:
    return _Meaning(family, Allowance.LOWER_PRECISION, words)


def _place(text: str, position: int) -> tuple[str, int]:
    """Return the candidate's file and line of an instruction, looking through what was inlined into it."""
    start = max(text.rfind("\n.visible", 0, position), text.rfind("\n.func", 0, position), 0)
    files = {found[1]: found[2] for found in _FILE.finditer(text)}
    for before in reversed(list(_LOCATION.finditer(text, start, position))):
        for file, line in ((before[1], before[2]), (before[3], before[4])):
            path = files.get(file or "", "")
            if path and not path.startswith("/"):
                return path, int(line)
    return "", 0


def _construct(meaning: _Meaning, opcode: str, found_in: str, file: str, line: int) -> Construct:
    does = f"{meaning.words} ({opcode})"
    if meaning.allowance is Allowance.FAST_MATH:
        does = f"uses {opcode}, {meaning.words}"
    return Construct(
        family=meaning.family,
        allowance=meaning.allowance,
        shown=opcode,
        does=does,
        found_in="ptx" if found_in == "ptx" else "sass",
        file=file,
        line=line,
        harmless=meaning.harmless,
    )
