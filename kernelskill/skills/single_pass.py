"""Write a prefix sum over three launches as one that reads and writes each element once."""

from __future__ import annotations

from kernelskill.algorithm.expression import loads
from kernelskill.algorithm.lowering.kernel import LaunchFacts
from kernelskill.algorithm.lowering.launching import text_at_launch
from kernelskill.algorithm.lowering.text import Writer
from kernelskill.schema.task import Promise
from kernelskill.skills.chain_edits import indented_block, replace_launches
from kernelskill.skills.disjoint import PROMISED, distinct_types
from kernelskill.skills.neighbour_access import vector_of
from kernelskill.skills.overlap_choice import Pair, where_apart
from kernelskill.skills.scan_chains import ScanChain
from kernelskill.skills.scan_points import ELEMENT
from kernelskill.skills.shared_arrays import SIZES
from kernelskill.skills.tile_kernels import TileKernel, TilePlan
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
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
    given = {chain.out: chain.target} if chain.target else {}
    plan = TilePlan(
        algorithm=chain.before.algorithm,
        arguments=chain.arguments | given,
        launch=chain.launches[0],
        kind=chain.scan.kind,
        count=chain.count,
        expressions=(chain.element,),
        first=chain.element,
        buffers=(chain.out,),
        is_exclusive=chain.is_exclusive,
    )
    kernel = _PrefixSum(unit, context, plan, threads, items)
    lines, pairs = kernel.launch_lines(), _overlaps(chain)
    assumptions = (PROMISED,) if pairs and context.promises(Promise.NO_ALIAS) else ()
    if pairs and not assumptions:
        if any(load.index != ELEMENT for load in loads(chain.element)):
            raise SkillRefused("how far it reads, and whether into its results, can't be told")
        why = "Where arrays overlap, all elements are read before any result is stored."
        lines = where_apart(unit, chain.launches, pairs, kernel.fresh("apart"), lines, why)
    edits = replace_launches(unit, chain.launches, context, kernel.code(), indented_block(lines))
    return Rewrite(edits=edits.edits, assumptions=assumptions)


def _overlaps(chain: ScanChain) -> list[Pair]:
    """Return the pairs of arrays that may overlap otherwise than in the first launch, which reads and stores at once.

    In place of a temporary, results go where elements may still be read.
    """
    if not chain.target:
        return []
    algorithm, arguments = chain.before.algorithm, chain.arguments
    count = text_at_launch(chain.count, LaunchFacts(arguments=arguments), 9)
    names = {load.buffer for load in loads(chain.element)}
    read = [parameter for parameter in algorithm.parameters if parameter.name in names]
    if any(parameter.view for parameter in read):
        raise SkillRefused("elements are records or vectors")
    return [
        ((arguments[parameter.name], count), (chain.target, count))
        for parameter in read
        if not distinct_types(parameter.kind, chain.scan.kind)
    ]


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
