"""Write a prefix sum over three launches as one that reads and writes each element once."""

from __future__ import annotations

from kernelskill.algorithm.lowering.text import Writer
from kernelskill.skills.chain_edits import indented_block, replace_launches
from kernelskill.skills.neighbour_access import vector_of
from kernelskill.skills.scan_chains import ScanChain
from kernelskill.skills.shared_arrays import SIZES
from kernelskill.skills.tile_kernels import TileKernel, TilePlan
from kernelskill.skills.transformation import Rewrite, SkillContext
from kernelskill.source.unit import SourceUnit


def write_single_pass(
    unit: SourceUnit, chain: ScanChain, context: SkillContext, threads: int, items: int
) -> Rewrite:
    """Return the edits that put one kernel in the place of three.

    Args:
        unit: The file.
        chain: What it takes.
        context: For names that are still free.
        threads: Of a block.
        items: Elements a thread.

    Raises:
        SkillRefused: The launcher is of a kind that can't be changed so.
    """
    plan = TilePlan(
        algorithm=chain.before.algorithm,
        arguments=chain.arguments,
        launch=chain.launches[0],
        kind=chain.scan.kind,
        count=chain.count,
        expressions=(chain.element,),
        first=chain.element,
        buffers=(chain.out,),
        is_exclusive=chain.is_exclusive,
    )
    kernel = _PrefixSum(unit, context, plan, threads, items)
    statement = indented_block(kernel.launch_lines())
    edits = replace_launches(unit, chain.launches, context, kernel.code(), statement)
    return Rewrite(edits=edits.edits)


class _PrefixSum(TileKernel):
    comment = "Takes the whole prefix sum: a block scans a tile, and adds what the tiles before add up to."

    @property
    def _value(self) -> str:
        return f"{self.n['value']}[{self.n['row']}]"

    @property
    def _out(self) -> str:
        return f"{self.plan.buffers[0]}[{self.n['element']}]"

    def aligned(self) -> dict[str, int]:
        """Return the arrays that are moved as vectors, the results among them."""
        return super().aligned() | {self.plan.buffers[0]: SIZES[self.plan.kind] * self.width}

    def load_row(self, out: Writer) -> None:
        """Write the values of a row."""
        (element,) = self.plan.expressions
        for item in range(self.width):
            out.line(f"{self._value}[{item}] = {self.in_row(element, item)};")

    def load_one(self) -> list[str]:
        """Return the value of an element: zero beyond the last one."""
        value = self.text(self.plan.expressions[0], 1)
        return [f"{self._value}[{self.n['item']}] = {self.inside()} ? {value} : 0;"]

    def store(self, out: Writer) -> None:
        """Write the results, as vectors where these fit."""
        vector, _ = vector_of(self.plan.kind, self.width)
        with out.block(f"if ({self.n['is_wide']})"), self.each_row(out):
            values = ", ".join(f"{self._value}[{item}]" for item in range(self.width))
            out.line(f"*reinterpret_cast<{vector} *>(&{self._out}) = make_{vector}({values});")
        with out.block("else"):
            self.each(out, [f"if ({self.inside()})", f"    {self._out} = {self._value}[{self.n['item']}];"])
