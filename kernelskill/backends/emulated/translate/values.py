"""Operands to C++ expressions, results to C++ assignments."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.backends.emulated.ptx.syntax import (
    Float,
    Integer,
    Name,
    Negated,
    Operand,
    Place,
    Sum,
    Vector,
)
from kernelskill.backends.emulated.translate.refusal import Unsupported
from kernelskill.backends.emulated.translate.types import CPP, is_float, width

SPECIAL = {
    **{f"%tid.{axis}": f"t.tid[{n}]" for n, axis in enumerate("xyz")},
    **{f"%ntid.{axis}": f"t.block->ntid[{n}]" for n, axis in enumerate("xyz")},
    **{f"%ctaid.{axis}": f"t.block->ctaid[{n}]" for n, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": f"t.block->nctaid[{n}]" for n, axis in enumerate("xyz")},
    **{f"%cluster_ctaid.{axis}": "0u" for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": "1u" for axis in "xyz"},
    **{f"%clusterid.{axis}": f"t.block->ctaid[{n}]" for n, axis in enumerate("xyz")},
    **{f"%nclusterid.{axis}": f"t.block->nctaid[{n}]" for n, axis in enumerate("xyz")},
    "%cluster_ctarank": "0u",
    "%cluster_nctarank": "1u",
    "%is_explicit_cluster": "false",
    "%laneid": "t.lane",
    "%warpid": "t.warp",
    "%nwarpid": "64u",
    "%smid": "t.block->sm",
    "%nsmid": "132u",
    "%gridid": "1ull",
    "%lanemask_eq": "(1u << t.lane)",
    "%lanemask_lt": "((1u << t.lane) - 1u)",
    "%lanemask_le": "(0xffffffffu >> (31u - t.lane))",
    "%lanemask_gt": "~(0xffffffffu >> (31u - t.lane))",
    "%lanemask_ge": "~((1u << t.lane) - 1u)",
    "%clock": "(uint32_t)ks::ks_clock()",
    "%clock_hi": "(uint32_t)(ks::ks_clock() >> 32)",
    "%clock64": "ks::ks_clock()",
    "%globaltimer": "ks::ks_clock()",
    "%globaltimer_lo": "(uint32_t)ks::ks_clock()",
    "%globaltimer_hi": "(uint32_t)(ks::ks_clock() >> 32)",
    "%dynamic_smem_size": "t.block->dynamic_shared",
    "%total_smem_size": "(uint32_t)t.shared_size",
    "%aggr_smem_size": "(uint32_t)t.shared_size",
    "%envreg1": "(uint32_t)(t.block->workspace >> 32)",
    "%envreg2": "(uint32_t)t.block->workspace",
    "WARP_SZ": "32u",
}


@dataclass(frozen=True, slots=True)
class Register:
    """A register: its C++ variable and the PTX type that it is held as."""

    variable: str
    type: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter or function: a C++ expression for its address."""

    address: str
    space: str


Meaning = Register | Symbol


def literal(value: int, kind: str) -> str:
    """Return an integer as a C++ literal of the type's unsigned form."""
    bits = width(kind)
    suffix = "ull" if bits == 64 else "u"
    return f"({CPP[f'u{bits}']}){value & ((1 << bits) - 1):#x}{suffix}"


class Values:
    """Names in scope; the base of a function's translation."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Meaning]] = [{}]

    def meaning(self, name: str) -> Meaning:
        """Return what a name stands for.

        Raises:
            Unsupported: The name is unknown.
        """
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise Unsupported(f"name {name}")

    def value(self, operand: Operand, kind: str) -> str:
        """Return an operand as an expression of C++ type `CPP[kind]`.

        Raises:
            Unsupported: The operand has a form that is not known.
        """
        match operand:
            case Name(text):
                return self._named(text, kind)
            case Negated(Name(text)):
                return f"(!{self._named(text, 'pred')})"
            case Integer(value):
                return self._integer(value, kind)
            case Float(bits, bits_wide):
                return self._float(bits, bits_wide, kind)
            case Sum(Name(text), offset):
                return self._cast(f"({self._address(text)} + {literal(offset, 'u64')})", "u64", kind)
            case _:
                raise Unsupported(f"operand {operand!r}")

    def address(self, place: Operand) -> str:
        """Return a bracketed operand as a 64-bit address expression."""
        if not isinstance(place, Place):
            raise Unsupported(f"address {place!r}")
        if place.base is None:
            return literal(place.offset, "u64")
        base = self._named(place.base.text, "u64")
        return f"({base} + {literal(place.offset, 'u64')})" if place.offset else base

    def symbol(self, place: Operand) -> Symbol | None:
        """Return the variable that a bracketed operand names, None for a register."""
        if isinstance(place, Place) and place.base is not None and place.base.text not in SPECIAL:
            meaning = self.meaning(place.base.text)
            return meaning if isinstance(meaning, Symbol) else None
        return None

    def assign(self, target: Operand, kind: str, expression: str) -> str:
        """Return the statement that sets a register to an expression of type `CPP[kind]`."""
        if not isinstance(target, Name):
            raise Unsupported(f"destination {target!r}")
        if target.text == "_":
            return f"(void)({expression});"
        register = self.meaning(target.text)
        if not isinstance(register, Register):
            raise Unsupported(f"destination {target.text}")
        return f"{register.variable} = {self._cast(expression, kind, register.type)};"

    def elements(self, operand: Operand) -> tuple[Operand, ...]:
        """Return the elements of a vector operand, or the operand alone."""
        return operand.elements if isinstance(operand, Vector) else (operand,)

    def _named(self, text: str, kind: str) -> str:
        if text in SPECIAL:
            source = "u64" if "64" in text or text in ("%globaltimer", "%gridid") else "u32"
            return self._cast(SPECIAL[text], source, kind)
        meaning = self.meaning(text)
        if isinstance(meaning, Register):
            return self._cast(meaning.variable, meaning.type, kind)
        return self._cast(meaning.address, "u64", kind)

    def _address(self, text: str) -> str:
        meaning = self.meaning(text)
        return meaning.address if isinstance(meaning, Symbol) else self._named(text, "u64")

    def _integer(self, value: int, kind: str) -> str:
        if kind == "pred":
            return "true" if value else "false"
        if is_float(kind):
            return f"ks::bits<{CPP[kind]}>({literal(value, kind)})"
        return f"({CPP[kind]}){literal(value, kind)}"

    def _float(self, bits: int, bits_wide: int, kind: str) -> str:
        raw = literal(bits, f"u{bits_wide}")
        if is_float(kind) and width(kind) != bits_wide:
            return f"({CPP[kind]})ks::bits<{'double' if bits_wide == 64 else 'float'}>({raw})"
        if is_float(kind):
            return f"ks::bits<{CPP[kind]}>({raw})"
        return f"({CPP[kind]}){raw}"

    def _cast(self, expression: str, source: str, target: str) -> str:
        """Reinterpret where one side is floating, else convert as C++ does between integers."""
        have, want = CPP[source], CPP[target]
        if have == want:
            return expression
        if target == "pred":
            return f"(({expression}) != 0)"
        if is_float(source) == is_float(target) and not is_float(source):
            return f"(({want})({expression}))"
        if is_float(source) and is_float(target):
            return f"ks::reuse<{want}>({expression})"
        if is_float(source):
            return f"(({want})ks::bits<{CPP[f'u{width(source)}']}>({expression}))"
        return f"ks::bits<{want}>(({CPP[f'u{width(target)}']})({expression}))"
