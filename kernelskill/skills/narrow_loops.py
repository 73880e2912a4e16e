"""Loops over 64-bit integers whose turns can be done in 32 bits while the values are small enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelskill.skills.device_code import BARRIERS, WARP_WORDS, fresh_name, words_outside
from kernelskill.skills.expression_types import is_pure, is_unsigned, plain_type
from kernelskill.skills.global_index import joined_tests
from kernelskill.skills.narrow_turns import NarrowTurn
from kernelskill.skills.narrow_values import MOST, WIDE, NarrowValues, NotNarrow, TooLarge
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import Replacement
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.expressions import static_type
from kernelskill.source.loops import Loop, LoopKind
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, ancestors, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

LEAST = (1 << 12) - 1
"""Bounds below this are not worth a copy of a loop."""
_LONGEST = 100
"""Statements of a loop that is copied."""
_SHRINKING = frozenset({"/", "%", ">>", "&", "-", "/=", "%=", ">>=", "&=", "-=", "--"})
_COMPUTED = frozenset({"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"})


@dataclass(frozen=True)
class NarrowVariable:
    """A 64-bit variable with a copy of 32 bits."""

    declared: Declared
    name: str
    """Of the copy."""
    bound: int
    """Up to which a turn may begin with it."""
    is_tested: bool
    """Whether a turn that begins within the bounds may end beyond this one."""
    is_written: bool
    is_unsigned: bool


@dataclass(frozen=True)
class NarrowLoop:
    """A loop, and what of its text changes in the copy that is done in 32 bits."""

    loop: Loop
    variables: tuple[NarrowVariable, ...]
    """Those that live before and after the loop."""
    changes: tuple[Replacement, ...]
    needs_condition: bool
    """Whether a variable certainly has a value only where the condition of the loop holds."""
    turns: int = 1
    """That the bounds allow without another test."""

    @property
    def names(self) -> str:
        """The variables of the original, as a part of a site's key."""
        return "+".join(entry.declared.name for entry in self.variables)


def read_narrow(
    unit: SourceUnit, function: FunctionDef, loop: Loop, context: SkillContext, turns: int = 1
) -> NarrowLoop | None:
    """Return how the turns of a loop are done in 32 bits; None where it steps no 64-bit integer but indices.

    Args:
        unit: The file.
        function: Where the loop stands.
        loop: The loop.
        context: For names that nobody uses.
        turns: How many turns in a row must fit once the variables are within their bounds.

    Raises:
        SkillRefused: They can't be, or nothing would be gained.
    """
    chosen, reason = _candidates(unit, function, loop), ""
    if not chosen:
        return None
    _refuse_shape(unit, function, loop, context)
    written = [one for one in chosen if _is_written(unit, function, loop, one)]
    chosen = [
        one
        for one in chosen
        if one not in written
        or (_may_shrink(unit, function, loop, one) and _is_computed_with(unit, function, loop, one))
    ]
    for one in chosen:
        if _has_copy(unit, function, one):
            raise SkillRefused(f"{one.name!r} has a copy of 32 bits already")
    while any(one in written and not _is_inside(loop, one) for one in chosen):
        try:
            return _bounded(unit, function, loop, chosen, context, turns)
        except NotNarrow as refused:
            reason = reason or str(refused)
            chosen = [one for one in chosen if one is not refused.declared and refused.declared is not None]
    raise SkillRefused(reason or f"line {loop.line}: what the loop computes in 64 bits only grows")


def _refuse_shape(unit: SourceUnit, function: FunctionDef, loop: Loop, context: SkillContext) -> None:
    """Decline loops that can't be written twice, or whose conditions can't be asked more often."""
    line = f"the loop on line {loop.line}"
    if loop.kind is LoopKind.RANGE:
        raise SkillRefused(f"{line} walks over a range")
    if unit.is_locked(loop.node):
        raise SkillRefused(f"{line} is locked")
    if sum(node.type.endswith("_statement") for node in walk(loop.body)) > _LONGEST:
        raise SkillRefused(f"{line} is too long for a second copy")
    condition = loop.node.child_by_field_name("condition")
    if condition is not None:
        if any(node.type in ("declaration", "init_declarator") for node in walk(condition)):
            raise SkillRefused(f"{line} declares a variable in its condition")
        if not is_pure(unit, condition):
            raise SkillRefused(f"the condition of {line} does more than test")
    refuse_unclear(unit, function, loop.node, context)
    if loop.calls and words_outside(unit, function, context) & (BARRIERS | WARP_WORDS):
        raise SkillRefused(f"{line} may call a function in which threads meet")


def _candidates(unit: SourceUnit, function: FunctionDef, loop: Loop) -> list[Declared]:
    """Return the 64-bit variables that could have a copy of 32 bits."""
    found: dict[int, Declared] = {}
    for node in walk(loop.node):
        declared = flow_of(unit, function).resolve(node) if node.type == "identifier" else None
        if declared is None or id(declared) in found or not _is_own_scalar(unit, function, declared):
            continue
        if static_type(unit, function, node) in WIDE and not _is_index(unit, function, loop, declared):
            found[id(declared)] = declared
    chosen = [one for one in found.values() if _is_written(unit, function, loop, one)]
    if not chosen:
        return []
    read = [
        one for one in found.values() if one not in chosen and _is_computed_with(unit, function, loop, one)
    ]
    return chosen + read


def _is_own_scalar(unit: SourceUnit, function: FunctionDef, declared: Declared) -> bool:
    """Whether a variable is the thread's own, and seen by nobody who could change it unseen."""
    if declared.pointer_depth or declared.is_reference:
        return False
    own: Sequence[Declared] = (*function.locals, *function.parameters)
    if not any(declared is one for one in own):
        return False
    if isinstance(declared, VariableDef):
        value = declared.initialiser
        literal = declared.is_const and value is not None and value.type == "number_literal"
        if literal or declared.storage is not Storage.LOCAL or declared.dimensions:
            return False
    writes = flow_of(unit, function).writes_to(declared)
    return not any(write.operator in ("&", "asm", "lambda", "range") for write in writes)


def _uses(unit: SourceUnit, function: FunctionDef, node: Node, declared: Declared) -> Iterator[Node]:
    flow = flow_of(unit, function)
    for entry in walk(node):
        if (
            entry.type == "identifier"
            and unit.text_of(entry) == declared.name
            and flow.resolve(entry) is declared
        ):
            yield entry


def _is_inside(loop: Loop, declared: Declared) -> bool:
    """Whether a variable lives for one turn."""
    return loop.body_span.contains(declared.name_span)


def _has_copy(unit: SourceUnit, function: FunctionDef, declared: Declared) -> bool:
    """Whether a 32-bit variable begins with the value of a wider one."""
    flow = flow_of(unit, function)
    for variable in function.locals:
        value = variable.initialiser
        if value is None or value.type != "cast_expression" or plain_type(variable.base_type) != "unsigned":
            continue
        inner = value.child_by_field_name("value")
        if inner is not None and inner.type == "identifier" and flow.resolve(inner) is declared:
            return True
    return False


def _is_index(unit: SourceUnit, function: FunctionDef, loop: Loop, declared: Declared) -> bool:
    """Whether a variable counts turns or picks elements: it is another skill's."""
    if loop.declared is declared and loop.is_counted and loop.step_operator in ("+", "-", "*", "<<"):
        return True
    for use in _uses(unit, function, loop.node, declared):
        for parent in ancestors(use):
            if parent.type in ("subscript_expression", "pointer_expression"):
                return True
            if parent == loop.node or parent.type.endswith("_statement"):
                break
    return False


def _writes(unit: SourceUnit, function: FunctionDef, loop: Loop, declared: Declared) -> list[Node]:
    """Return the places of a loop that give a variable a value, without those of its header's start."""
    start = loop.node.child_by_field_name("initializer")
    places = [write.node for write in flow_of(unit, function).writes_to(declared)]
    return [
        node
        for node in places
        if loop.span.contains(span_of(node))
        and not (start is not None and span_of(start).contains(span_of(node)))
    ]


def _is_written(unit: SourceUnit, function: FunctionDef, loop: Loop, declared: Declared) -> bool:
    return bool(_writes(unit, function, loop, declared))


def _may_shrink(unit: SourceUnit, function: FunctionDef, loop: Loop, declared: Declared) -> bool:
    """Whether a variable does more than grow: sums leave 32 bits once and for all."""
    if _is_inside(loop, declared):
        return True
    for node in _writes(unit, function, loop, declared):
        right = node.child_by_field_name("right")
        operators = {unit.operator(node)}
        if right is not None:
            operators |= {unit.operator(entry) for entry in walk(right) if entry.type == "binary_expression"}
            if unit.operator(node) == "=" and not any(True for _ in _uses(unit, function, right, declared)):
                return True
        if operators & _SHRINKING:
            return True
    return False


def _is_computed_with(unit: SourceUnit, function: FunctionDef, loop: Loop, declared: Declared) -> bool:
    """Whether a variable goes into more than comparisons."""
    start = loop.node.child_by_field_name("initializer")
    for use in _uses(unit, function, loop.node, declared):
        node, parent = use, use.parent
        while parent is not None and parent.type in ("parenthesized_expression", "conditional_expression"):
            node, parent = parent, parent.parent
        if parent is None or (start is not None and span_of(start).contains(span_of(use))):
            continue
        if parent.type == "binary_expression" and unit.operator(parent) in _COMPUTED:
            return True
        if parent.type == "assignment_expression":
            if unit.operator(parent) != "=" or parent.child_by_field_name("right") == node:
                return True
        elif parent.type in ("init_declarator", "update_expression", "unary_expression"):
            return True
    return False


def _bounded(
    unit: SourceUnit,
    function: FunctionDef,
    loop: Loop,
    chosen: list[Declared],
    context: SkillContext,
    turns: int,
) -> NarrowLoop:
    """Return the loop with the largest bounds within which no value leaves 32 bits.

    Raises:
        NotNarrow: A variable can't be narrow, or nothing would be gained.
    """
    inner = [one for one in chosen if _is_inside(loop, one)]
    outer = [one for one in chosen if one not in inner]
    needs_condition = _have_values(unit, function, loop, outer)
    names = {id(one): one.name for one in inner}
    for one in outer:
        names[id(one)] = fresh_name(unit, context, f"{one.name}_32", names.values())
    search = _Search(unit, function, loop, outer, names, turns)
    bounds = search.bounds()
    values, ends = search.follow(bounds)
    if not values.operations:
        raise NotNarrow(f"the loop on line {loop.line} computes nothing in 64 bits", chosen[0])
    return NarrowLoop(
        loop=loop,
        variables=tuple(
            NarrowVariable(
                declared=one,
                name=names[id(one)],
                bound=bounds[id(one)],
                is_tested=ends[id(one)] > bounds[id(one)],
                is_written=_is_written(unit, function, loop, one),
                is_unsigned=is_unsigned(search.kind(one)),
            )
            for one in outer
        ),
        changes=tuple(values.changes),
        needs_condition=needs_condition,
        turns=turns,
    )


def _have_values(unit: SourceUnit, function: FunctionDef, loop: Loop, outer: Sequence[Declared]) -> bool:
    """Return whether the condition has to hold before all variables can be read.

    Raises:
        NotNarrow: A variable may have no value even then.
    """
    condition = loop.node.child_by_field_name("condition")
    first = condition if loop.kind is not LoopKind.DO else None
    tests = joined_tests(unit, strip_parentheses(first), "&&") if first is not None else []
    sure = [test for test in tests if not any(_is_choice(unit, node) for node in walk(test))]
    needed = False
    for one in outer:
        if isinstance(one, ParameterDef) or one.initialiser is not None or loop.span.contains(one.name_span):
            continue
        needed = True
        if not any(True for test in sure for _ in _uses(unit, function, test, one)):
            raise NotNarrow(f"{one.name!r} may have no value before the loop on line {loop.line}", one)
    return needed


def _is_choice(unit: SourceUnit, node: Node) -> bool:
    return node.type == "conditional_expression" or unit.operator(node) in ("||", "&&")


@dataclass(frozen=True)
class _Search:
    """Finds the bounds of the variables that live before a loop."""

    unit: SourceUnit
    function: FunctionDef
    loop: Loop
    outer: Sequence[Declared]
    names: dict[int, str]
    turns: int

    def follow(self, bounds: dict[int, int]) -> tuple[NarrowValues, dict[int, int]]:
        """Return what a turn changes in the text, and the largest values behind the last one."""
        values, largest = self._turn(bounds)
        for _ in range(self.turns - 1):
            values, largest = self._turn(largest)
        return values, largest

    def _turn(self, bounds: dict[int, int]) -> tuple[NarrowValues, dict[int, int]]:
        values = NarrowValues(self.unit, self.function, self.names)
        ends = NarrowTurn(values, self.loop).follow({key: (0, bound) for key, bound in bounds.items()})
        return values, {key: ends[key][1] for key in bounds}

    def kind(self, declared: Declared) -> str:
        """Return the type of a variable."""
        use = next(_uses(self.unit, self.function, self.loop.node, declared))
        return static_type(self.unit, self.function, use)

    def _same(self, bound: int) -> dict[int, int]:
        return {id(one): bound for one in self.outer}

    def _tested(self, bounds: dict[int, int]) -> set[int] | None:
        """Return the variables that may end beyond their bounds; None where a value may leave 32 bits."""
        try:
            _, ends = self.follow(bounds)
        except TooLarge:
            return None
        return {key for key in bounds if ends[key] > bounds[key]}

    def bounds(self) -> dict[int, int]:
        """Return the largest bounds.

        Raises:
            NotNarrow: They are too small, or a variable can't be narrow.
        """
        low, high = LEAST, MOST
        if self._tested(self._same(high)) is not None:
            low = high
        else:
            self.follow(self._same(low))
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._tested(self._same(middle)) is not None
            low, high = (middle, high) if fits else (low, middle)
        bounds = self._same(low)
        tested = self._tested(bounds)
        for one in self.outer:
            # A bound that is larger, too, spares tests of values that do not matter.
            wider = {**bounds, id(one): MOST}
            found = self._tested(wider)
            if found is not None and tested is not None and found <= tested:
                bounds = wider
        return bounds
