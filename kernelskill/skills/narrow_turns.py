"""What one turn of a loop does to 64-bit variables that are small, followed statement by statement."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.loop_statements import expression_of
from kernelskill.skills.narrow_values import WIDE, NarrowValues, NotNarrow, Ranges, joined
from kernelskill.source.declarations import VariableDef
from kernelskill.source.expressions import static_type
from kernelskill.source.loops import Loop, LoopKind
from kernelskill.source.scopes import LOOPS, flow_of
from kernelskill.source.syntax import Node, named, span_of, strip_parentheses, walk

_SETS = ("=", "+=", "-=")
_NUMBERS = ("int", "unsigned", *WIDE)
_PARTS = frozenset({"switch_statement", *LOOPS})


@dataclass
class _State:
    """Ranges where a statement ends, and whether control gets there."""

    ranges: Ranges
    goes_on: bool = True


@dataclass
class NarrowTurn:
    """Follows one turn of a loop."""

    values: NarrowValues
    loop: Loop
    written: set[int] = field(default_factory=set)
    """Where the assignments to narrow variables begin that were followed."""
    continued: list[Ranges] = field(default_factory=list)

    def follow(self, bounds: Ranges) -> Ranges:
        """Return the ranges of the narrow variables behind a turn that begins with them in some.

        Raises:
            NotNarrow: A variable can't be narrow; it is named where one is to blame.
            TooLarge: A value may leave 32 bits.
        """
        node = self.loop.node
        condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        ranges = bounds
        if condition is not None:
            # Wherever it stands, it is asked once all variables are within their bounds.
            self.values.condition(condition, ranges)
            if self.loop.kind is not LoopKind.DO:
                ranges = self.values.refined(condition, ranges, True)
        end = self._run(self.loop.body, ranges)
        for other in self.continued:
            end = _State(_joined(end.ranges, other) if end.goes_on else other)
        if update is not None:
            end = self._effect(update, end.ranges)
        self._check_writes(bounds)
        return end.ranges

    def _check_writes(self, bounds: Ranges) -> None:
        """Decline a variable that is written where nobody followed it."""
        values, inside = self.values, self.loop.span
        start = self.loop.node.child_by_field_name("initializer")
        for write in flow_of(values.unit, values.function).writes:
            place = span_of(write.node)
            own = id(write.declared) in bounds or id(write.declared) in values.names
            is_start = start is not None and span_of(start).contains(place)
            if own and inside.contains(place) and not is_start and place.start not in self.written:
                line = values.unit.line_of(write.node)
                raise NotNarrow(
                    f"line {line} writes {write.declared.name!r} inside a statement", write.declared
                )

    def _run(self, node: Node, ranges: Ranges) -> _State:
        if node.type == "compound_statement":
            state = _State(ranges)
            for statement in named(node):
                after = self._run(statement, state.ranges)
                state = _State(after.ranges, state.goes_on and after.goes_on)
            return state
        if node.type == "expression_statement":
            inner = expression_of(node)
            return self._effect(inner, ranges) if inner is not None else _State(ranges)
        if node.type == "declaration":
            return self._declare(node, ranges)
        if node.type == "if_statement":
            return self._branch(node, ranges)
        places = walk(node) if node.type in _PARTS else [node]
        if any(entry.type == "continue_statement" for entry in places):
            self.continued.append(ranges)
        self.values.opaque(node)
        ends = node.type in ("continue_statement", "break_statement", "return_statement")
        return _State(ranges, not ends)

    def _branch(self, node: Node, ranges: Ranges) -> _State:
        condition, taken = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        other = node.child_by_field_name("alternative")
        if condition is None or taken is None or len(named(condition)) != 1:
            self.values.opaque(node)
            return _State(ranges)
        self.values.condition(condition, ranges)
        first = self._run(taken, self.values.refined(condition, ranges, True))
        second = _State(self.values.refined(condition, ranges, False))
        if other is not None:
            inner = named(other)[0] if other.type == "else_clause" else other
            second = self._run(inner, second.ranges)
        if first.goes_on and second.goes_on:
            return _State(_joined(first.ranges, second.ranges))
        if first.goes_on or second.goes_on:
            return first if first.goes_on else second
        return _State(_joined(first.ranges, second.ranges), goes_on=False)

    def _declare(self, node: Node, ranges: Ranges) -> _State:
        """Follow a declaration; its narrow variables are declared as such."""
        found, values = dict(ranges), self.values
        own = [v for v in values.function.locals if v.declaration == node]
        narrow = [v for v in own if id(v) in values.names]
        for variable in own:
            value = variable.initialiser
            if variable in narrow and len(narrow) != len(own):
                raise NotNarrow(f"{variable.name!r} is declared together with others", variable)
            if variable not in narrow:
                if value is not None and not value.type.endswith("_list") and _is_integer(values, variable):
                    values.tried(value, found)
                elif value is not None:
                    values.opaque(value)
                continue
            self.written.add(variable.declarator.start_byte)
            found[id(variable)] = (0, 0)  # reading it before it has a value means nothing
            if value is not None:
                try:
                    found[id(variable)] = values.value(value, found)
                except NotNarrow as refused:
                    raise type(refused)(str(refused), variable) from refused
        kind = node.child_by_field_name("type")
        if narrow and kind is not None:
            values.changes.append((kind, "unsigned"))
        return _State(found)

    def _effect(self, node: Node, ranges: Ranges) -> _State:
        """Follow an expression that stands for what it does."""
        node, values = strip_parentheses(node), self.values
        if node.type == "comma_expression":
            for side in named(node):
                ranges = self._effect(side, ranges).ranges
            return _State(ranges)
        target = None
        if node.type in ("assignment_expression", "update_expression"):
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        declared = values.member(target) if target is not None else None
        if declared is not None:
            self.written.add(node.start_byte)
            try:
                return _State({**ranges, id(declared): values.assigned(node, declared, ranges)})
            except NotNarrow as refused:
                raise type(refused)(str(refused), declared) from refused
        right = node.child_by_field_name("right")
        whole = node.type == "assignment_expression" and values.unit.operator(node) in _SETS
        plain = whole and target is not None and target.type == "identifier"
        if plain and right is not None and target is not None and values.kind(target) in _NUMBERS:
            values.tried(right, ranges)
        else:
            values.opaque(node)
        return _State(ranges)


def _is_integer(values: NarrowValues, variable: VariableDef) -> bool:
    if variable.base_type == "auto":  # its type is that of its value
        return False
    kind = static_type(values.unit, values.function, _name_of(variable))
    return kind in ("bool", *_NUMBERS)


def _name_of(variable: VariableDef) -> Node:
    node = variable.declarator
    while (inner := node.child_by_field_name("declarator")) is not None:
        node = inner
    return node


def _joined(left: Ranges, right: Ranges) -> Ranges:
    """Return the ranges behind two ways; what one of them does not know has ended its life."""
    return {key: joined(left[key], right[key]) for key in left if key in right}
