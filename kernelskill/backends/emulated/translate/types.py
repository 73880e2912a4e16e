"""PTX types and what they are in C++."""

from __future__ import annotations

from kernelskill.backends.emulated.translate.refusal import Unsupported

CPP = {
    "pred": "bool",
    "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t",
    "b16": "uint16_t", "u16": "uint16_t", "s16": "int16_t", "f16": "uint16_t", "bf16": "uint16_t",
    "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t", "f32": "float", "tf32": "uint32_t",
    "f16x2": "uint32_t", "bf16x2": "uint32_t", "u16x2": "uint32_t", "s16x2": "uint32_t",
    "b64": "uint64_t", "u64": "uint64_t", "s64": "int64_t", "f64": "double", "f32x2": "uint64_t",
    "b128": "unsigned __int128",
    "e4m3x2": "uint16_t", "e5m2x2": "uint16_t",
}  # fmt: skip
"""PTX type to the C++ type that holds it; half types are held as their bits."""

_PACKED_WIDTH = {
    "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "f32x2": 64, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16,
}  # fmt: skip


def is_type(text: str) -> bool:
    """Whether a part of an opcode is a type."""
    return text in CPP


def width(kind: str) -> int:
    """Return the width of a type in bits; a predicate has 8.

    Raises:
        Unsupported: The type is unknown, as that of a texture.
    """
    if kind not in CPP:
        raise Unsupported(f"type .{kind}")
    if kind == "pred":
        return 8
    if kind in _PACKED_WIDTH:
        return _PACKED_WIDTH[kind]
    return int("".join(c for c in kind if c.isdigit()))


def size(kind: str) -> int:
    """Return the size of a type in bytes."""
    return width(kind) // 8


def is_float(kind: str) -> bool:
    """Whether C++ holds the type in a floating-point variable."""
    return kind in ("f32", "f64")


def is_half(kind: str) -> bool:
    """Whether it is a half type or a pair of them."""
    return kind in ("f16", "bf16", "f16x2", "bf16x2")


def unsigned(kind: str) -> str:
    """Return the unsigned type of the same width."""
    return f"u{width(kind)}"


def signed(kind: str) -> str:
    """Return the signed type of the same width."""
    return f"s{width(kind)}"
