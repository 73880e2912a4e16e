"""Names that can be parameters of a C function and of a Python function alike."""

from __future__ import annotations

import keyword
import re

_RESERVED = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "and_eq",
        "asm",
        "auto",
        "bitand",
        "bitor",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "compl",
        "const",
        "constexpr",
        "const_cast",
        "continue",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "dynamic_cast",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "not_eq",
        "nullptr",
        "operator",
        "or",
        "or_eq",
        "private",
        "protected",
        "public",
        "register",
        "reinterpret_cast",
        "requires",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "static_cast",
        "struct",
        "switch",
        "template",
        "this",
        "thread_local",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "wchar_t",
        "while",
        "xor",
        "xor_eq",
        "threadIdx",
        "blockIdx",
        "blockDim",
        "gridDim",
        "warpSize",
        "half",
        "dim3",
        "rng",
        "main",
        "linux",
        "unix",
    ]
)


def free_name(wanted: str, taken: set[str]) -> str:
    """Return a name like the one wanted that is nobody else's, and take it."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", wanted) if wanted.isascii() else ""
    name = name if name.strip("_0123456789") else f"value_{name.strip('_')}".rstrip("_")
    name = f"v{name}" if name[0].isdigit() else name.lstrip("_")
    while name in taken or name in _RESERVED or keyword.iskeyword(name):
        name += "_"
    taken.add(name)
    return name


def is_usable(name: str) -> bool:
    """Return whether a name can stand as it is."""
    return name.isascii() and free_name(name, set()) == name


def function_name(stem: str) -> str:
    """Return a launcher's name for a file of this name."""
    words = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")
    return free_name(f"{words.lstrip('0123456789_')}_forward", set())
