"""Write a kernel of one row a thread as one of one row a group of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.skills.block_results import WORDS, block_result_function
from kernelskill.skills.common_end import after_comment
from kernelskill.skills.coverage import ceiling_text
from kernelskill.skills.device_code import fresh_name, place_before
from kernelskill.skills.kept_launches import kernel_copy, write_choice
from kernelskill.skills.launch_edits import components_of, edit_sets, write_shapes
from kernelskill.skills.loop_edits import indent_lines, is_statement_of_block, lead_of
from kernelskill.skills.memory_runs import Order, Run
from kernelskill.skills.row_accumulators import Accumulator, starts_neutral
from kernelskill.skills.row_loops import SharedLoop
from kernelskill.skills.row_program import RowProgram, refuse_unknown_names
from kernelskill.skills.row_scans import Scan
from kernelskill.skills.scan_stretches import LaneNames, scan_function, stretches
from kernelskill.skills.transformation import Rewrite, SkillContext
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import loop_body_statements
from kernelskill.source.syntax import Node, Span, named, span_of
from kernelskill.source.unit import SourceUnit

_WARP = 32
_SIMPLE = frozenset({"identifier", "number_literal", "parenthesized_expression", "field_expression"})
_SIMPLE |= {"subscript_expression", "call_expression"}


@dataclass(frozen=True)
class Group:
    """The threads that take a row together."""

    lanes: int
    block: int
    """Threads of a block."""
    is_block: bool
    """Whether the group is the whole block."""


class RowWriter:
    """Collects the edits of one kernel and its launches."""

    def __init__(
        self, unit: SourceUnit, program: RowProgram, group: Group, context: SkillContext, turns: int = 1
    ) -> None:
        """Prepare; `turns`: how many neighbouring turns of a running sum a lane takes."""
        self._turns = turns
        self._unit, self._program, self._group, self._context = unit, program, group, context
        self._sets = edit_sets(program.entries)
        self._edits = self._sets.setdefault(unit.path, EditSet(unit))
        self._taken: list[str] = []
        self._names = self._make_names()
        self._functions: dict[tuple[str, str], str] = {}

    def rewrite(self) -> Rewrite:
        """Return all edits.

        Raises:
            SkillRefused: What must be tested for overlap isn't known before the first loop.
        """
        self._write_index()
        if self._program.has_overlaps:
            self._write_overlaps()
        for shared in self._program.loops:
            if shared.scan is not None:
                self._write_scan(shared, shared.scan)
            else:
                self._write_loop(shared)
        for store in self._program.stores:
            self._write_store(store)
        first = self._program.first
        if self._program.has_overlaps and not is_statement_of_block(first):
            self._edits.insert_after(first, f"\n{self._unit.indent_of(first)}}}")
        self._write_launches()
        made = tuple(edit for edits in self._sets.values() for edit in edits.edits)
        notes = ("where memory overlaps, one lane does the row alone",) if self._program.has_overlaps else ()
        return Rewrite(edits=made, assumptions=self._program.assumptions, notes=notes)

    def _fresh(self, wanted: str) -> str:
        self._taken.append(fresh_name(self._unit, self._context, wanted, self._taken))
        return self._taken[-1]

    def _make_names(self) -> LaneNames:
        lane, group = self._fresh("lane"), self._fresh("row_lanes")
        lanes = self._fresh("lanes") if self._program.has_overlaps else group
        mask = "0xffffffffu" if self._group.lanes == _WARP else self._fresh("row_mask")
        return LaneNames(lane, lanes, group, mask, self._fresh("step"), self._fresh("other"))

    def _write_index(self) -> None:
        """Declare the lane and give the row's index its new meaning."""
        names, group = self._names, self._group
        guard = self._program.guard
        assert self._program.kernel.body is not None
        place = guard.variable.declaration if guard is not None else named(self._program.kernel.body)[0]
        if group.is_block:
            lines = [
                f"// The threads of a block share {'a row' if guard is not None else 'the work of one'}.",
                f"const int {names.lane} = threadIdx.x, {names.group} = blockDim.x;",
            ]
            row = "blockIdx.x"
        else:
            number = "A warp" if group.lanes == _WARP else f"{group.lanes} lanes of a warp"
            what = "a row" if guard is not None else "the work of one thread"
            lines = [
                f"// {number} share{'s' if group.lanes == _WARP else ''} {what}.",
                f"constexpr int {names.group} = {group.lanes};",
                f"const int {names.lane} = threadIdx.x % {names.group};",
            ]
            if group.lanes != _WARP:
                ones = f"{(1 << group.lanes) - 1:#x}u"
                lines.append(f"const unsigned {names.mask} = {ones} << (threadIdx.x % 32 - {names.lane});")
            row = f"blockIdx.x * (blockDim.x / {names.group}) + threadIdx.x / {names.group}"
        indent = self._unit.indent_of(place)
        self._edits.insert_line_before(place, f"\n{indent}".join(lines))
        if self._program.index is not None:
            self._edits.replace(self._program.index.node, row)

    def _write_overlaps(self) -> None:
        """Test before the first loop whether the lanes may share the row."""
        unit, names = self._unit, self._names
        place = self._program.first
        pairs = [pair for shared in self._program.loops for pair in shared.overlaps]
        for shared in self._program.loops:
            bounds = [shared.loop.start, shared.loop.bound] if shared.overlaps else []
            nodes = [node for pair in shared.overlaps for node in pair.nodes]
            for node in [*bounds, *nodes]:
                if node is not None:
                    own = {shared.loop.variable, shared.scan.name if shared.scan is not None else ""}
                    refuse_unknown_names(unit, self._program.kernel, node, place, own)
        opening = [] if is_statement_of_block(place) else ["{"]
        lines = [*opening, "// Lanes may share the row unless it stores to what it reads elsewhere."]
        ends: dict[Run, tuple[str, str]] = {}
        for run in dict.fromkeys(run for pair in pairs for run in (pair.first, pair.second)):
            begin, end = self._fresh(f"{run.base}_begin"), self._fresh(f"{run.base}_end")
            low, high = _ends(run)
            ends[run] = (begin, end)
            lines += [f"const size_t {begin} = {low};", f"const size_t {end} = {high};"]
        tests = []
        for pair in pairs:
            (begin, end), (start, stop) = ends[pair.first], ends[pair.second]
            same = f" || {begin} == {start}" if pair.is_in_place else ""
            tests.append(f"({end} <= {start} || {stop} <= {begin}{same})")
        apart = self._fresh("is_apart")
        joined = "\n    && ".join(tests)
        lines += f"const bool {apart} = {joined};".split("\n")
        lines += [
            f"const int {names.lanes} = {apart} ? {names.group} : 1;",
            f"if ({names.lane} >= {names.lanes})",
            "    return;",
        ]
        indent = unit.indent_of(place)
        self._edits.insert_line_before(place, f"\n{indent}".join(lines) + "\n")

    def _write_loop(self, shared: SharedLoop) -> None:
        loop, names = shared.loop, self._names
        assert loop.start is not None
        assert loop.step_statement is not None
        each = abs(shared.step)
        offset = names.lane if each == 1 else f"{names.lane} * {each}"
        sign = "+" if shared.step > 0 else "-"
        start = self._unit.text_of(loop.start)
        declared = getattr(loop.declared, "base_type", "auto")
        if (
            loop.start.type == "number_literal"
            and loop.start_value == 0
            and declared != "auto"
            and sign == "+"
        ):
            text = offset
        else:
            text = f"{start if loop.start.type in _SIMPLE else f'({start})'} {sign} {offset}"
        self._edits.replace(loop.start, text)
        amount = names.lanes if each == 1 else f"{each} * {names.lanes}"
        self._edits.replace(loop.step_statement, f"{loop.variable} {sign}= {amount}")
        before = self._sync_lines(loop.node, self._program.syncs_before)
        before += self._neutral_lines(shared)
        after = self._combine_lines(shared.accumulators)
        after += self._sync_lines(loop.node, self._program.syncs_after)
        place = loop.node if loop.pragma_span is None else loop.pragma_span
        self._surround(loop.node, place, before, after)

    def _write_scan(self, shared: SharedLoop, scan: Scan) -> None:
        """Write a loop over stretches of the row, in which each lane takes one turn, or some in a row."""
        loop, unit = shared.loop, self._unit
        indent = unit.indent_of(loop.node)
        text = stretches(unit, loop, scan, self._turns, self._names, self._fresh, self._combined_scan)
        statements = loop_body_statements(loop)
        first, last = statements[0], statements[-1]
        deep = "        " if self._turns == 1 else "                "
        opening = f"\n{indent}".join(text.opening) + f"\n{indent}{deep}"
        self._edits.replace(Span(loop.node.start_byte, first.start_byte), opening)
        for _ in range(1 if self._turns == 1 else 3):
            indent_lines(unit, self._edits, Span(first.start_byte, last.end_byte), first=False)
        closing = "".join(f"\n{indent}{line}" for line in text.closing)
        self._edits.replace(Span(after_comment(unit, last).end, loop.node.end_byte), closing)
        around = self._sync_lines(loop.node, self._program.syncs_before) + self._neutral_lines(shared)
        after = self._combine_lines(shared.accumulators)
        after += self._sync_lines(loop.node, self._program.syncs_after)
        place = loop.node if loop.pragma_span is None else loop.pragma_span
        self._surround(loop.node, place, around, after)

    def _combined_scan(self, scan: Scan, amount: str, total: str, before: str) -> list[str]:
        """Return what adds up the amounts of the lanes before, and of all; a lane alone starts from the sum so far."""
        names, kind = self._names, scan.kind
        guard = f"if ({names.lanes} > 1) " if self._program.has_overlaps else ""
        if self._group.is_block:
            return [f"{guard}{before} += {self._scan_function(kind)}({amount}, {total});"]
        if scan.test and scan.amount == "1" and self._turns == 1 and self._group.lanes == _WARP:
            takers = self._fresh("takers")
            inner = [
                f"const unsigned {takers} = __ballot_sync({names.mask}, {amount});",
                f"{before} += __popc({takers} & ((1u << {names.lane}) - 1));",
                f"{total} = __popc({takers});",
            ]
            return [f"{guard}{{", *(f"    {line}" for line in inner), "}"] if guard else inner
        mask, step, group = names.mask, names.step, names.group
        other, last = self._fresh("other_amount"), self._fresh("sum_before")
        inner = [
            f"for (int {step} = 1; {step} < {group}; {step} *= 2) {{",
            f"    const {kind} {other} = __shfl_up_sync({mask}, {total}, {step}, {group});",
            f"    if ({names.lane} >= {step}) {total} += {other};",
            "}",
            f"const {kind} {last} = __shfl_up_sync({mask}, {total}, 1, {group});",
            f"if ({names.lane} > 0) {before} += {last};",
            f"{total} = __shfl_sync({mask}, {total}, {group} - 1, {group});",
        ]
        return [f"{guard}{{", *(f"    {line}" for line in inner), "}"] if guard else inner

    def _scan_function(self, kind: str) -> str:
        key = (kind, "scan")
        if key not in self._functions:
            self._functions[key] = self._fresh("sum_before_thread")
            place = place_before(self._unit, self._program.kernel)
            self._edits.insert_before(place, scan_function(self._functions[key], kind) + "\n")
        return self._functions[key]

    def _neutral_lines(self, shared: SharedLoop) -> list[str]:
        found = []
        for one in shared.accumulators:
            if one.way.neutral and not starts_neutral(self._unit, self._program.kernel, shared.loop, one):
                found.append(f"{one.name} = {one.way.neutral};")
        if not found:
            return []
        opening = f"if ({self._names.lane} != 0)"
        if len(found) == 1:
            return [opening, f"    {found[0]}"]
        return [f"{opening} {{", *(f"    {line}" for line in found), "}"]

    def _combine_lines(self, accumulators: Sequence[Accumulator]) -> list[str]:
        if not accumulators:
            return []
        if self._group.is_block:
            guard = f"if ({self._names.lanes} > 1) " if self._program.has_overlaps else ""
            return [f"{guard}{one.name} = {self._function(one)}({one.name});" for one in accumulators]
        names = self._names
        head = f"for (int {names.step} = {names.lanes} / 2; {names.step} > 0; {names.step} /= 2)"
        inner: list[str] = []
        for one in accumulators:
            brought = f"__shfl_xor_sync({names.mask}, {one.name}, {names.step})"
            if one.way.takes_expressions:
                inner.append(one.way.statement(one.name, brought))
            else:
                other = names.other if len(accumulators) == 1 else self._fresh(f"other_{one.name}")
                inner += [f"const {one.kind} {other} = {brought};", one.way.statement(one.name, other)]
        lines = [head, f"    {inner[0]}"]
        if len(inner) > 1:
            lines = [f"{head} {{", *(f"    {line}" for line in inner), "}"]
        for one in accumulators:
            if one.way.is_extreme and one.kind in ("float", "double"):
                # Not a number, or zeros of both signs, may have come out differently in different lanes.
                width = f", {names.group}" if self._group.lanes != _WARP else ""
                guard = f"if ({names.lanes} > 1) " if self._program.has_overlaps else ""
                lines.append(f"{guard}{one.name} = __shfl_sync({names.mask}, {one.name}, 0{width});")
        return lines

    def _function(self, one: Accumulator) -> str:
        """Return the name of the function that combines over a block, written where it isn't there yet."""
        key = (one.kind, one.way.template)
        if key in self._functions:
            return self._functions[key]
        wanted = f"row_{WORDS[one.way.operator]}"
        before = self._unit.data[: self._program.kernel.span.start].decode().replace("\r\n", "\n")
        if block_result_function(wanted, one.kind, one.way) in before and wanted not in self._taken:
            self._functions[key] = wanted
            return wanted
        name = self._fresh(wanted)
        place = place_before(self._unit, self._program.kernel)
        self._edits.insert_before(place, block_result_function(name, one.kind, one.way) + "\n")
        self._functions[key] = name
        return name

    def _sync_lines(self, node: Node, wanted: frozenset[int]) -> list[str]:
        if span_of(node).start not in wanted:
            return []
        if self._group.is_block:
            return ["__syncthreads();"]
        return [f"__syncwarp({self._names.mask});" if self._group.lanes != _WARP else "__syncwarp();"]

    def _write_store(self, store: Node) -> None:
        before = self._sync_lines(store, self._program.syncs_before)
        after = self._sync_lines(store, self._program.syncs_after)
        test = f"if ({self._names.lane} == 0) "
        if before or after or is_statement_of_block(store):
            self._surround(store, store, before, after, test)
        else:
            self._edits.insert_before(store, f"{{ {test}")
            self._edits.insert_after(store, " }")

    def _surround(
        self, node: Node, place: Node | Span, before: list[str], after: list[str], lead: str = ""
    ) -> None:
        """Put lines before and after a statement, in braces where it stands alone."""
        indent = self._unit.indent_of(node)
        if (before or after) and not is_statement_of_block(node):
            if all(line.endswith(";") for line in [*before, *after]):
                self._edits.insert_before(place, " ".join(["{", *before, lead]))
                self._edits.insert_after(node, " ".join(["", *after, "}"]))
                return
            before, after = ["{", *before], [*after, "}"]
        if before:
            text = lead_of(self._unit, node, place) + f"\n{indent}".join(before)
            self._edits.insert_line_before(place, text)
        if lead:
            self._edits.insert_before(node, lead)
        if after:
            self._edits.insert_after(node, "".join(f"\n{indent}{line}" for line in after))

    def _write_launches(self) -> None:
        if self._program.guard is None:
            for entry in self._program.entries:
                write_shapes(self._sets[entry.unit.path], entry, None, [str(self._group.block), "1", "1"])
            return
        pairs = [
            (pair.first.base, pair.second.base)
            for shared in self._program.loops
            for pair in shared.overlaps
            if pair.takes_places
        ]
        kept = self._fresh(f"{self._program.kernel.name}_in_place") if pairs else ""
        if pairs:
            # The rows of one array that is compacted in place wait for one another in no other way than by their pace.
            copied = kernel_copy(self._unit, self._program.kernel, kept)
            self._edits.insert_before(place_before(self._unit, self._program.kernel), f"{copied}\n\n")
        for entry, cover in zip(self._program.entries, self._program.covers, strict=True):
            grid = components_of(entry.launch.grid, entry.launch.line)
            rows = 1 if self._group.is_block else self._group.block // self._group.lanes
            grid[0] = ceiling_text(cover.size, rows)
            block = [str(self._group.block), "1", "1"]
            edits = self._sets[entry.unit.path]
            shape = None if cover.block == self._group.block else block
            if pairs:
                write_choice(edits, entry, self._program.kernel, kept, pairs, grid, shape)
            else:
                write_shapes(edits, entry, grid, shape)


def _ends(run: Run) -> tuple[str, str]:
    """Return C text for the first byte of a run and the one behind its last."""
    low, high = f"(size_t)&{run.first}", f"(size_t)&{run.last} + {run.size}"
    if run.order is Order.ONE:
        return low, f"(size_t)&{run.first} + {run.size}"
    if run.order is Order.FALLING:
        return f"(size_t)&{run.last}", f"(size_t)&{run.first} + {run.size}"
    return low, high
