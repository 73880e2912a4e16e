"""Prefix sums over several launches: scans of blocks, a scan of what they add up to, and its addition to the elements."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import (
    Binary,
    Expression,
    Load,
    Select,
    loads,
    reductions,
)
from kernelskill.algorithm.lifting import Lifted
from kernelskill.algorithm.rewriting import rebuild
from kernelskill.algorithm.types import is_integer
from kernelskill.skills.launch_pairs import has_plain_arguments, lifted_launch, triples_after
from kernelskill.skills.launch_temporaries import refuse_kept
from kernelskill.skills.running_sums import RunningSums, is_zero, read_running_sums
from kernelskill.skills.scan_finder import find_scans
from kernelskill.skills.scan_points import BLOCK, ELEMENT, HostTerms, Point, limit_of, points_of, summands
from kernelskill.skills.scan_probes import ELEMENTS, EXCLUSIVE, INCLUSIVE, TOTAL, ScanProbes
from kernelskill.skills.shared_scans import Scan
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import LaunchSite
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True, eq=False)
class ScanChain:
    """Three launches in a row that together take a prefix sum."""

    launches: tuple[LaunchSite, LaunchSite, LaunchSite]
    scan: Scan
    before: Lifted
    """The half of the first kernel that makes the elements; all expressions are in its parameters."""
    element: Expression = field(repr=False)
    """What an element adds, for those that there are."""
    count: Expression
    """How many elements there are."""
    out: str
    """The parameter that gets the results."""
    is_exclusive: bool
    target: str = ""
    """Text of the array that gets the final results, where the first launch stores to a temporary."""

    @property
    def arguments(self) -> dict[str, str]:
        """Every parameter -> the text of its argument."""
        named = zip(self.before.kernel.parameters, self.launches[0].arguments, strict=False)
        return dict(self.before.arguments) | {parameter.name: given.text for parameter, given in named}


def find_chains(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, *, of_floats: bool
) -> list[ScanChain]:
    """Return the prefix sums that begin with launches of a kernel.

    Args:
        unit: The file.
        kernel: The kernel that scans blocks.
        context: What may be known besides.
        of_floats: Whether sums of floating-point numbers are meant, or those of integers.

    Raises:
        SkillRefused: There is none, with the reason.
    """
    triples = triples_after(unit, kernel.name)
    scans = find_scans(unit, kernel, context, of_floats=of_floats)
    if len(scans) != 1:
        raise SkillRefused("it scans more than once")
    found, reasons = [], []
    for triple in triples:
        try:
            found.append(_ChainReader(unit, kernel, triple, scans[0], context).read())
        except SkillRefused as refused:
            reasons.append(refused.reason)
    if not found:
        raise SkillRefused("; ".join(dict.fromkeys(reasons)))
    return found


class _ChainReader:
    def __init__(
        self,
        unit: SourceUnit,
        kernel: KernelDef,
        launches: tuple[LaunchSite, LaunchSite, LaunchSite],
        scan: Scan,
        context: SkillContext,
    ) -> None:
        self._unit, self._kernel, self._launches = unit, kernel, launches
        self._scan, self._context = scan, context

    def read(self) -> ScanChain:
        """Return the chain.

        Raises:
            SkillRefused: The launches do something else, or what they do can't be told.
        """
        unit, scan = self._unit, self._scan
        if not all(has_plain_arguments(unit, launch) for launch in self._launches):
            raise SkillRefused("an argument of the launches has side effects or calls a function")
        probes = ScanProbes(unit, self._kernel, self._launches[0], scan, self._context)
        host = HostTerms(probes.before, probes.twins)
        blocks = host.of(_one_row(probes.before))
        element = self._element(probes)
        out, sums, is_exclusive = self._stores(probes, element)
        behind = HostTerms(probes.behind, probes.twins)
        self._refuse_loads(element, host, behind.buffer(sums), behind.buffer(out.store.buffer))
        running = self._scanned(behind.buffer(sums), blocks)
        refuse_kept(self._unit, self._launches, self._context, (behind.buffer(sums), running.array))
        count = behind.count(out)
        local = behind.buffer(out.store.buffer)
        target = self._added(local, running, count)
        if target and any(host.root(load.buffer)[0] == local for load in loads(element)):
            raise SkillRefused(f"an element is made of what lies in {out.store.buffer!r}")
        return ScanChain(
            launches=self._launches,
            scan=scan,
            before=probes.before,
            element=self._whole(element, out.count, probes.before),
            count=out.count,
            out=out.store.buffer,
            is_exclusive=is_exclusive,
            target=target,
        )

    # the first launch

    def _element(self, probes: ScanProbes) -> Expression:
        points = points_of(probes.before, self._scan.threads)
        wanted = probes.buffer(ELEMENTS)
        if len(points) != 1 or points[0].store.buffer != wanted or points[0].guard:
            raise SkillRefused("it does more before the scan than to fetch its elements")
        point = points[0]
        if point.store.index != ELEMENT or point.store.value.depends_on(BLOCK.name):
            raise SkillRefused("what an element is depends on more than its number")
        whole = integers.multiply(_one_row(probes.before), integers.constant(self._scan.threads))
        if point.count != whole:
            raise SkillRefused("its blocks do not take neighbouring stretches of the array")
        return point.store.value

    def _refuse_loads(self, element: Expression, terms: HostTerms, sums: str, out: str) -> None:
        """Decline elements that are made of more than loads of arrays that no other element changes."""
        if reductions(element):
            raise SkillRefused("a loop makes each element")
        for load in loads(element):
            buffer, is_start = terms.root(load.buffer)
            is_own = is_start and load.index == ELEMENT
            if buffer == sums or (buffer == out and not is_own):
                raise SkillRefused(f"an element is made of what others store in {load.buffer!r}")

    def _stores(self, probes: ScanProbes, element: Expression) -> tuple[Point, str, bool]:
        """Return what stores the results, the parameter that gets the blocks' sums, and how the results are."""
        points = points_of(probes.behind, self._scan.threads)
        if len(points) != 2:
            raise SkillRefused("it stores more behind the scan than the results and the sums of blocks")
        sums = [point for point in points if self._is_sum(point, probes)]
        results = [point for point in points if point not in sums]
        if len(sums) != 1 or any(point.store.kind != self._scan.kind for point in points):
            raise SkillRefused("it does not store the sum of each block, or stores it as another type")
        (out,) = results
        if out.store.index != ELEMENT or out.guard:
            raise SkillRefused("some elements get no result, or another one's place")
        return out, sums[0].store.buffer, self._is_exclusive(out, probes, element)

    def _is_exclusive(self, out: Point, probes: ScanProbes, element: Expression) -> bool:
        """Return whether what is stored leaves out the element itself.

        Raises:
            SkillRefused: It is neither of the two.
        """
        value, own = (_within(each, out.count, holds=True) for each in (out.store.value, element))
        upto, before = (Load(probes.buffer(w), ELEMENT, self._scan.kind) for w in (INCLUSIVE, EXCLUSIVE))
        if value == upto:
            return False
        less = integers.subtract(upto, own) if is_integer(self._scan.kind) else None
        wrapped = Binary("-", upto, own, self._scan.kind)
        if value in (before, less, wrapped) or self._is_shifted(value, before):
            return True
        raise SkillRefused("what it stores for an element is not the scan's result alone")

    def _is_shifted(self, value: Expression, before: Expression) -> bool:
        """Whether a value is the result before an element, and zero for a block's first."""
        if not isinstance(value, Select):
            return False
        start = integers.multiply(integers.constant(self._scan.threads), BLOCK)
        own, zero = integers.subtract(ELEMENT, start), integers.constant(0)
        later = [Binary(op, own, zero, "bool") for op in (">", "!=")]
        later.append(Binary(">=", own, integers.constant(1), "bool"))
        if value.condition in later:
            return value.first == before and is_zero(value.second)
        is_first = value.condition == Binary("==", own, zero, "bool")
        return is_first and value.second == before and is_zero(value.first)

    def _is_sum(self, point: Point, probes: ScanProbes) -> bool:
        """Whether one thread of every block stores the block's sum."""
        size, kind = self._scan.threads, self._scan.kind
        start = integers.multiply(integers.constant(size), BLOCK)
        last = integers.add(start, integers.constant(size - 1))
        values = (Load(probes.buffer(TOTAL), BLOCK, kind), Load(probes.buffer(INCLUSIVE), last, kind))
        whole = integers.multiply(_one_row(probes.behind), integers.constant(size))
        if point.store.index != BLOCK or point.store.value not in values or point.count != whole:
            return False
        own = integers.subtract(ELEMENT, start)
        threads = [
            integers.value_of(part.right)
            for part in point.guard
            if isinstance(part, Binary) and part.op == "==" and part.left == own
        ]
        known = [number for number in threads if number is not None and 0 <= number < size]
        return len(known) == len(point.guard) <= 1

    def _whole(self, element: Expression, count: Expression, lifted: Lifted) -> Expression:
        """Return what an element that there is adds; the others must add nothing."""
        whole = integers.multiply(_one_row(lifted), integers.constant(self._scan.threads))
        if whole != count and not is_zero(_within(element, count, holds=False)):
            raise SkillRefused("threads beyond the last element may add something")
        return _within(element, count, holds=True)

    # the other launches

    def _scanned(self, sums: str, blocks: Expression) -> RunningSums:
        """Return the running sum of the blocks' sums that the second launch takes."""
        found = read_running_sums(lifted_launch(self._unit, self._launches[1]), sums, blocks, self._scan.kind)
        if found.totals:
            raise SkillRefused("the sum of all elements is stored, too")
        return found

    def _added(self, out: str, running: RunningSums, count: Expression) -> str:
        """Check that the last launch adds the sum of all blocks before to each result.

        Returns:
            Text of the array that gets the sums; empty where it is that of the results.
        """
        launch, kind = self._launches[2], self._scan.kind
        lifted = lifted_launch(self._unit, launch)
        terms, points = HostTerms(lifted), points_of(lifted, self._scan.threads)
        refusal = SkillRefused(
            f"{launch.kernel} does more, or else, than to add each block's sum to its results"
        )
        if len(points) != 1 or points[0].store.index != ELEMENT or points[0].store.kind != kind:
            raise refusal
        point = points[0]
        if terms.count(point) != count:
            raise SkillRefused(f"{launch.kernel} does not change the same elements")
        place = integers.subtract(BLOCK, integers.constant(1)) if running.includes_own else BLOCK
        first = (Binary(">", BLOCK, integers.constant(0), "bool"),) if running.includes_own else ()
        wanted = {Load(out, ELEMENT, kind), Load(running.array, place, kind)}
        parts = summands(terms.of(point.store.value)) or []
        if len(parts) != 2 or set(parts) != wanted or point.guard != first:
            raise refusal
        if terms.buffer(point.store.buffer) == out:
            return ""
        refuse_kept(self._unit, self._launches, self._context, (out,))
        if lifted.algorithm.parameter(point.store.buffer).view:
            raise refusal
        return dict(lifted.arguments)[point.store.buffer]


def _one_row(lifted: Lifted) -> Expression:
    """Return the number of blocks of a grid of one dimension."""
    if any(integers.value_of(size) != 1 for size in lifted.grid[1:]):
        raise SkillRefused("its grid has more than one dimension")
    return lifted.grid[0]


def _within(expression: Expression, count: Expression, *, holds: bool) -> Expression:
    """Return an expression for elements below a count, or for those beyond."""

    def change(node: Expression) -> Expression | None:
        limit = limit_of(node)
        if limit is None or limit[0] != count:
            return None
        return integers.constant(int(limit[1] == holds), "bool")

    return rebuild(expression, change)
