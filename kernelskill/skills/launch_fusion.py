"""Fuse two launches in a row into one kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import cast

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.fusion import Fused, Pair, fuse
from kernelskill.algorithm.lifting import Lifted, lift
from kernelskill.algorithm.lowering.kernel import LaunchFacts, emit
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import Algorithm, CannotLift, IllegalMove, Parameter
from kernelskill.algorithm.renaming import bound_names, renamed
from kernelskill.algorithm.schedule import Schedule
from kernelskill.schema.task import Promise, Role
from kernelskill.skills.disjoint import PROMISED, distinct_types
from kernelskill.skills.launch_pairs import (
    Joined,
    LaunchPair,
    deletion_span,
    has_plain_arguments,
    host_values,
    join_names,
    only_launched_by,
    pairs_after,
    statement_of,
)
from kernelskill.skills.launch_temporaries import argument_source, is_temporary
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Span, span_of
from kernelskill.source.unit import SourceUnit

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_RESTRICT = re.compile(r"\s*\b__restrict(?:__)?\b")


def fusion_sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Return the launches of a kernel that can be fused with the launch behind them.

    Raises:
        SkillRefused: There are none, with the reason.
    """
    pairs = pairs_after(unit, kernel.name)
    if not pairs:
        raise SkillRefused("no launch follows its launch on the same stream, with nothing between them")
    found, reasons = [], []
    for pair in pairs:
        try:
            _LaunchFusion(unit, pair, context).fused()
        except SkillRefused as refused:
            reasons.append(refused.reason)
            continue
        reason = f"{pair.second.kernel} reads what {kernel.name} has just written, point by point"
        found.append(Site(key=_key(unit, pair), kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused("; ".join(dict.fromkeys(reasons)))
    return found


def fusion_rewrite(unit: SourceUnit, site: Site, context: SkillContext) -> Rewrite:
    """Return the edits that put one kernel in the place of two.

    Raises:
        SkillRefused: The launches are gone or can't be fused.
    """
    for pair in pairs_after(unit, site.kernel):
        if _key(unit, pair) == site.key:
            return _LaunchFusion(unit, pair, context).rewrite()
    raise SkillRefused(f"the launch of {site.kernel!r} is gone")


def _key(unit: SourceUnit, pair: LaunchPair) -> str:
    same = [p for p in pairs_after(unit, pair.first.kernel) if p.second.kernel == pair.second.kernel]
    number = [p.first.span for p in same].index(pair.first.span)
    return f"{pair.first.kernel}/before:{pair.second.kernel}" + (f"#{number + 1}" if number else "")


@dataclass(frozen=True)
class _Result:
    fused: Fused
    joined: Joined
    lifted: tuple[Lifted, Lifted]
    dropped: frozenset[str]
    arguments: dict[str, str]
    """Parameter of the one kernel -> text of its argument."""


class _LaunchFusion:
    def __init__(self, unit: SourceUnit, pair: LaunchPair, context: SkillContext) -> None:
        self._unit, self._pair, self._context = unit, pair, context
        self._function = unit.enclosing_function(pair.first.node)
        self._assumptions: dict[str, None] = {}

    def fused(self) -> _Result:
        """Return the one algorithm.

        Raises:
            SkillRefused: The launches can't be fused.
        """
        unit, pair = self._unit, self._pair
        scheduled = {s.kernel for s in self._context.scheduled if s.path == unit.path}
        if scheduled & {pair.first.kernel, pair.second.kernel}:
            raise SkillRefused("one of the kernels is scheduled already: fuse first")
        if not all(has_plain_arguments(unit, launch) for launch in (pair.first, pair.second)):
            raise SkillRefused("an argument of the launches has side effects or calls a function")
        try:
            lifted = lift(unit, pair.first), lift(unit, pair.second)
            names = Names([*self._identifiers(lifted), *_own_names(lifted)])
            joined = join_names(*lifted, names)
            values = cast("dict[str, Expression]", host_values(joined, lifted))
            name = names.fresh(_joined_name(pair.first.kernel, pair.second.kernel))
            dropped = frozenset(b for b in joined.origins if self._is_temporary(joined.arguments[b]))
            facts = _Overlap(self, joined)
            result = fuse(Pair(joined.first, joined.second, values), name, dropped=dropped, apart=facts.apart)
            algorithm = _with_own_names(facts.without_restrict(result.algorithm), lifted)
        except (CannotLift, IllegalMove) as refused:
            raise SkillRefused(refused.reason) from refused
        before = result.algorithm.parameters
        arguments = {
            fresh.name: joined.arguments[old.name]
            for old, fresh in zip(before, algorithm.parameters, strict=True)
        }
        return _Result(replace(result, algorithm=algorithm), joined, lifted, dropped, arguments)

    def rewrite(self) -> Rewrite:
        """Return the edits."""
        result = self.fused()
        algorithm, unit = result.fused.algorithm, self._unit
        mapped = self._pair.first if result.fused.mapped_as_first else self._pair.second
        facts = LaunchFacts(
            arguments=result.arguments,
            configuration=unit.text_of(mapped.configuration_span).removeprefix("<<<").removesuffix(">>>"),
            identifiers=frozenset(self._identifiers(result.lifted)),
        )
        try:
            emitted = emit(algorithm, Schedule(), facts)
        except IllegalMove as refused:
            raise SkillRefused(refused.reason) from refused
        text = f"{emitted.definitions}\n{emitted.kernel}" if emitted.definitions.strip() else emitted.kernel
        edits = self._edits(result, text.strip(), emitted.launch)
        removed = [b for b in result.fused.forwarded if b in result.dropped]
        notes = tuple(
            f"{result.joined.arguments[b]} is no longer written: nothing else reads it" for b in removed
        )
        return Rewrite(edits.edits, tuple(self._assumptions), (*algorithm.notes, *notes))

    def _edits(self, result: _Result, kernel: str, launch: str) -> EditSet:
        unit, edits = self._unit, EditSet(self._unit)
        definitions = {lifted.kernel.span.start: lifted.kernel for lifted in result.lifted}
        last = definitions[max(definitions)]
        for definition in definitions.values():
            gone = self._is_unused(definition)
            if definition is last:
                edits.replace(definition.span, kernel) if gone else edits.insert_after(
                    definition.span, f"\n\n{kernel}"
                )
            elif gone:
                edits.replace(deletion_span(unit, definition.span), "")
        first, second = statement_of(self._pair.first), statement_of(self._pair.second)
        assert first is not None
        assert second is not None
        edits.replace(deletion_span(unit, span_of(first)), "")
        edits.replace(second, launch)
        return edits

    def _identifiers(self, lifted: tuple[Lifted, Lifted]) -> list[str]:
        """Return the identifiers outside the two kernels."""
        spans = sorted({(one.kernel.span.start, one.kernel.span.end) for one in lifted})
        text, position = "", 0
        for start, end in spans:
            text += self._unit.text_of(Span(position, start)) + " "
            position = end
        return _IDENTIFIER.findall(text + self._unit.text_of(Span(position, len(self._unit.data))))

    def _is_unused(self, kernel: KernelDef) -> bool:
        """Whether nothing but the fused launches names a kernel."""
        return only_launched_by(self._unit, kernel, (self._pair.first, self._pair.second), self._context)

    def _is_temporary(self, argument: str) -> bool:
        """Whether nothing but the two launches uses what an argument points to."""
        launches = (self._pair.first, self._pair.second)
        return is_temporary(self._unit, self._function, argument, launches, self._context)

    # where pointers come from

    def source(self, argument: str) -> tuple[str, str] | None:
        """Return where a pointer argument comes from; None where unknown."""
        launches = (self._pair.first, self._pair.second)
        return argument_source(self._unit, self._function, argument, launches)

    def apart(self, one: tuple[str, str] | None, other: tuple[str, str] | None) -> bool:
        """Whether buffers of two sources cannot overlap."""
        if one is None or other is None or one == other:
            return False
        if "fresh" in (one[0], other[0]):
            return True
        function, task = self._function, self._context.task
        if function is None:
            return False
        given = {parameter.name: parameter for parameter in function.parameters}
        if any(given[source[1]].is_restrict for source in (one, other) if source[1] in given):
            return True
        if task is None or task.signature.symbol != function.name:
            return False
        if any(task.roles.get(source[1]) is Role.SCRATCH for source in (one, other)):
            return True
        if self._context.promises(Promise.NO_ALIAS):
            self._assumptions[PROMISED] = None
            return True
        return False


class _Overlap:
    """What is known of buffers that may overlap."""

    def __init__(self, fusion: _LaunchFusion, joined: Joined) -> None:
        self._fusion, self._joined = fusion, joined
        self._parameters = {p.name: p for p in (*joined.first.parameters, *joined.second.parameters)}

    def apart(self, one: str, other: str) -> bool:
        """Whether two buffers cannot overlap."""
        first, second = self._parameters[one], self._parameters[other]
        arguments = self._joined.arguments
        sources = self._fusion.source(arguments[one]), self._fusion.source(arguments[other])
        if self._fusion.apart(*sources):
            return True
        if None in sources or sources[0] == sources[1] or first.view or second.view:
            return False
        return distinct_types(first.kind, second.kind)

    def without_restrict(self, algorithm: Algorithm) -> Algorithm:
        """Take `__restrict__` off the parameters for which it would say more than the user's kernels did."""
        written = {store.buffer for store in algorithm.stores}
        pointers = [p.name for p in algorithm.parameters if p.is_pointer]
        changed: list[Parameter] = []
        for parameter in algorithm.parameters:
            others = [q for q in pointers if q != parameter.name and {q, parameter.name} & written]
            if parameter.is_restrict and not all(self._restricted(parameter.name, q) for q in others):
                text = _RESTRICT.sub(" ", parameter.text).replace("  ", " ").replace("* ", "* ")
                parameter = replace(parameter, text=text, is_restrict=False)
            changed.append(parameter)
        return replace(algorithm, parameters=tuple(changed))

    def _restricted(self, name: str, other: str) -> bool:
        """Whether a kernel of the user's says so of the two, one of which it writes."""
        sides = (self._joined.first, self._joined.second)
        for number, algorithm in enumerate(sides):
            has_both = all(any(n == number for n, _ in self._joined.origins[p]) for p in (name, other))
            if not has_both or not {name, other} & {store.buffer for store in algorithm.stores}:
                continue
            if any(algorithm.parameter(p).is_restrict for p in (name, other)):
                return True
        return self.apart(name, other)


def _own_names(lifted: tuple[Lifted, Lifted]) -> list[str]:
    """Return the names of parameters, axes, loops and states of two launches."""
    parameters = [p.name for one in lifted for p in one.algorithm.parameters]
    return parameters + [name for one in lifted for name in bound_names(one.algorithm)]


def _joined_name(first: str, second: str) -> str:
    """Return a name made of both, a common ending said once."""
    for ending in ("_kernel", "Kernel", "_k"):
        if first.endswith(ending) and second.endswith(ending) and len(first) > len(ending):
            return f"{first.removesuffix(ending)}_{second}"
    return f"{first}_{second}"


def _with_own_names(algorithm: Algorithm, lifted: tuple[Lifted, Lifted]) -> Algorithm:
    """Give axes and parameters the user's names again where these are free now."""
    present = [axis.name for axis in algorithm.axes] + [p.name for p in algorithm.parameters]
    wanted = {axis.name for one in lifted for axis in one.algorithm.axes}
    wanted |= {p.name for one in lifted for p in one.algorithm.parameters}
    taken = {*present, *algorithm.ranges}
    table = {}
    for name in present:
        plain = re.sub(r"_\d+$", "", name)
        if name not in wanted and plain in wanted and plain not in taken:
            table[name] = plain
            taken.add(plain)
    return renamed(algorithm, table) if table else algorithm
