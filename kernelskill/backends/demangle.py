"""C++ names as people write them, by the demangler of the C++ library."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools

_SUCCESS = 0


@functools.cache
def demangle(name: str) -> str:
    """Return the demangled name with its parameter list; `name` itself where that is not possible."""
    library = _library()
    if library is None or not name.startswith("_Z"):
        return name
    status = ctypes.c_int(-1)
    pointer = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value != _SUCCESS or not pointer:
        return name
    try:
        return ctypes.string_at(pointer).decode(errors="replace")
    finally:
        _libc().free(pointer)


def display_name(name: str) -> str:
    """Return the demangled name without return type and parameter list, for example `mm<16>`.

    Equal to `name` where it cannot be demangled.
    """
    full = demangle(name).replace("(anonymous namespace)::", "")
    start, depth = 0, 0
    for position, letter in enumerate(full):
        if letter in "<>":
            depth += 1 if letter == "<" else -1
        elif letter == "(" and depth == 0:
            return full[start:position]
        elif letter == " " and depth == 0:
            start = position + 1
    return full if start == 0 else full[start:]


@functools.cache
def _library() -> ctypes.CDLL | None:
    for name in ("libstdc++.so.6", ctypes.util.find_library("stdc++"), ctypes.util.find_library("c++abi")):
        if name is None:
            continue
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.__cxa_demangle.restype = ctypes.c_void_p
        return library
    return None


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    return libc
