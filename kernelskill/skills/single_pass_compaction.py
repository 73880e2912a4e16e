"""Write a compaction over three launches as one that reads each element once."""

from __future__ import annotations

from kernelskill.algorithm.expression import Expression, loads
from kernelskill.algorithm.integers import conjunction
from kernelskill.algorithm.lowering.kernel import LaunchFacts
from kernelskill.algorithm.lowering.launching import text_at_launch
from kernelskill.algorithm.lowering.text import Writer, bracketed
from kernelskill.algorithm.types import cuda_name
from kernelskill.schema.task import Promise
from kernelskill.skills.chain_edits import indented_block, replace_launches
from kernelskill.skills.compaction_chains import Compaction
from kernelskill.skills.disjoint import PROMISED, distinct_types
from kernelskill.skills.overlap_choice import Pair, where_apart
from kernelskill.skills.shared_arrays import SIZES
from kernelskill.skills.tile_kernels import TileKernel, TilePlan
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
from kernelskill.source.unit import SourceUnit


def write_compaction(
    unit: SourceUnit, chain: Compaction, context: SkillContext, threads: int, items: int
) -> Rewrite:
    """Return the edits that put one kernel in the place of three.

    Where arrays may overlap, the launcher chooses between it and the three.

    Args:
        unit: The file.
        chain: What it takes.
        context: For names that are still free, and what is promised.
        threads: Of a block.
        items: Elements a thread.

    Raises:
        SkillRefused: The launcher is of a kind that can't be changed so.
    """
    tests, algorithm = chain.choice.tests, chain.copied.algorithm
    plan = TilePlan(
        algorithm=algorithm,
        arguments=dict(chain.copied.arguments),
        launch=chain.launches[0],
        kind=chain.kind,
        count=chain.choice.count,
        expressions=(*tests, chain.value),
        first=(*tests, chain.value)[0],
        buffers=(chain.kept,),
        is_exclusive=False,
    )
    kernel = _CompactionKernel(unit, context, plan, threads, items, chain)
    lines = kernel.launch_lines(chain.totals)
    pairs = _overlaps(chain)
    assumptions = (PROMISED,) if pairs and context.promises(Promise.NO_ALIAS) else ()
    if pairs and not assumptions:
        why = "Where arrays overlap, all counting comes before all copying."
        lines = where_apart(unit, chain.launches, pairs, kernel.fresh("apart"), lines, why)
    edits = replace_launches(unit, chain.launches, context, kernel.code(), indented_block(lines))
    return Rewrite(edits=edits.edits, assumptions=assumptions)


def _overlaps(chain: Compaction) -> list[Pair]:
    """Return the pairs of arrays that may overlap."""
    algorithm, arguments = chain.copied.algorithm, dict(chain.copied.arguments)
    count = text_at_launch(chain.choice.count, LaunchFacts(arguments=arguments), 9)
    kept = algorithm.parameter(chain.kept)
    names = {load.buffer for each in (*chain.choice.tests, chain.value) for load in loads(each)}
    read = [parameter for parameter in algorithm.parameters if parameter.name in names]
    if any(parameter.view for parameter in (kept, *read)):
        raise SkillRefused("elements are records or vectors")
    found = []
    for parameter in read:
        if not (parameter.is_restrict or kept.is_restrict or distinct_types(parameter.kind, kept.kind)):
            found.append(((arguments[parameter.name], count), (arguments[kept.name], count)))
    for total in chain.totals:
        for parameter in (kept, *read):
            if not distinct_types(parameter.kind, chain.kind):
                found.append(((arguments[parameter.name], count), (total, "1")))
    return found


_MOST_BYTES = 32 * 1024
"""Of shared memory, for the elements of a tile that pass."""


class _CompactionKernel(TileKernel):
    comment = (
        "Keeps the elements that pass: a block scans how many of a tile do, behind those of the tiles before."
    )

    def __init__(
        self,
        unit: SourceUnit,
        context: SkillContext,
        plan: TilePlan,
        threads: int,
        items: int,
        chain: Compaction,
    ) -> None:
        super().__init__(unit, context, plan, threads, items)
        self._passes: Expression = conjunction(chain.choice.tests)
        self._chosen_value = chain.value
        self._held = {buffer: self.fresh(f"{buffer}_held") for buffer in self.direct}
        self._totals = [self.fresh("how_many") for _ in chain.totals]

    @property
    def _value(self) -> str:
        return f"{self.n['value']}[{self.n['row']}]"

    def more_parameters(self) -> list[str]:
        """Return what gets the number of all that pass."""
        return [f"{self.plan.kind} *{name}" for name in self._totals]

    def declare(self, out: Writer) -> None:
        """Declare the registers in which elements wait."""
        for buffer, name in self._held.items():
            out.line(f"{self.direct[buffer].kind} {name}[{self.rows}][{self.width}];")

    def load_row(self, out: Writer) -> None:
        """Write which elements of a row pass."""
        for item in range(self.width):
            for buffer, name in self._held.items():
                out.line(f"{name}[{self.n['row']}][{item}] = {self.in_row(self.direct[buffer], item)};")
            out.line(f"{self._value}[{item}] = {self.in_row(self._passes, item)} ? 1 : 0;")

    def load_one(self) -> list[str]:
        """Return whether an element passes: none does beyond the last one."""
        row, item = self.n["row"], self.n["item"]
        lines = [
            f"{name}[{row}][{item}] = {self.inside()} ? {self.text(self.direct[buffer])} : 0;"
            for buffer, name in self._held.items()
        ]
        return [*lines, f"{self._value}[{item}] = {self._test()} ? 1 : 0;"]

    def _test(self, place: str = "") -> str:
        return f"{self.inside()} && {bracketed(self.held(self._passes, self._held, place))}"

    def store(self, out: Writer) -> None:
        """Write the elements that pass, and how many they are."""
        n, threads = self.n, self.scan.threads
        last = f"{n['value']}[{self.rows - 1}][{self.width - 1}]"
        value, place = self.held(self._chosen_value, self._held), f"{self._value}[{n['item']}] - 1"
        if not self._is_packed:
            self.each(out, [f"if ({self._test()})", f"    {self._target}[{place}] = {value};"])
        else:
            self._store_packed(out, value, place, last)
        if self._totals:
            out.line(f"if ({n['tile']} == gridDim.x - 1 && threadIdx.x == {threads - 1})")
            out.line(" ".join(f"    *{name} = {last};" for name in self._totals))

    @property
    def _target(self) -> str:
        return self.plan.buffers[0]

    @property
    def _is_packed(self) -> bool:
        """Whether what passes is put together in shared memory."""
        size = SIZES.get(self.plan.algorithm.parameter(self._target).kind, _MOST_BYTES)
        return size * self.scan.elements <= _MOST_BYTES

    def _store_packed(self, out: Writer, value: str, place: str, last: str) -> None:
        n, threads = self.n, self.scan.threads
        packed, start, end, at = (self.fresh(name) for name in ("packed", "start", "end", "at"))
        kind = cuda_name(self.plan.algorithm.parameter(self._target).kind)
        out.line("// What passes is put together first, so that neighbours store neighbours.")
        out.line(f"__shared__ {kind} {packed}[{self.scan.elements}];")
        out.line(f"__shared__ {self.plan.kind} {start}, {end};")
        with out.block("if (threadIdx.x == 0)"):
            out.line(f"const {self.index_kind} {n['element']} = {n['first']};")
            out.line(f"{start} = {n['value']}[0][0] - ({self._test('[0][0]')} ? 1 : 0);")
        out.line(f"if (threadIdx.x == {threads - 1})")
        out.line(f"    {end} = {last};")
        out.line("__syncthreads();")
        self.each(out, [f"if ({self._test()})", f"    {packed}[{place} - {start}] = {value};"])
        out.line("__syncthreads();")
        out.line(f"for ({self.plan.kind} {at} = {start} + threadIdx.x; {at} < {end}; {at} += {threads})")
        out.line(f"    {self._target}[{at}] = {packed}[{at} - {start}];")
