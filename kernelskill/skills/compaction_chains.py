"""Compactions over three launches: count in stretches, take the running sum of the counts, copy from the stretches."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import (
    Expression,
    Load,
    Loop,
    Reduce,
    Sym,
    loads,
    reductions,
)
from kernelskill.algorithm.lifting import Lifted
from kernelskill.algorithm.model import Axis
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import is_integer
from kernelskill.skills.launch_pairs import has_plain_arguments, lifted_launch, triples_after
from kernelskill.skills.launch_temporaries import refuse_kept
from kernelskill.skills.packed_stores import PackedKernel
from kernelskill.skills.running_sums import RunningSums, read_running_sums
from kernelskill.skills.scan_points import ELEMENT, HostTerms
from kernelskill.skills.stretches_of_elements import Choice, chosen, tests_of_count
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import LaunchSite
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True, eq=False)
class Compaction:
    """Three launches in a row that together keep the elements that pass some tests."""

    launches: tuple[LaunchSite, LaunchSite, LaunchSite]
    kind: str
    """Of the counts."""
    copied: Lifted = field(repr=False)
    """The last kernel; all expressions are in its parameters."""
    choice: Choice
    value: Expression
    """What is kept of an element."""
    kept: str
    """The parameter that gets it."""
    totals: tuple[str, ...]
    """Texts of the arguments whose first element gets the number of kept ones."""


def find_compactions(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Compaction]:
    """Return the compactions that begin with launches of a kernel.

    Raises:
        SkillRefused: There is none, with the reason.
    """
    found, reasons = [], []
    for triple in triples_after(unit, kernel.name):
        try:
            found.append(_Reader(unit, triple, context).read())
        except SkillRefused as refused:
            reasons.append(refused.reason)
    if not found:
        raise SkillRefused("; ".join(dict.fromkeys(reasons)))
    return found


class _Reader:
    def __init__(
        self,
        unit: SourceUnit,
        launches: tuple[LaunchSite, LaunchSite, LaunchSite],
        context: SkillContext,
    ) -> None:
        self._unit, self._launches, self._context = unit, launches, context

    def read(self) -> Compaction:
        """Return the compaction.

        Raises:
            SkillRefused: The launches do something else, or what they do can't be told.
        """
        unit, launches = self._unit, self._launches
        if not all(has_plain_arguments(unit, launch) for launch in launches):
            raise SkillRefused("an argument of the launches has side effects or calls a function")
        counted = lifted_launch(self._unit, launches[0])
        counts, kind, number, wanted = self._counted(counted)
        summing = lifted_launch(self._unit, launches[1])
        running = read_running_sums(summing, counts, number, kind)
        if running.includes_own:
            raise SkillRefused("the running sum includes each stretch's own count")
        packed = PackedKernel(unit, launches[2], self._context)
        choice, value = self._copied(packed, running, number)
        if choice.in_host_terms(HostTerms(packed.lifted)) != wanted:
            raise SkillRefused("what is copied may not be what is counted")
        refuse_kept(self._unit, self._launches, self._context, (counts, running.array))
        texts = dict(summing.arguments)
        return Compaction(
            launches=launches,
            kind=kind,
            copied=packed.lifted,
            choice=choice,
            value=value,
            kept=packed.store.buffer.name,
            totals=tuple(texts[name] for name in running.totals),
        )

    def _counted(
        self, lifted: Lifted
    ) -> tuple[str, str, Expression, tuple[frozenset[Expression], Expression]]:
        """Return the array of counts, their type and number, and what is counted; all as the launcher knows it."""
        algorithm, terms = lifted.algorithm, HostTerms(lifted)
        refusal = SkillRefused(f"{algorithm.kernel} does not count elements, a stretch a thread")
        if len(algorithm.axes) != 1 or len(algorithm.stores) != 1:
            raise refusal
        (axis,), (store,) = algorithm.axes, algorithm.stores
        value = store.value
        is_plain = not (store.loops or store.guard) and store.mode == "=" and store.index == _number(axis)
        if not isinstance(value, Reduce) or value.op != "+" or len(value.loops) != 1 or not is_plain:
            raise refusal
        tests = tests_of_count(value.body)
        if tests is None or integers.value_of(value.initial) != 0 or value.kind != store.kind:
            raise refusal
        if not is_integer(store.kind):
            raise refusal
        choice = chosen(axis, value.loops[0], tests, terms)
        wanted = choice.in_host_terms(terms)
        return terms.buffer(store.buffer), store.kind, terms.of(axis.upper), wanted

    def _copied(
        self, packed: PackedKernel, running: RunningSums, number: Expression
    ) -> tuple[Choice, Expression]:
        """Return which elements are copied, and what of each."""
        algorithm, terms = packed.lifted.algorithm, HostTerms(packed.lifted)
        refusal = SkillRefused(
            f"{self._launches[2].kernel} does more, or else, than to copy a stretch a thread"
        )
        stores = {store.buffer: store for store in algorithm.stores}
        if len(algorithm.axes) != 1 or len(algorithm.stores) != 2 or packed.values not in stores:
            raise refusal
        (axis,), values, firsts = algorithm.axes, stores[packed.values], stores.get(packed.firsts)
        if firsts is None or terms.of(axis.upper) != number or len(values.loops) != 1:
            raise refusal
        first, loop = firsts.value, values.loops[0]
        is_plain = not (firsts.loops or firsts.guard) and firsts.index == _number(axis)
        if not is_plain or not isinstance(first, Load) or first.index != _number(axis):
            raise refusal
        if terms.buffer(first.buffer) != running.array or values.mode != "=":
            raise refusal
        tests = [part for guard in values.guard for part in integers.conjuncts(guard)]
        choice = chosen(axis, loop, tests, terms)
        place, value = (self._of_element(each, axis, loop) for each in (values.index, values.value))
        if place != ELEMENT:
            raise refusal
        for each in (*choice.tests, value):
            self._refuse_loads(each, terms, running.array, terms.buffer(packed.store.buffer.name))
        return choice, value

    def _of_element(self, value: Expression, axis: Axis, loop: Loop) -> Expression:
        """Return an expression of a turn as one of its element."""
        place: Expression = ELEMENT
        if not loop.lower.depends_on(axis.name):
            place = integers.subtract(ELEMENT, integers.multiply(loop.upper, _number(axis)))
        value = substitute(value, {loop.name: place})
        if value.depends_on(axis.name):
            raise SkillRefused("what is copied of an element depends on more than its number")
        return value

    def _refuse_loads(self, expression: Expression, terms: HostTerms, sums: str, kept: str) -> None:
        if reductions(expression):
            raise SkillRefused("a loop decides about each element")
        for load in loads(expression):
            if terms.buffer(load.buffer) in (sums, kept) or load.index != ELEMENT:
                raise SkillRefused(f"{load.buffer!r} is read at other places than an element's own")


def _number(axis: Axis) -> Sym:
    return Sym(axis.name, axis.kind)
