"""What the instructions of a basic block cost, for the time model.

PTX is not what the GPU runs: the assembler expands divisions and roots, drops moves and merges address
arithmetic. The weights below are the usual lengths of those expansions on Volta and later, in warp
instructions; counts are right within some 20 %.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from kernelskill.backends.emulated.ptx.syntax import (
    Label,
    Place,
)
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.types import is_half, width

PIPES = ("fp32", "fp64", "int", "sfu", "lsu", "tensor", "control")
"""Where warp instructions go; `issue` counts all of them."""

_FREE = ("cvta", "pragma", "membar", "fence", "prefetch", "prefetchu", "createpolicy", "nanosleep")
_FLOAT32 = {
    "div": (("fp32", 8.0), ("sfu", 1.0)), "sqrt": (("fp32", 6.0), ("sfu", 1.0)), "rcp": (("fp32", 5.0), ("sfu", 1.0)),
}  # fmt: skip
_APPROXIMATE = ("ex2", "lg2", "sin", "cos", "rsqrt", "tanh", "rcp", "sqrt", "div")
_AROUND = {"sin": (1.0, 0.0), "cos": (1.0, 0.0), "tanh": (0.0, 0.0), "rcp": (2.0, 4.0), "div": (3.0, 1.0)}
"""Multiplications and comparisons round a hardware approximation that takes subnormal numbers, as ptxas 13 writes them."""
_AROUND_USUALLY = (2.0, 1.0)
_AROUND_FLUSHED = {"sin": 1.0, "cos": 1.0, "div": 1.0}
"""Multiplications where subnormal numbers are flushed."""
_FLOAT64 = {"div": 14.0, "sqrt": 14.0, "rcp": 9.0, "rsqrt": 9.0}


@dataclass(slots=True)
class BasicBlock:
    """One basic block: its instructions in order and the access sites among them."""

    kernel: str
    label: str = ""
    ops: list[Op] = field(default_factory=list)
    sites: list[tuple[int, Op]] = field(default_factory=list)

    def add(self, op: Op) -> None:
        """Append an instruction."""
        self.ops.append(op)


def cost(op: Op) -> tuple[tuple[str, float], ...]:
    """Return the pipes that an instruction uses and how many warp instructions go there."""
    if op.root in _FREE:
        return ()
    if op.root in ("ld", "st", "atom", "red", "shfl", "ldu", "ldmatrix", "cp", "match", "redux"):
        return (("lsu", 0.2 if op.has("param") else 1.0),)
    if op.root in ("mma", "wmma", "wgmma"):
        return (("tensor", 1.0),) if op.has("mma") or op.root == "mma" else (("lsu", 4.0),)
    if op.root in ("bra", "brx", "call", "ret", "exit", "bar", "barrier", "trap"):
        return (("control", 1.0),)
    kind = op.types[-1] if op.types else "b32"
    if op.root == "mov":
        return (("int", 0.3),)
    if op.root == "cvt":
        return _conversion(op)
    if kind == "f64":
        return (("fp64", 1.0 if op.has("approx") else _FLOAT64.get(op.root, 1.0)),)
    if kind == "f32" or is_half(kind):
        return _single(op)
    return (("int", _integer_length(op, kind)),)


def _conversion(op: Op) -> tuple[tuple[str, float], ...]:
    kinds = op.types[-2:]
    if "f64" in kinds:
        return (("sfu", 2.0),)
    if any(kind[0] == "f" or is_half(kind) for kind in kinds):
        return (("fp32", 1.0),) if all(kind[0] in "fb" for kind in kinds) else (("sfu", 0.25), ("int", 1.0))
    return (("int", 0.5),)


def _single(op: Op) -> tuple[tuple[str, float], ...]:
    if op.root in _APPROXIMATE and (op.has("approx", "full") or op.root not in _FLOAT32):
        products, tests = _AROUND.get(op.root, _AROUND_USUALLY)
        if op.has("ftz"):
            products, tests = _AROUND_FLUSHED.get(op.root, 0.0), 0.0
        return (("sfu", 1.0), ("fp32", products), ("int", tests))
    if op.root in _FLOAT32:
        return _FLOAT32[op.root]
    if op.root in ("setp", "selp", "min", "max", "neg", "abs", "testp", "copysign", "set", "slct"):
        return (("int", 0.5 if op.root in ("neg", "abs") else 1.0),)
    return (("fp32", 1.0),)


def _integer_length(op: Op, kind: str) -> float:
    wide = width(kind) == 64 if kind != "pred" else False
    if op.root in ("div", "rem"):
        return 75.0 if wide else 18.0
    if op.root in ("mul", "mad"):
        return (8.0 if op.has("hi") else 4.0) if wide else 1.0
    return 2.0 if wide and op.root in ("shl", "shr", "setp", "min", "max", "neg", "abs") else 1.0


def is_integer_division(op: Op) -> bool:
    """Whether the assembler turns it into a division sequence."""
    return op.root in ("div", "rem") and bool(op.types) and op.types[-1][0] in "su"


def merged_loads(block: BasicBlock) -> dict[str, int]:
    """Return the shared loads that the assembler makes one wider load of: site to the loads in it.

    It merges loads of neighbouring words from one base register where 16-byte alignment holds; that a whole
    warp then reads one place costs one wavefront instead of up to four.
    """
    places: dict[tuple[str, int], int] = {}
    for site, op in block.sites:
        source = op.operands[1] if op.root == "ld" and len(op.operands) > 1 else None
        plain = op.has("shared") and not op.has("volatile", "v2", "v4") and bool(op.types)
        if plain and isinstance(source, Place) and source.base is not None and width(op.type) == 32:
            places[source.base.text, source.offset] = site
    merged: dict[str, int] = {}
    for (base, offset), site in places.items():
        start = offset // 16 * 16
        together = sum((base, start + 4 * n) in places for n in range(4))
        if together in (2, 4):
            merged[str(site)] = together
    return merged


def block_figures(block: BasicBlock) -> dict[str, object]:
    """Return the instruction mix of a basic block as JSON values."""
    mix: dict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for op in block.ops:
        for pipe, length in cost(op):
            mix[pipe] += length
            mix["issue"] += length
        counts["instructions"] += 1
        if is_integer_division(op):
            counts["integer_divisions"] += 1
            mix["division"] += sum(length for _, length in cost(op))
        if op.root in ("bar", "barrier") and not op.has("warp"):
            counts["barriers"] += 1
        if op.root in ("mma", "wmma") and op.has("mma", "m16n8k16", "m16n8k8"):
            mix["tensor_flops"] += _matrix_flops(op)
    return {
        "kernel": block.kernel,
        "merged": merged_loads(block),
        "mix": {name: round(value, 3) for name, value in mix.items()},
        "counts": dict(counts),
    }


def _matrix_flops(op: Op) -> float:
    shape = next((part for part in op.modifiers if part[:1] == "m" and "n" in part and "k" in part), "")
    m, _, rest = shape[1:].partition("n")
    n, _, k = rest.partition("k")
    return 2.0 * int(m) * int(n) * int(k) if m.isdigit() and n.isdigit() and k.isdigit() else 0.0


def label_name(label: Label) -> str:
    """Return the name that branches use."""
    return label.name
