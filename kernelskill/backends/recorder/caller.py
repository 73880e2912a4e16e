"""Calls of a launcher by the C ABI: arguments as bytes, and the code that puts them into registers.

The code is C++ for the host compiler, which knows the ABI of the machine; the types in it are
stand-ins that are passed as the launcher's own are, so that no CUDA header is needed.
"""

from __future__ import annotations

import re
import struct

from kernelskill.schema.task import ElementType, Parameter, Signature

SLOT_BYTES = 32
"""Room for one argument; the same in `main.cpp`."""

_NATIVE = {
    "bool": ("bool", "?"),
    "int8": ("signed char", "b"),
    "uint8": ("unsigned char", "B"),
    "int16": ("short", "h"),
    "uint16": ("unsigned short", "H"),
    "int32": ("int", "i"),
    "uint32": ("unsigned int", "I"),
    "int64": ("long long", "q"),
    "uint64": ("unsigned long long", "Q"),
    "float32": ("float", "f"),
    "float64": ("double", "d"),
}
_SMALL_FLOATS = {1: "unsigned char", 2: "unsigned short"}
"""Half and narrower floats are classes around an unsigned integer."""
_STATED_ALIGNMENT = re.compile(r"_(16|32)a$")
_SCALAR_CLASS = re.compile(r"^(__half|__nv_\w+)$")
_MAX_ALIGNMENT = 16
_COPIED_BY_CODE = frozenset({"__half2", "__nv_bfloat162"})
"""Classes with a copy constructor of their own, which the C++ ABI passes by reference."""


class UnknownArgument(Exception):
    """A scalar parameter has a type that cannot be passed by value here."""


def caller_source(signature: Signature) -> str:
    """Return C++ that defines `kernelskill_call(function, slots, result)` for launchers of this signature.

    Raises:
        UnknownArgument: A parameter's type is unknown.
    """
    types = [_type_of(parameter, n) for n, parameter in enumerate(signature.parameters)]
    names = [name for name, _ in types]
    values = ", ".join(f"*(T{n}*)(slots + {n * SLOT_BYTES})" for n in range(len(names)))
    result = "void" if signature.returns == "void" else "int"
    store = "" if result == "void" else "*result = "
    return "\n".join(
        [
            *(definition for _, definition in types),
            f"typedef {result} Launcher({', '.join(f'T{n}' for n in range(len(names)))});",
            'extern "C" void kernelskill_call(void* function, unsigned char* slots, long long* result) {',
            "  (void)slots; (void)result;",
            f"  {store}((Launcher*)function)({values});",
            "}",
            "",
        ]
    )


def scalar_bytes(parameter: Parameter, value: int | float | bool | str) -> bytes:
    """Return the little-endian bytes of a scalar argument, as many as its type has.

    Raises:
        UnknownArgument: The value does not fit the parameter's type.
    """
    element = parameter.element
    if element is None:
        raise UnknownArgument(f"parameter {parameter.name!r} takes no value")
    if isinstance(value, str):
        data = bytes.fromhex(value.removeprefix("hex:"))
        if len(data) != element.size_bytes:
            raise UnknownArgument(
                f"parameter {parameter.name!r} of {element.size_bytes} bytes was given {len(data)} bytes"
            )
        return data
    if element.lanes != 1 or element.dtype not in _NATIVE:
        raise UnknownArgument(
            f"parameter {parameter.name!r} of type {element.name!r} was given a plain number"
        )
    try:
        return struct.pack(f"<{_NATIVE[element.dtype][1]}", value)
    except (struct.error, OverflowError) as error:
        raise UnknownArgument(f"{parameter.name} = {value!r} does not fit {element.name!r}") from error


def _type_of(parameter: Parameter, number: int) -> tuple[str, str]:
    if parameter.kind in ("pointer", "stream"):
        return "void*", f"typedef void* T{number};"
    element = parameter.element
    if element is None or element.size_bytes > SLOT_BYTES:
        raise UnknownArgument(
            f"parameter {parameter.name!r} ({parameter.declared}) cannot be passed by value"
        )
    lane = _lane(parameter, element)
    if _is_scalar(element):
        return lane, f"typedef {lane} T{number};"
    alignment = _alignment(element)
    copy = ""
    if element.name in _COPIED_BY_CODE:
        copy = (
            f" T{number}(const T{number}& o) {{ for (int i = 0; i < {element.lanes}; ++i) v[i] = o.v[i]; }}"
        )
    return lane, f"struct alignas({alignment}) T{number} {{ {lane} v[{element.lanes}];{copy} }};"


def _is_scalar(element: ElementType) -> bool:
    return element.lanes == 1 and element.dtype in _NATIVE and not element.name[-1:].isdigit()


def _lane(parameter: Parameter, element: ElementType) -> str:
    if element.dtype in _NATIVE:
        return _NATIVE[element.dtype][0]
    size = element.size_bytes // element.lanes
    if size not in _SMALL_FLOATS:
        raise UnknownArgument(
            f"parameter {parameter.name!r} of type {element.name!r} cannot be passed by value"
        )
    return _SMALL_FLOATS[size]


def _alignment(element: ElementType) -> int:
    """Return what CUDA's `vector_types.h` aligns the type to."""
    stated = _STATED_ALIGNMENT.search(element.name)
    if stated:
        return int(stated.group(1))
    lane_bytes = element.size_bytes // element.lanes
    if element.lanes in (1, 3) or (_SCALAR_CLASS.match(element.name) and element.lanes == 1):
        return lane_bytes
    return min(_MAX_ALIGNMENT, element.size_bytes)
