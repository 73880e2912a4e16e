"""C types of a lifted kernel: one spelling a type, sizes, and the conversions of arithmetic."""

from __future__ import annotations

import numpy as np

_INTEGERS = {
    # type: (rank, bits, is signed)
    "bool": (0, 8, False),
    "char": (1, 8, True),
    "unsigned char": (1, 8, False),
    "short": (2, 16, True),
    "unsigned short": (2, 16, False),
    "int": (3, 32, True),
    "unsigned": (3, 32, False),
    "long long": (4, 64, True),
    "unsigned long long": (4, 64, False),
}
WIDEST_BYTES = 16
"""Of one access of a thread."""
_FLOATS = {"half": 16, "bfloat16": 16, "float": 32, "double": 64}
_SPELLINGS = {
    "unsigned int": "unsigned",
    "uint": "unsigned",
    "signed": "int",
    "signed int": "int",
    "int32_t": "int",
    "uint32_t": "unsigned",
    "long": "long long",
    "long int": "long long",
    "signed long": "long long",
    "long long int": "long long",
    "signed long long": "long long",
    "int64_t": "long long",
    "ptrdiff_t": "long long",
    "ssize_t": "long long",
    "unsigned long": "unsigned long long",
    "unsigned long int": "unsigned long long",
    "unsigned long long int": "unsigned long long",
    "uint64_t": "unsigned long long",
    "size_t": "unsigned long long",
    "uchar": "unsigned char",
    "uint8_t": "unsigned char",
    "int8_t": "char",
    "signed char": "char",
    "ushort": "unsigned short",
    "uint16_t": "unsigned short",
    "int16_t": "short",
    "short int": "short",
    "unsigned short int": "unsigned short",
    "__half": "half",
    "__nv_bfloat16": "bfloat16",
    "nv_bfloat16": "bfloat16",
}
_QUALIFIERS = frozenset(
    {"const", "volatile", "static", "constexpr", "register", "extern", "inline", "__restrict__", "__restrict"}
)
_NUMPY = {
    "bool": np.dtype(np.bool_),
    "char": np.dtype(np.int8),
    "unsigned char": np.dtype(np.uint8),
    "short": np.dtype(np.int16),
    "unsigned short": np.dtype(np.uint16),
    "int": np.dtype(np.int32),
    "unsigned": np.dtype(np.uint32),
    "long long": np.dtype(np.int64),
    "unsigned long long": np.dtype(np.uint64),
    "half": np.dtype(np.float16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
_CUDA_NAMES = {"half": "__half", "bfloat16": "__nv_bfloat16"}


def canonical(text: str) -> str:
    """Return the one spelling of a scalar type without qualifiers; unknown types as they are.

    On the platforms of CUDA with 64-bit `long`, `long` and `long long` are one type.
    """
    words = text.replace("std::", "").replace("::", " ").replace("&", " ").split()
    plain = " ".join(word for word in words if word not in _QUALIFIERS)
    return _SPELLINGS.get(plain, plain)


def is_integer(kind: str) -> bool:
    """Whether a canonical type is an integer, bool included."""
    return kind in _INTEGERS


def is_float(kind: str) -> bool:
    """Whether a canonical type is half, bfloat16, float or double."""
    return kind in _FLOATS


def is_signed(kind: str) -> bool:
    """Whether a canonical integer type is signed."""
    return _INTEGERS[kind][2]


def is_wide(kind: str) -> bool:
    """Whether a canonical type is an integer of 64 bits."""
    return kind in _INTEGERS and _INTEGERS[kind][1] == 64


def is_known(kind: str) -> bool:
    """Whether a canonical type is one that an algorithm can hold."""
    return kind in _INTEGERS or kind in _FLOATS


def size_of(kind: str) -> int:
    """Return the bytes of a value of a known type."""
    return (_INTEGERS[kind][1] if kind in _INTEGERS else _FLOATS[kind]) // 8


def promoted(kind: str) -> str:
    """Return the type of an operand after integral promotion."""
    return "int" if kind in _INTEGERS and _INTEGERS[kind][0] < 3 else kind


def joined(first: str, second: str) -> str:
    """Return the type of an arithmetic operation on two operands (the usual arithmetic conversions)."""
    a, b = promoted(first), promoted(second)
    for kind in ("double", "float", "bfloat16", "half"):
        if kind in (a, b):
            return kind
    if a == b:
        return a
    (rank_a, bits_a, signed_a), (rank_b, bits_b, _) = _INTEGERS[a], _INTEGERS[b]
    if rank_a != rank_b:
        return a if bits_a > bits_b else b
    return a if not signed_a else b


def numpy_type(kind: str) -> np.dtype[np.generic]:
    """Return the numpy type that holds values of a known type.

    Raises:
        KeyError: numpy has none (bfloat16).
    """
    return _NUMPY[kind]


def cuda_name(kind: str) -> str:
    """Return the spelling of a canonical type in CUDA source."""
    return _CUDA_NAMES.get(kind, kind)
