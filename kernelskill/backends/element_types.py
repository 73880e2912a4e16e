"""The scalar and vector types of C that a launcher's parameters may have, with their NumPy lanes."""

from __future__ import annotations

from kernelskill.schema.task import ElementType

_SCALARS = {
    "bool": ("bool", 1),
    "char": ("int8", 1),
    "signed char": ("int8", 1),
    "unsigned char": ("uint8", 1),
    "short": ("int16", 2),
    "unsigned short": ("uint16", 2),
    "int": ("int32", 4),
    "unsigned int": ("uint32", 4),
    "long": ("int64", 8),
    "unsigned long": ("uint64", 8),
    "long long": ("int64", 8),
    "unsigned long long": ("uint64", 8),
    "float": ("float32", 4),
    "double": ("float64", 8),
}
_STRUCTS = {
    "__half": ("float16", 1, 2),
    "__half2": ("float16", 2, 4),
    "__nv_bfloat16": ("bfloat16", 1, 2),
    "__nv_bfloat162": ("bfloat16", 2, 4),
    "__nv_fp8_e4m3": ("float8_e4m3fn", 1, 1),
    "__nv_fp8_e5m2": ("float8_e5m2", 1, 1),
    "double4_16a": ("float64", 4, 32),
    "double4_32a": ("float64", 4, 32),
    "long4_16a": ("int64", 4, 32),
    "long4_32a": ("int64", 4, 32),
    "ulong4_16a": ("uint64", 4, 32),
    "ulong4_32a": ("uint64", 4, 32),
    "longlong4_16a": ("int64", 4, 32),
    "longlong4_32a": ("int64", 4, 32),
    "ulonglong4_16a": ("uint64", 4, 32),
    "ulonglong4_32a": ("uint64", 4, 32),
}
_VECTORS = {
    "char": "char",
    "uchar": "unsigned char",
    "short": "short",
    "ushort": "unsigned short",
    "int": "int",
    "uint": "unsigned int",
    "long": "long",
    "ulong": "unsigned long",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
    "float": "float",
    "double": "double",
}

VOID = ElementType(name="void", dtype="uint8", size_bytes=1)
DECLARED_STRUCTS = tuple(_STRUCTS)
"""Structs that only some headers or releases define; declaring them again is harmless."""


def _all() -> tuple[ElementType, ...]:
    found = [VOID]
    found += [ElementType(name=n, dtype=dtype, size_bytes=size) for n, (dtype, size) in _SCALARS.items()]
    found += [ElementType(name=n, dtype=d, lanes=k, size_bytes=s) for n, (d, k, s) in _STRUCTS.items()]
    for prefix, lane in _VECTORS.items():
        dtype, size = _SCALARS[lane]
        found += [
            ElementType(name=f"{prefix}{lanes}", dtype=dtype, lanes=lanes, size_bytes=lanes * size)
            for lanes in (1, 2, 3, 4)
        ]
    return tuple(found)


ELEMENT_TYPES = _all()
"""All of them; the first is `void`."""


def element_type(name: str) -> ElementType | None:
    """Return the type of that canonical C name, or None."""
    return next((element for element in ELEMENT_TYPES if element.name == name), None)
