"""Atomics on a small table: counted in a copy of the block's own, merged at the end of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.skills.atomic_updates import (
    AtomicUpdate,
    address_parts,
    converted_value,
    find_updates,
    refuse_moving_address,
    refuse_observers,
)
from kernelskill.skills.bin_ranges import BinCount, DataRanges, read_bin_count
from kernelskill.skills.block_atomics import Elements, common_end_of, elements_of, write_grid_loop
from kernelskill.skills.block_threads import BlockThreads, read_block_threads
from kernelskill.skills.combining import Combining, atomic_of
from kernelskill.skills.common_end import CommonEnd, append_statements, write_common_end
from kernelskill.skills.device_code import SHARED_WORDS, fresh_name, refuse_words
from kernelskill.skills.elementwise import divide_grids
from kernelskill.skills.expression_types import ExpressionTypes, is_integer, is_wide
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of, template_bindings
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
from kernelskill.skills.value_ranges import largest_block
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.influence import MEMORY, influences
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, named, walk
from kernelskill.source.unit import SourceUnit

SHARED_BYTES = 48 * 1024
_SIZES = {"int": 4, "unsigned": 4, "float": 4}
_CAPACITIES = (1024, 256, 4096)
_COMMON = 256


@dataclass(frozen=True)
class PrivateBins:
    """The atomics of a kernel on one table."""

    kernel: KernelDef
    updates: tuple[AtomicUpdate, ...]
    base: str
    combining: Combining
    count: BinCount
    threads: BlockThreads
    entries: tuple[KernelLaunch, ...]
    end: CommonEnd | None
    elements: Elements | None
    assumptions: tuple[str, ...]
    reason: str

    @property
    def capacities(self) -> tuple[int, ...]:
        """Sizes that the block's copy may have."""
        each = _SIZES.get(self.combining.kind, 8)
        if self.count.count is not None:
            return (self.count.count,)
        return tuple(size for size in _CAPACITIES if size * each <= SHARED_BYTES)


def read_private_bins(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> PrivateBins:
    """Return the table that a kernel counts in.

    Raises:
        SkillRefused: There is none, it is too large, or threads may see it before the end.
    """
    every = find_updates(unit, kernel, context)
    refuse_words(unit, kernel, context, SHARED_WORDS, "there may be no room for a table as well")
    entries = launches_of(unit, kernel, context)
    threads = read_block_threads(entries)
    end, reason = common_end_of(unit, kernel)
    groups: dict[str, list[AtomicUpdate]] = {}
    refusal = "no atomic of it has an index that depends on data"
    for update in every:
        try:
            groups.setdefault(_base_of(unit, kernel, update, end), []).append(update)
        except SkillRefused as refused:
            refusal = refused.reason
    if len(groups) != 1:
        raise SkillRefused(refusal if not groups else "it counts in several tables")
    base, updates = next(iter(groups.items()))
    if len({update.combining for update in updates}) > 1:
        raise SkillRefused("it combines in several ways in one table")
    combining = updates[0].combining
    elements = elements_of(unit, kernel, context)
    if end is None and elements is None:
        raise SkillRefused(reason)
    ranges = DataRanges(unit, kernel, largest_block(entries), template_bindings(unit, kernel, context))
    count = _bin_count(unit, kernel, updates, ranges)
    if count.count is not None and count.count * _SIZES.get(combining.kind, 8) > SHARED_BYTES:
        raise SkillRefused(f"{count.count} bins of {combining.kind} don't fit the shared memory of a block")
    return PrivateBins(
        kernel=kernel,
        updates=tuple(updates),
        base=base,
        combining=combining,
        count=count,
        threads=threads,
        entries=tuple(entries),
        end=end,
        elements=elements,
        assumptions=refuse_observers(unit, kernel, updates, context),
        reason=reason,
    )


def _base_of(unit: SourceUnit, kernel: KernelDef, update: AtomicUpdate, end: CommonEnd | None) -> str:
    """Return the text of the table that an atomic updates.

    Raises:
        SkillRefused: It is no table with one data-dependent index.
    """
    line = update.access.line
    if not update.is_statement:
        raise SkillRefused(f"line {line} uses what {update.name} returns")
    base, index = _base_and_index(unit, update)
    if MEMORY not in influences(flow_of(unit, kernel), index, unit.syntax, index):
        raise SkillRefused(f"the index on line {line} does not depend on data")
    changing = ("assignment_expression", "update_expression")
    if any(node.type in changing for node in walk(index)):
        raise SkillRefused(f"the index on line {line} changes a variable")
    assert kernel.body is not None
    before = end.returns[0].start_byte if end is not None and end.returns else kernel.body.end_byte
    refuse_moving_address(unit, kernel, base, before)
    return unit.text_of(base)


def _base_and_index(unit: SourceUnit, update: AtomicUpdate) -> tuple[Node, Node]:
    parts = address_parts(unit, update.address)
    if len(parts) == 2 and parts[1].type == "identifier":
        return parts[1], parts[0]
    address = parts[0]
    left, right = address.child_by_field_name("left"), address.child_by_field_name("right")
    is_sum = address.type == "binary_expression" and unit.operator(address) == "+"
    if len(parts) == 1 and is_sum and left is not None and right is not None and left.type == "identifier":
        return left, right
    raise SkillRefused(f"line {update.access.line}: {unit.text_of(update.address)} is no element of a table")


def _bin_count(
    unit: SourceUnit, kernel: KernelDef, updates: Sequence[AtomicUpdate], ranges: DataRanges
) -> BinCount:
    counts: list[BinCount] = []
    refusal = ""
    types = ExpressionTypes(unit, kernel, ranges.bindings)
    for update in updates:
        index = _base_and_index(unit, update)[1]
        found = read_bin_count(unit, kernel, index, ranges)
        if found is None:
            refusal = f"nothing bounds the index {unit.text_of(index)} on line {update.access.line}"
            found = BinCount(0, False)
        if not found.is_proven and not is_integer(types.of(index)):
            raise SkillRefused(f"the type of the index {unit.text_of(index)} can't be told")
        counts.append(found)
    if refusal and all(count.count == 0 for count in counts):
        raise SkillRefused(refusal)
    proven = all(count.is_proven for count in counts)
    known = [count.count for count in counts if count.count is not None]
    return BinCount(max(known) if len(known) == len(counts) else None, proven and len(known) == len(counts))


def write_private_bins(
    unit: SourceUnit, found: PrivateBins, capacity: int, work: int, context: SkillContext
) -> Rewrite:
    """Write the block's own bins, the merging and the launches.

    Args:
        unit: The file of the kernel.
        found: What to write.
        capacity: Size of the block's copy.
        work: Elements of a thread; 1 leaves the launches as they are.
        context: For names that are still free.
    """
    sets = edit_sets(found.entries)
    edits = sets.setdefault(unit.path, EditSet(unit))
    assert found.kernel.body is not None
    names: list[str] = []
    for wanted in (f"own_{found.base}", f"{found.base}_size", "bin", "thread"):
        names.append(fresh_name(unit, context, wanted, names))
    own, size, each, thread = names
    _write_start(unit, edits, found, (own, size, each, thread), capacity)
    for update in found.updates:
        _write_update(unit, edits, found, update, (own, size, each), context, _added(found, update, work))
    end = found.end
    if work > 1 and found.elements is not None:
        write_grid_loop(unit, edits, found.kernel, found.elements, context)
        divide_grids(sets, list(found.entries), list(found.elements.covers), work)
        end = CommonEnd((), named(found.kernel.body)[-1])
    elif end is not None:
        write_common_end(unit, edits, found.kernel, end)
    else:
        raise SkillRefused(found.reason)
    start = found.threads.thread if found.threads.thread == "threadIdx.x" else thread
    loop = f"for (unsigned {each} = {start}; {each} < {size}; {each} += {found.threads.threads})"
    lines = [
        "__syncthreads();",
        loop,
        f"    if ({own}[{each}] != {found.combining.neutral})",
        f"        {atomic_of(found.combining)}(&{found.base}[{each}], {own}[{each}]);",
    ]
    append_statements(unit, edits, end, lines)
    made = tuple(edit for one in sets.values() for edit in one.edits)
    return Rewrite(edits=made, assumptions=found.assumptions)


def _write_start(
    unit: SourceUnit, edits: EditSet, found: PrivateBins, names: tuple[str, str, str, str], capacity: int
) -> None:
    own, size, each, thread = names
    assert found.kernel.body is not None
    start = found.threads.thread
    comment = "The block's own bins" + (";" if not found.count.is_proven else ".")
    comment += " an index beyond them goes to memory at once." if not found.count.is_proven else ""
    lines = [
        f"// {comment}",
        f"constexpr unsigned {size} = {capacity};",
        f"__shared__ {found.combining.kind} {own}[{size}];",
    ]
    if start != "threadIdx.x":
        lines.append(f"const unsigned {thread} = {start};")
        start = thread
    lines += [
        f"for (unsigned {each} = {start}; {each} < {size}; {each} += {found.threads.threads})",
        f"    {own}[{each}] = {found.combining.neutral};",
        "__syncthreads();",
    ]
    first = named(found.kernel.body)[0]
    edits.insert_line_before(first, f"\n{unit.indent_of(first)}".join(lines))


def _write_update(
    unit: SourceUnit,
    edits: EditSet,
    found: PrivateBins,
    update: AtomicUpdate,
    names: tuple[str, str, str],
    context: SkillContext,
    indent: str,
) -> None:
    own, size, each = names
    statement = update.call.parent
    assert statement is not None
    index = _base_and_index(unit, update)[1]
    text = " ".join(unit.text_of(index).split())
    value = converted_value(unit, found.kernel, update, context)
    atomic = atomic_of(found.combining)
    if found.count.is_proven:
        edits.replace(statement, f"{atomic}(&{own}[{text}], {value});")
        return
    kind = ExpressionTypes(unit, found.kernel, template_bindings(unit, found.kernel, context)).of(index)
    whole = "unsigned long long" if is_wide(kind) else "unsigned"
    lines = []
    if index.type != "identifier":
        lines.append(f"const {kind} {each} = {text};")
        text = each
    tested = text if kind == whole else f"({whole}){text}"
    lines += [
        f"if ({tested} < {size})",
        f"    {atomic}(&{own}[{text}], {value});",
        "else",
        f"    {atomic}(&{found.base}[{text}], {value});",
    ]
    if index.type != "identifier" or not is_statement_of_block(statement):
        lines = ["{", *(f"    {line}" for line in lines), "}"]
    edits.replace(statement, f"\n{indent}{unit.indent_of(statement)}".join(lines))


def _added(found: PrivateBins, update: AtomicUpdate, work: int) -> str:
    """Return the indentation that a statement gets by what is put round it."""
    if work > 1:
        return "    "
    returns = found.end.returns if found.end is not None else ()
    return "    " * sum(one.end_byte <= update.call.start_byte for one in returns)
