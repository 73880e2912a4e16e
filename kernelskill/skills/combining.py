"""Ways to combine the values of many threads: their C text, neutral elements and atomics."""

from __future__ import annotations

from dataclasses import dataclass

_LOWEST = {
    "int": "-2147483647 - 1",
    "unsigned": "0u",
    "long": "-9223372036854775807L - 1",
    "unsigned long": "0ul",
    "long long": "-9223372036854775807LL - 1",
    "unsigned long long": "0ull",
}
_HIGHEST = {
    "int": "2147483647",
    "unsigned": "4294967295u",
    "long": "9223372036854775807L",
    "unsigned long": "18446744073709551615ul",
    "long long": "9223372036854775807LL",
    "unsigned long long": "18446744073709551615ull",
}
_ZERO = {
    "float": "0.0f",
    "double": "0.0",
    "int": "0",
    "unsigned": "0u",
    "long": "0L",
    "unsigned long": "0ul",
    "long long": "0LL",
    "unsigned long long": "0ull",
}
_ONES = {"unsigned": "~0u", "unsigned long": "~0ul", "unsigned long long": "~0ull"}
_WORDS = {"sum": "Adds up", "max": "Takes the largest of", "min": "Takes the smallest of"}


@dataclass(frozen=True)
class Combining:
    """One commutative operation on one type."""

    name: str
    """`sum`, `max`, `min`, `and`, `or` or `xor`."""
    kind: str
    """Plain type of the values."""

    @property
    def neutral(self) -> str:
        """C text of the value that changes nothing."""
        if self.name == "max":
            return _LOWEST[self.kind]
        if self.name == "min":
            return _HIGHEST[self.kind]
        if self.name == "and":
            return _ONES.get(self.kind, "-1")
        return _ZERO[self.kind]

    @property
    def is_reordering(self) -> bool:
        """Whether another order gives other bits."""
        return self.kind in ("float", "double")

    @property
    def sentence(self) -> str:
        """What it does with values, for a comment."""
        return _WORDS.get(self.name, f"Takes the bitwise {self.name} of")

    def update(self, target: str, value: str) -> str:
        """Return the statement that combines a value into a variable."""
        sign = {"sum": "+", "and": "&", "or": "|", "xor": "^"}.get(self.name)
        return f"{target} {sign}= {value};" if sign else f"{target} = {self.name}({target}, {value});"


ATOMICS = {
    "atomicAdd": "sum",
    "atomicSub": "sum",
    "atomicMax": "max",
    "atomicMin": "min",
    "atomicAnd": "and",
    "atomicOr": "or",
    "atomicXor": "xor",
}
_COMBINED_BY = {
    "sum": "atomicAdd",
    "max": "atomicMax",
    "min": "atomicMin",
    "and": "atomicAnd",
    "or": "atomicOr",
    "xor": "atomicXor",
}
_ADDED = frozenset({"float", "double", "int", "unsigned", "unsigned long long"})
_SUBTRACTED = frozenset({"int", "unsigned"})
_COMPARED = frozenset({"int", "unsigned", "long long", "unsigned long long"})
_BITWISE = frozenset({"int", "unsigned", "unsigned long long"})


def atomic_of(combining: Combining) -> str:
    """Return the atomic that combines a value into memory."""
    return _COMBINED_BY[combining.name]


def read_combining(atomic: str, kind: str) -> Combining | None:
    """Return what an atomic combines on a type; None where CUDA has none of the kind known here."""
    name = ATOMICS.get(atomic, "")
    kinds = (
        _SUBTRACTED
        if atomic == "atomicSub"
        else _ADDED
        if name == "sum"
        else _COMPARED
        if name in ("max", "min")
        else _BITWISE
    )
    return Combining(name, kind) if name and kind in kinds else None


def block_function(name: str, combining: Combining) -> str:
    """Return the text of a device function that combines one value of each thread of a block."""
    kind = combining.kind
    step = combining.update("value", "__shfl_down_sync(0xffffffffu, value, step)")
    loop = f"for (int step = 16; step > 0; step /= 2)\n{{0}}    {step}\n"
    return (
        f"// {combining.sentence} the values of a block's threads, whole warps of them. Thread 0 gets the result.\n"
        f"__device__ __forceinline__ {kind} {name}({kind} value, unsigned thread, unsigned threads)\n"
        "{\n"
        f"    __shared__ {kind} of_warp[32];\n"
        "    const unsigned lane = thread % 32, warp = thread / 32;\n"
        f"    {loop.format('    ')}"
        "    if (lane == 0)\n"
        "        of_warp[warp] = value;\n"
        "    __syncthreads();\n"
        "    if (warp == 0) {\n"
        f"        value = lane < threads / 32 ? of_warp[lane] : {combining.neutral};\n"
        f"        {loop.format('        ')}"
        "    }\n"
        "    return value;\n"
        "}\n"
    )
