"""Make names that meet nothing in a file: no identifier, macro, keyword or CUDA builtin."""

from __future__ import annotations

from kernelskill.source.influence import BUILTINS
from kernelskill.source.masking import lexemes
from kernelskill.source.unit import SourceUnit

_RESERVED = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor xor_eq dim3 main size_t half float2 float3 float4 double2 int2 int3 int4 uint2 uint3 uint4
    make_float2 make_float4 make_int4 min max abs exp log sqrt pow
"""
_KEYWORDS = frozenset(_RESERVED.split())


class NameSource:
    """Hands out fresh names for one file; none twice."""

    def __init__(self, unit: SourceUnit) -> None:
        self._taken = {
            unit.data[token.start : token.end].decode()
            for token in lexemes(unit.data)
            if token.kind == "word"
        }
        for macro in unit.macros:
            self._taken |= {
                macro.possible.encode()[token.start : token.end].decode()
                for token in lexemes(macro.possible.encode())
                if token.kind == "word"
            }
        self._taken |= _KEYWORDS | BUILTINS

    def is_free(self, name: str) -> bool:
        """Whether a name meets nothing in the file."""
        return name.isidentifier() and name.isascii() and name not in self._taken

    def fresh(self, base: str) -> str:
        """Return `base`, or `base_2`, `base_3`, ... where it is taken."""
        stem = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in base) or "value"
        stem = f"v{stem}" if stem[0].isdigit() else stem
        while "__" in stem:
            stem = stem.replace("__", "_")
        name, number = stem, 2
        while name in self._taken:
            name, number = f"{stem}_{number}", number + 1
        self._taken.add(name)
        return name


def fresh_name(unit: SourceUnit, base: str) -> str:
    """Return a name like `base` that meets nothing in the file."""
    return NameSource(unit).fresh(base)
