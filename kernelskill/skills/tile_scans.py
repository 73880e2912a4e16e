"""Text of device functions that scan tiles of an array in one pass, each block looking back at the tiles before its own."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.shared_arrays import SIZES

_FULL = "0xffffffffu"
_WORDS = {
    "int": ("(unsigned){}", "(int)(unsigned){}"),
    "unsigned": ("{}", "(unsigned){}"),
    "float": ("__float_as_uint({})", "__uint_as_float((unsigned){})"),
    "double": ("(unsigned long long)__double_as_longlong({})", "__longlong_as_double((long long)({}))"),
}
"""How a value becomes bits and comes from them, by its type; of others both are plain conversions."""


@dataclass(frozen=True)
class TileScan:
    """The functions for tiles of one shape.

    A warp takes `rows * 32 * width` neighbours; in each row of them, a lane takes `width`.
    """

    kind: str
    threads: int
    rows: int
    width: int
    is_exclusive: bool
    next_tile: str
    """Names of the functions."""
    publish: str
    look_back: str
    scan: str

    @property
    def elements(self) -> int:
        """Elements of a tile."""
        return self.threads * self.rows * self.width

    @property
    def words(self) -> int:
        """64-bit words that tell how far a tile is: its state lies in the upper half of each, 32 bits in the lower."""
        return SIZES[self.kind] // 4

    def text(self) -> str:
        """Return the definitions of all functions."""
        return "\n".join(
            (_NEXT_TILE.format(name=self.next_tile), self._publish(), self._look_back(), self._scan())
        )

    def _publish(self) -> str:
        to_bits = _WORDS.get(self.kind, ("(unsigned long long){}", ""))[0].format("sum")
        lines = [
            "// Says what a tile adds up to: 1, on its own; 2, with all tiles before it. What lies in one word is seen",
            "// at once, so that nothing has to be fenced.",
            f"__device__ __forceinline__ void {self.publish}(",
            f"    volatile unsigned long long* states, unsigned tile, unsigned long long how, {self.kind} sum)",
            "{",
        ]
        if self.words == 1:
            lines.append(f"    states[tile] = how << 32 | {to_bits};")
        else:
            lines += [
                f"    const unsigned long long bits = {to_bits};",
                "    states[2ull * tile] = how << 32 | (unsigned)bits;",
                "    states[2ull * tile + 1] = how << 32 | bits >> 32;",
            ]
        return "\n".join((*lines, "}\n"))

    def _look_back(self) -> str:
        kind = self.kind
        return "\n".join(
            (
                "// Returns the sum of all tiles before one, for a whole warp, which looks at 32 of them at a time: back to",
                "// the last that knows its own such sum. Tiles are numbered as they were begun, so that none waits in vain.",
                f"__device__ __forceinline__ {kind} {self.look_back}(",
                f"    volatile unsigned long long* states, unsigned tile, {kind} sum)",
                "{",
                "    const int lane = threadIdx.x % 32;",
                "    if (lane == 0)",
                f"        {self.publish}(states, tile, tile > 0 ? 1 : 2, sum);",
                f"    {kind} before = 0;",
                "    for (long long last = (long long)tile - 1; last >= 0; last -= 32) {",
                *self._wait(),
                f"        const unsigned whole = __ballot_sync({_FULL}, state >> 32 == 2);",
                "        // Lanes beyond the nearest tile that knows the sum up to its own end count no more.",
                f"        {kind} part = whole == 0 || lane < __ffs(whole) ? {self._from_bits()} : 0;",
                "        for (int step = 16; step > 0; step /= 2)",
                f"            part += __shfl_xor_sync({_FULL}, part, step);",
                "        before += part;",
                "        if (whole != 0)",
                "            break;",
                "    }",
                "    if (lane == 0 && tile > 0)",
                f"        {self.publish}(states, tile, 2, before + sum);",
                "    return before;",
                "}\n",
            )
        )

    def _from_bits(self) -> str:
        bits = "state" if self.words == 1 else "((unsigned)state | upper << 32)"
        return _WORDS.get(self.kind, ("", f"({self.kind}){{}}"))[1].format(bits)

    def _wait(self) -> list[str]:
        if self.words == 1:
            return [
                "        unsigned long long state;",
                "        do",
                "            state = last >= lane ? states[last - lane] : 2ull << 32;",
                "        while (state >> 32 == 0);",
            ]
        return [
            "        unsigned long long state, upper;",
            "        do {",
            "            state = last >= lane ? states[2 * (last - lane)] : 2ull << 32;",
            "            upper = last >= lane ? states[2 * (last - lane) + 1] : 2ull << 32;",
            "        } while (state >> 32 == 0 || state >> 32 != upper >> 32);",
        ]

    def _scan(self) -> str:
        kind, warps = self.kind, self.threads // 32
        what = "before" if self.is_exclusive else "up to"
        lines = [
            f"// Makes each value the sum of all {what} it, in this tile and those before.",
            f"__device__ __forceinline__ void {self.scan}(",
            f"    {kind} (&value)[{self.rows}][{self.width}], unsigned long long* states, unsigned tile)",
            "{",
            f"    __shared__ {kind} of_warp[{warps}], of_tiles;",
            "    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
            f"    {kind} sum = 0;",
            *self._rows(),
            "    if (lane == 31)",
            "        of_warp[warp] = sum;",
            "    __syncthreads();",
            f"    {kind} warps = of_warp[lane % {warps}];",
            *_within("warps", kind, warps, "    "),
            f"    {kind} before = __shfl_sync({_FULL}, warps, warp > 0 ? warp - 1 : 0);",
            "    if (warp == 0) {",
            f"        const {kind} tiles = {self.look_back}(states, tile, __shfl_sync({_FULL}, warps, {warps - 1}));",
            "        before = 0;",
            "        if (lane == 0)",
            "            of_tiles = tiles;",
            "    }",
            "    __syncthreads();",
            "    before += of_tiles;",
            "#pragma unroll",
            f"    for (int row = 0; row < {self.rows}; ++row)",
            "#pragma unroll",
            f"        for (int item = 0; item < {self.width}; ++item)",
            "            value[row][item] += before;",
            "}\n",
        ]
        return "\n".join(lines)

    def _rows(self) -> list[str]:
        """Return the scan of a warp's rows; `sum` is that of all, behind them."""
        kind, last = self.kind, self.width - 1
        lines = [
            "#pragma unroll",
            f"    for (int row = 0; row < {self.rows}; ++row) {{",
            "#pragma unroll",
            f"        for (int item = 1; item < {self.width}; ++item)",
            "            value[row][item] += value[row][item - 1];",
            f"        {kind} upto = value[row][{last}];",
            *_within("upto", kind, 32, "        "),
            f"        {kind} before = __shfl_up_sync({_FULL}, upto, 1);",
            "        before = lane > 0 ? before + sum : sum;",
            "#pragma unroll",
        ]
        if self.is_exclusive:
            lines += [
                f"        for (int item = {last}; item > 0; --item)",
                "            value[row][item] = value[row][item - 1] + before;",
                "        value[row][0] = before;",
            ]
        else:
            lines += [
                f"        for (int item = 0; item < {self.width}; ++item)",
                "            value[row][item] += before;",
            ]
        return [*lines, f"        sum += __shfl_sync({_FULL}, upto, 31);", "    }"]


def _within(name: str, kind: str, lanes: int, indent: str) -> list[str]:
    lines = [
        "#pragma unroll",
        f"    for (unsigned step = 1; step < {lanes}; step *= 2) {{",
        f"        const {kind} other = __shfl_up_sync({_FULL}, {name}, step);",
        "        if (lane >= step)",
        f"            {name} += other;",
        "    }",
    ]
    return [line if line.startswith("#") else indent + line[4:] for line in lines]


_NEXT_TILE = """\
// Returns the number of a tile that no block has taken yet; blocks take them in the order in which they begin.
__device__ __forceinline__ unsigned {name}(unsigned long long* taken)
{{
    __shared__ unsigned tile;
    if (threadIdx.x == 0)
        tile = (unsigned)atomicAdd(taken, 1ull);
    __syncthreads();
    return tile;
}}
"""
