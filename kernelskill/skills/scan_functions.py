"""Text of device functions that scan over a block by shuffles, one value of each warp going through shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.block_results import WORDS
from kernelskill.skills.combining import Combining
from kernelskill.skills.row_accumulators import Way

_FULL = "0xffffffffu"
_FLOATS = {"max": "-INFINITY", "min": "INFINITY"}


@dataclass(frozen=True)
class ScanFunction:
    """A function that makes each value the result of all up to it, in the order of threads and items."""

    kind: str
    way: Way
    threads: int
    items: int
    """Values a thread."""
    gives_before: bool
    """Whether it also gives each thread the result of all values before its own."""
    gives_total: bool
    is_repeated: bool
    """Whether a block may call it again."""

    @property
    def wanted_name(self) -> str:
        """A name for it."""
        return f"block_scan_{WORDS[self.way.operator]}"

    def text(self, name: str) -> str:
        """Return its definition."""
        kind, warps = self.kind, self.threads // 32
        values = f"{kind} (&value)[{self.items}]" if self.items > 1 else f"{kind} value"
        parameters = [values]
        parameters += [f"{kind}& before"] if self.gives_before else []
        parameters += [f"{kind}& total"] if self.gives_total else []
        result = "void" if self.items > 1 else kind
        what = "values" if self.items == 1 else f"values, {self.items} neighbours a thread,"
        lines = [
            f"// Makes each of a block's {self.threads * self.items} {what} the {self._noun} of all up to it.",
            f"__device__ __forceinline__ {result} {name}({', '.join(parameters)})",
            "{",
            "    const unsigned lane = threadIdx.x % 32;",
            *self._own(),
            *self._within_warps("sum", 32),
        ]
        lines += self._over_warps(warps) if warps > 1 else ["    __syncthreads();"]
        lines += self._ends(warps)
        return "\n".join((*lines, "}\n"))

    @property
    def _noun(self) -> str:
        return {"sum": "sum", "product": "product", "max": "largest", "min": "smallest"}.get(
            WORDS[self.way.operator], f"bitwise {WORDS[self.way.operator]}"
        )

    def _own(self) -> list[str]:
        if self.items == 1:
            return [f"    {self.kind} sum = value;"]
        return [
            "#pragma unroll",
            f"    for (int item = 1; item < {self.items}; ++item)",
            f"        {self.way.statement('value[item]', 'value[item - 1]')}",
            f"    {self.kind} sum = value[{self.items - 1}];",
        ]

    def _within_warps(self, name: str, lanes: int) -> list[str]:
        return [
            "#pragma unroll",
            f"    for (unsigned step = 1; step < {lanes}; step *= 2) {{",
            f"        const {self.kind} other = __shfl_up_sync({_FULL}, {name}, step);",
            "        if (lane >= step)",
            f"            {self.way.statement(name, 'other')}",
            "    }",
        ]

    def _over_warps(self, warps: int) -> list[str]:
        lines = [
            f"    __shared__ {self.kind} of_warp[{warps}];",
            "    const unsigned warp = threadIdx.x / 32;",
        ]
        lines += ["    __syncthreads();  // the last ones may still be read"] if self.is_repeated else []
        return [
            *lines,
            "    if (lane == 31)",
            "        of_warp[warp] = sum;",
            "    __syncthreads();",
            f"    {self.kind} warps = of_warp[lane % {warps}];",
            *self._within_warps("warps", warps),
            f"    const {self.kind} earlier = __shfl_sync({_FULL}, warps, warp > 0 ? warp - 1 : 0);",
            "    if (warp > 0)",
            f"        {self.way.statement('sum', 'earlier')}",
        ]

    def _ends(self, warps: int) -> list[str]:
        lines = []
        if self.gives_total:
            source = f"warps, {warps - 1}" if warps > 1 else "sum, 31"
            lines.append(f"    total = __shfl_sync({_FULL}, {source});")
        if self.gives_before or self.items > 1:
            lead = "    " if self.gives_before else f"    {self.kind} "
            lines.append(f"{lead}before = __shfl_up_sync({_FULL}, sum, 1);")
            if warps > 1:
                lines += ["    if (lane == 0)", "        before = earlier;"]
        if self.gives_before:
            lines += ["    if (threadIdx.x == 0)", f"        before = {self.neutral};"]
        if self.items == 1:
            return [*lines, "    return sum;"]
        return [
            *lines,
            "    if (threadIdx.x > 0) {",
            "#pragma unroll",
            f"        for (int item = 0; item < {self.items}; ++item)",
            f"            {self.way.statement('value[item]', 'before')}",
            "    }",
        ]

    @property
    def neutral(self) -> str:
        """C text of the value that changes nothing."""
        word = WORDS[self.way.operator]
        if word == "product":
            return "1"
        if self.kind in ("float", "double") and word in _FLOATS:
            return _FLOATS[word]
        return Combining(word, self.kind).neutral
