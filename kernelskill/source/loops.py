"""Find the loops of a function with their variable, bounds, step and what happens inside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from tree_sitter import Node

from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.dimensions import local_constants
from kernelskill.source.scopes import LOOPS, Declared, Flow, flow_of
from kernelskill.source.syntax import Span, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.trip_counts import trip_count, trip_text
from kernelskill.source.unit import SourceUnit

BARRIERS = frozenset(
    {"__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count", "__syncwarp", "sync"}
    | {"arrive_and_wait", "__barrier_sync"}
)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "==": "=="}

_OPERANDS = frozenset(
    {"identifier", "number_literal", "field_expression", "parenthesized_expression", "call_expression"}
)


class LoopKind(StrEnum):
    """How a loop is written."""

    FOR = "for"
    WHILE = "while"
    DO = "do"
    RANGE = "range"


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop of a function."""

    kind: LoopKind
    key: str
    """`loop:k`; the second loop over `k` in the function is `loop:k#2`; without a variable `loop:while`."""
    variable: str
    """Empty where the condition and the step name no one variable."""
    declared: Declared | None
    start: Node | None
    bound: Node | None
    comparison: str
    """As if the variable stood on the left: `<`, `<=`, `>`, `>=`, `!=`."""
    step_operator: str
    """`+`, `-`, `*`, `/`, `<<` or `>>`; empty where unknown."""
    step: Node | None
    """The amount; None for `++` and `--`, whose amount is 1."""
    start_value: int | None
    bound_value: int | None
    step_value: int | None
    """Positive amount by which the operator changes the variable, where constant."""
    step_statement: Node | None
    """The expression that steps."""
    body: Node = field(repr=False)
    node: Node = field(repr=False)
    span: Span
    body_span: Span
    path: tuple[str, ...]
    """Keys from the outermost loop to this one."""
    is_innermost: bool
    has_barrier: bool
    has_break: bool
    has_continue: bool
    has_return: bool
    calls: tuple[str, ...]
    """Functions called in the body and header."""
    declares: tuple[str, ...]
    """Variables declared in the body or header."""
    is_counted: bool
    """Whether the variable changes by the step alone and the bound stays as it is."""
    trip_count: int | None
    trip_count_text: str
    """Iterations as an expression; empty where unknown."""
    pragma: str
    """The `#pragma unroll ...` above the loop; empty without."""
    pragma_span: Span | None
    line: int

    @property
    def depth(self) -> int:
        """1 for an outermost loop."""
        return len(self.path)

    @property
    def signed_step(self) -> int | None:
        """The step where the variable moves by a constant."""
        if self.step_value is None or self.step_operator not in ("+", "-"):
            return None
        return self.step_value if self.step_operator == "+" else -self.step_value


@dataclass(frozen=True)
class _Header:
    variable: str = ""
    declared: Declared | None = None
    start: Node | None = None
    bound: Node | None = None
    comparison: str = ""
    operator: str = ""
    step: Node | None = None
    statement: Node | None = None
    zero_bound: bool = False


def find_loops(unit: SourceUnit, function: FunctionDef) -> tuple[Loop, ...]:
    """Return the loops of a function in the order of the text."""
    if function.body is None:
        return ()
    reader = _LoopReader(unit, function, flow_of(unit, function), local_constants(function, unit.syntax))
    counts: dict[str, int] = {}
    keys: dict[int, str] = {}
    found: list[Loop] = []
    for node in walk(function.body):
        if node.type not in LOOPS:
            continue
        loop = reader.read(node)
        base = f"loop:{loop.variable or loop.kind.value}"
        counts[base] = counts.get(base, 0) + 1
        key = base if counts[base] == 1 else f"{base}#{counts[base]}"
        keys[node.id] = key
        outer = [keys[parent.id] for parent in ancestors(node) if parent.id in keys]
        found.append(replace(loop, key=key, path=(*reversed(outer), key)))
    return tuple(found)


def find_loop(unit: SourceUnit, function: FunctionDef, key: str) -> Loop | None:
    """Return the loop of that key."""
    return next((loop for loop in find_loops(unit, function) if loop.key == key), None)


def enclosing_loops(loops: tuple[Loop, ...], node: Node) -> tuple[Loop, ...]:
    """Return the loops whose body holds a node, outermost first."""
    return tuple(loop for loop in loops if loop.body_span.contains(span_of(node)))


@dataclass(frozen=True)
class _LoopReader:
    unit: SourceUnit
    function: FunctionDef
    flow: Flow
    locals: dict[str, Node]

    def read(self, node: Node) -> Loop:
        kind = {
            "for_statement": LoopKind.FOR,
            "while_statement": LoopKind.WHILE,
            "do_statement": LoopKind.DO,
            "for_range_loop": LoopKind.RANGE,
        }[node.type]
        body = node.child_by_field_name("body") or node
        header = self._header(node, body, kind)
        calls = tuple(dict.fromkeys(self._called(n) for n in walk(node) if n.type == "call_expression"))
        pragma, pragma_span = self._pragma(node)
        start, bound, step = (self._value(part) for part in (header.start, header.bound, header.step))
        if header.zero_bound:
            bound = 0
        if header.operator and header.step is None:
            step = 1
        counted = self._is_counted(node, header)
        return Loop(
            kind=kind,
            key="",
            variable=header.variable,
            declared=header.declared,
            start=header.start,
            bound=header.bound,
            comparison=header.comparison,
            step_operator=header.operator,
            step=header.step,
            start_value=start,
            bound_value=bound,
            step_value=step,
            step_statement=header.statement,
            body=body,
            node=node,
            span=span_of(node),
            body_span=span_of(body),
            path=(),
            is_innermost=not any(n.type in LOOPS for n in walk(node) if n != node),
            has_barrier=any(call.split(".")[-1].split("->")[-1] in BARRIERS for call in calls),
            has_break=_has_jump(body, "break_statement"),
            has_continue=_has_jump(body, "continue_statement"),
            has_return=any(n.type == "return_statement" for n in walk(body)),
            calls=calls,
            declares=tuple(v.name for v in self.function.locals if span_of(node).contains(v.name_span)),
            is_counted=counted,
            trip_count=trip_count(header.operator, header.comparison, start, bound, step)
            if counted
            else None,
            trip_count_text=self._trip_text(header, start, step) if counted else "",
            pragma=pragma,
            pragma_span=pragma_span,
            line=self.unit.line_of(node),
        )

    def _trip_text(self, header: _Header, start: int | None, step: int | None) -> str:
        if header.start is None or header.bound is None or header.operator != "+":
            return ""
        first, bound = self._operand(header.start), self._operand(header.bound)
        amount = self._operand(header.step) if header.step is not None and step is None else str(step)
        return trip_text(header.comparison, "" if start == 0 else first, bound, "" if step == 1 else amount)

    def _operand(self, node: Node) -> str:
        text = self.unit.text_of(node)
        return text if node.type in _OPERANDS else f"({text})"

    def _value(self, node: Node | None) -> int | None:
        return self.unit.constants.value(node, self.locals) if node is not None else None

    def _called(self, node: Node) -> str:
        function = node.child_by_field_name("function")
        return self.unit.text_of(function).split("<")[0] if function is not None else ""

    def _pragma(self, node: Node) -> tuple[str, Span | None]:
        for mask in self.unit.syntax.masks:
            between = self.unit.data[mask.end : node.start_byte] if mask.end <= node.start_byte else b"x"
            if mask.kind == "pragma" and not between.strip() and "unroll" in mask.meaning:
                return mask.meaning, Span(mask.start, mask.end)
        return "", None

    def _header(self, node: Node, body: Node, kind: LoopKind) -> _Header:
        condition = node.child_by_field_name("condition")
        if kind is LoopKind.RANGE or condition is None:
            return _Header()
        name, bound, comparison, zero = self._condition(strip_parentheses(condition), node, kind)
        if name is None:
            return _Header()
        declared = self.flow.resolve(name)
        if declared is None:
            return _Header()
        statement = self._step_statement(node, body, declared, kind)
        operator, step = self._step(statement, declared)
        return _Header(
            variable=declared.name,
            declared=declared,
            start=self._start(node, declared),
            bound=bound,
            comparison=comparison,
            operator=operator,
            step=step,
            statement=statement,
            zero_bound=zero,
        )

    def _condition(
        self, condition: Node, loop: Node, kind: LoopKind
    ) -> tuple[Node | None, Node | None, str, bool]:
        """Return the variable, the bound, the comparison, and whether the bound is a zero not written."""
        if condition.type == "identifier":
            return condition, None, "!=", True
        if condition.type != "binary_expression":
            return None, None, "", False
        left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
        comparison = self.unit.operator(condition)
        if left is None or right is None or comparison not in _MIRRORED:
            return None, None, "", False
        for name, bound, sign in ((left, right, comparison), (right, left, _MIRRORED[comparison])):
            name = strip_parentheses(name)
            if name.type == "identifier" and self._changes(name, loop):
                return name, bound, sign, False
        return None, None, "", False

    def _changes(self, name: Node, loop: Node) -> bool:
        declared = self.flow.resolve(name)
        if declared is None:
            return False
        inside = span_of(loop)
        return any(
            inside.contains(span_of(write.node))
            for write in self.flow.writes_to(declared)
            if write.operator != "init"
        )

    def _step_statement(self, node: Node, body: Node, declared: Declared, kind: LoopKind) -> Node | None:
        update = node.child_by_field_name("update") if kind is LoopKind.FOR else None
        place = update if update is not None else body
        steps = [
            write.node
            for write in self.flow.writes_to(declared)
            if span_of(place).contains(span_of(write.node)) and write.operator != "init"
        ]
        if len(steps) != 1:
            return None
        step = steps[0]
        if update is None:
            statement = step.parent
            plain = statement is not None and statement.type == "expression_statement"
            if not plain or statement is None or statement.parent != body:
                return None
        return step

    def _step(self, statement: Node | None, declared: Declared) -> tuple[str, Node | None]:
        if statement is None:
            return "", None
        operator = self.unit.operator(statement)
        if statement.type == "update_expression":
            return operator[:1], None
        right = statement.child_by_field_name("right")
        if statement.type != "assignment_expression" or right is None:
            return "", None
        if operator != "=":
            amount = operator[:-1]
            return (amount, right) if amount in ("+", "-", "*", "/", "<<", ">>") else ("", None)
        value = strip_parentheses(right)
        if value.type != "binary_expression":
            return "", None
        return self._assigned_step(value, declared)

    def _assigned_step(self, value: Node, declared: Declared) -> tuple[str, Node | None]:
        """Read `i = i + 2` and `i = 2 + i`."""
        left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
        operator = self.unit.operator(value)
        if left is None or right is None or operator not in ("+", "-", "*", "/", "<<", ">>"):
            return "", None
        if self._is_name(left, declared):
            return operator, right
        return (operator, left) if operator in ("+", "*") and self._is_name(right, declared) else ("", None)

    def _is_name(self, node: Node, declared: Declared) -> bool:
        node = strip_parentheses(node)
        return node.type == "identifier" and self.flow.resolve(node) is declared

    def _start(self, loop: Node, declared: Declared) -> Node | None:
        """Return the value that the variable has when the loop is entered."""
        initialiser = loop.child_by_field_name("initializer")
        inside = span_of(initialiser) if initialiser is not None else Span(0, 0)
        writes = self.flow.writes_to(declared)
        for write in writes:
            if inside.contains(span_of(write.node)):
                return write.value if write.is_plain else None
        before = [w for w in writes if not span_of(loop).contains(span_of(w.node))]
        reaching = [w for w in before if w.node.end_byte <= loop.start_byte]
        once = len(reaching) == 1 and reaching[0].is_plain and isinstance(declared, VariableDef)
        same_block = once and self._same_level(reaching[0].node, loop)
        return reaching[0].value if same_block else None

    def _same_level(self, write: Node, loop: Node) -> bool:
        """Whether no other loop lies between a definition and the loop that it starts."""
        outer = {node.id for node in ancestors(write)}
        return not any(node.type in LOOPS and node.id not in outer for node in ancestors(loop))

    def _is_counted(self, loop: Node, header: _Header) -> bool:
        if header.declared is None or not header.operator or not header.comparison:
            return False
        inside = span_of(loop)
        changing = [
            write
            for write in self.flow.writes_to(header.declared)
            if inside.contains(span_of(write.node))
            and write.node != header.statement
            and not self._is_initialiser(loop, write.node)
        ]
        parts = [part for part in (header.bound, header.step) if part is not None]
        return not changing and all(self._stays(part, loop) for part in parts)

    def _is_initialiser(self, loop: Node, node: Node) -> bool:
        initialiser = loop.child_by_field_name("initializer")
        return initialiser is not None and span_of(initialiser).contains(span_of(node))

    def _stays(self, node: Node, loop: Node) -> bool:
        """Whether an expression of plain variables keeps its value while the loop runs."""
        inside = span_of(loop)
        for entry in walk(node):
            if entry.type in ("assignment_expression", "update_expression", "subscript_expression"):
                return False
            if entry.type == "pointer_expression":
                return False
            declared = self.flow.resolve(entry) if entry.type == "identifier" else None
            if declared is not None and any(
                inside.contains(span_of(write.node)) for write in self.flow.writes_to(declared)
            ):
                return False
        return True


def _has_jump(body: Node, kind: str) -> bool:
    """Whether a `break` or `continue` of this loop, not of one inside it, stands in the body."""
    stoppers = {*LOOPS, "lambda_expression"} | ({"switch_statement"} if kind == "break_statement" else set())
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type == kind:
            return True
        if node is body or node.type not in stoppers:
            stack.extend(node.children)
    return False


def loop_body_statements(loop: Loop) -> tuple[Node, ...]:
    """Return the statements of a body, with or without braces."""
    return tuple(named(loop.body)) if loop.body.type == "compound_statement" else (loop.body,)
