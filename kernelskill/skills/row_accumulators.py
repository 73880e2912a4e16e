"""Variables that a loop only accumulates into, and how partial results of one are combined."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_integer
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.declarations import ParameterDef, Storage
from kernelskill.source.definitions import KernelDef
from kernelskill.source.expansion import expand_macro, parse_expression
from kernelskill.source.literals import read_number
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import Declared, Write, flow_of
from kernelskill.source.syntax import Node, SyntaxTree, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_KINDS = frozenset(
    {"float", "double", "int", "unsigned", "long", "unsigned long", "long long", "unsigned long long"}
)
_MAXIMA = frozenset({"max", "fmaxf", "fmax"})
_MINIMA = frozenset({"min", "fminf", "fmin"})
_FUSED = frozenset({"fmaf", "fma", "__fmaf_rn", "__fma_rn"})
_SIGNS = ("+", "*", "&", "|", "^")
_NEUTRAL = {"+": "0", "*": "1", "|": "0", "^": "0"}


@dataclass(frozen=True)
class Way:
    """One way to accumulate."""

    operator: str
    """`+`, `*`, `&`, `|`, `^`, `max` or `min`."""
    template: str
    """A C statement with `{a}` for the variable and `{b}` for another partial result."""
    is_macro: bool = False
    """Whether a macro combines, so that its arguments may be evaluated more than once."""

    @property
    def neutral(self) -> str:
        """C text that an idle lane starts with; empty where any lane may start with the value so far."""
        return _NEUTRAL.get(self.operator, "")

    @property
    def is_extreme(self) -> bool:
        """Whether it picks one of its values."""
        return self.operator in ("max", "min")

    @property
    def takes_expressions(self) -> bool:
        """Whether `{b}` may be more than a name: it is evaluated once, whatever comes out."""
        return self.template.count("{b}") == 1 and not self.is_macro

    def statement(self, variable: str, other: str) -> str:
        """Return the statement that combines another partial result into a variable."""
        return self.template.replace("{a}", variable).replace("{b}", other)


@dataclass(frozen=True, eq=False)
class Accumulator:
    """One variable that a loop accumulates into."""

    declared: Declared = field(repr=False)
    kind: str
    way: Way

    @property
    def name(self) -> str:
        return self.declared.name


@dataclass(frozen=True)
class _Update:
    way: Way
    uses: tuple[int, ...]
    """Where the update itself names the variable, by start byte."""


def read_accumulators(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, besides: Declared | None = None
) -> tuple[Accumulator, ...]:
    """Return the variables declared outside a loop that it changes, `besides` left out.

    Raises:
        SkillRefused: A turn of the loop needs what another left in one of them.
    """
    flow = flow_of(unit, kernel)
    groups: dict[int, list[Write]] = {}
    for write in flow.writes:
        outside = not loop.span.contains(write.declared.name_span)
        if write.declared is besides or write.declared is loop.declared:
            continue
        if loop.span.contains(span_of(write.node)) and outside:
            groups.setdefault(id(write.declared), []).append(write)
    kept = [writes for writes in groups.values() if not is_temporary(unit, kernel, loop, writes[0].declared)]
    return tuple(_read_accumulator(unit, kernel, loop, writes) for writes in kept)


def is_temporary(unit: SourceUnit, kernel: KernelDef, loop: Loop, declared: Declared) -> bool:
    """Whether each turn sets a variable before it reads it, and nothing reads it after the loop."""
    flow = flow_of(unit, kernel)
    is_local = isinstance(declared, ParameterDef) or declared.storage is Storage.LOCAL
    if not is_local or declared.is_reference or kernel.body is None:
        return False
    targets = {w.node.child_by_field_name("left") for w in flow.writes_to(declared) if w.operator == "="}
    for node in walk(kernel.body):
        is_use = node.type == "identifier" and unit.text_of(node) == declared.name
        if not is_use or node in targets or flow.resolve(node) is not declared:
            continue
        if node.start_byte == declared.name_span.start:
            continue
        write = flow.reaching(node, declared)
        if write is None or loop.span.contains(span_of(write.node)) != loop.span.contains(span_of(node)):
            return False
    return True


def _read_accumulator(unit: SourceUnit, kernel: KernelDef, loop: Loop, writes: list[Write]) -> Accumulator:
    declared = writes[0].declared
    refusal = SkillRefused(
        f"each turn of the loop on line {loop.line} needs what the last one left in {declared.name!r}"
    )
    is_local = isinstance(declared, ParameterDef) or declared.storage is Storage.LOCAL
    kind = ExpressionTypes(unit, kernel).of_name(declared.name, writes[0].node)
    if kind not in _KINDS or not is_local or declared.is_reference:
        raise refusal
    updates = [_read_update(unit, kernel, write) for write in writes]
    known = [update for update in updates if update is not None]
    if not all(
        _keeps_type(unit, kernel, write, update.way, kind)
        for write, update in zip(writes, known, strict=False)
    ):
        raise refusal
    ways = {update.way for update in known}
    if len(known) != len(updates) or len(ways) != 1:
        raise refusal
    flow = flow_of(unit, kernel)
    uses = {
        node.start_byte
        for node in walk(loop.node)
        if node.type == "identifier"
        and unit.text_of(node) == declared.name
        and flow.resolve(node) is declared
    }
    if uses != {start for update in known for start in update.uses}:
        raise refusal
    return Accumulator(declared, kind, ways.pop())


def _keeps_type(unit: SourceUnit, kernel: KernelDef, write: Write, way: Way, kind: str) -> bool:
    """Whether no turn cuts its result off: an integer that adds floating-point values does."""
    right = write.value if write.value is not None else write.node.child_by_field_name("right")
    if not is_integer(kind) or right is None:
        return True
    found = ExpressionTypes(unit, kernel).of(right)
    return found == kind if way.is_extreme else is_integer(found)


def _read_update(unit: SourceUnit, kernel: KernelDef, write: Write) -> _Update | None:
    node, name = write.node, write.declared.name
    target = node.child_by_field_name("left") or node.child_by_field_name("argument")
    if target is None or strip_parentheses(target).type != "identifier":
        return None
    own = strip_parentheses(target).start_byte
    operator = unit.operator(node)
    if operator in ("+=", "-=", "++", "--"):
        return _Update(Way("+", "{a} += {b};"), (own,))
    if operator in ("*=", "&=", "|=", "^="):
        return _Update(Way(operator[0], f"{{a}} {operator} {{b}};"), (own,))
    if operator != "=" or write.value is None:
        return None
    value = strip_parentheses(write.value)
    if value.type == "binary_expression":
        return _sum_update(unit, value, name, own)
    if value.type == "call_expression":
        return _call_update(unit, value, name, own)
    if value.type == "conditional_expression":
        found = _choice(unit.syntax, value, name)
        return _Update(found, (own, *_uses(unit, value, name))) if found is not None else None
    return _guarded_update(unit, node, value, name, own)


def _uses(unit: SourceUnit, node: Node, name: str) -> tuple[int, ...]:
    return tuple(n.start_byte for n in walk(node) if n.type == "identifier" and unit.text_of(n) == name)


def _sum_update(unit: SourceUnit, value: Node, name: str, own: int) -> _Update | None:
    """Read `s = s + a - b` and `s = a * s`."""
    sign = unit.operator(value)
    family = ("+", "-") if sign in ("+", "-") else (sign,)
    if sign not in (*_SIGNS, "-"):
        return None
    node: Node | None = value
    while node is not None and node.type == "binary_expression" and unit.operator(node) in family:
        right = node.child_by_field_name("right")
        if right is not None and _is_name(unit, right, name) and unit.operator(node) != "-":
            node = right
            break
        node = node.child_by_field_name("left")
        node = strip_parentheses(node) if node is not None and node.type == "identifier" else node
    if node is None or not _is_name(unit, node, name):
        return None
    operator = "+" if sign == "-" else sign
    return _Update(Way(operator, f"{{a}} {operator}= {{b}};"), (own, *_uses(unit, value, name)))


def _is_name(unit: SourceUnit, node: Node, name: str) -> bool:
    inner = strip_parentheses(node)
    return inner.type == "identifier" and unit.text_of(inner) == name


def _call_update(unit: SourceUnit, value: Node, name: str, own: int) -> _Update | None:
    called = called_name(unit, value)
    listed = value.child_by_field_name("arguments")
    arguments = named(listed) if listed is not None else []
    uses = (own, *_uses(unit, value, name))
    if unit.function(called) is not None:
        return None
    macro = unit.macro(called)
    if macro is not None:
        text = expand_macro(macro, [unit.text_of(argument) for argument in arguments])
        parsed = parse_expression(f"({text})") if text is not None else None
        inner = strip_parentheses(parsed[1]) if parsed is not None else None
        if parsed is None or inner is None or inner.type != "conditional_expression" or len(arguments) != 2:
            return None
        found = _choice(parsed[0], inner, name)
        template = f"{{a}} = {called}({{a}}, {{b}});"
        return _Update(Way(found.operator, template, is_macro=True), uses) if found is not None else None
    if called in _FUSED and len(arguments) == 3 and _is_name(unit, arguments[2], name):
        return _Update(Way("+", "{a} += {b};"), uses)
    if called in _MAXIMA | _MINIMA and len(arguments) == 2:
        if sum(_is_name(unit, argument, name) for argument in arguments) != 1:
            return None
        full = unit.text_of(value).split("(")[0].strip()
        return _Update(Way("max" if called in _MAXIMA else "min", f"{{a}} = {full}({{a}}, {{b}});"), uses)
    return None


def _choice(syntax: SyntaxTree, value: Node, name: str) -> Way | None:
    """Read `v > m ? v : m` in any of its orders."""
    condition = value.child_by_field_name("condition")
    first, second = value.child_by_field_name("consequence"), value.child_by_field_name("alternative")
    test = strip_parentheses(condition) if condition is not None else value
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if test.type != "binary_expression" or None in (first, second, left, right):
        return None
    assert first is not None
    assert second is not None
    assert left is not None
    assert right is not None
    sign = syntax.operator(test)
    texts = [_plain(syntax, side) for side in (left, right, first, second)]
    if sign not in ("<", ">", "<=", ">=") or name not in texts[:2] or sorted(texts[:2]) != sorted(texts[2:]):
        return None
    if texts[0] == texts[1] or _names(syntax, value, name) != 2:
        return None
    picks_left = texts[2] == texts[0]
    operator = "max" if (sign[0] == ">") == picks_left else "min"
    parts = ["{a}" if text == name else "{b}" for text in texts]
    return Way(operator, f"{{a}} = {parts[0]} {sign} {parts[1]} ? {parts[2]} : {parts[3]};")


def _plain(syntax: SyntaxTree, node: Node) -> str:
    return plain_text(syntax, strip_parentheses(node))


def plain_text(syntax: SyntaxTree, node: Node) -> str:
    """Return the text of an expression without comments and white space."""
    leaves = [leaf for leaf in walk(node) if not leaf.child_count and leaf.type != "comment"]
    return "".join(syntax.text_of(leaf) for leaf in leaves)


def _names(syntax: SyntaxTree, node: Node, name: str) -> int:
    return sum(n.type == "identifier" and syntax.text_of(n) == name for n in walk(node))


def _guarded_update(unit: SourceUnit, node: Node, value: Node, name: str, own: int) -> _Update | None:
    """Read `if (v > m) m = v;`."""
    statement = node.parent.parent if node.parent is not None else None
    while statement is not None and statement.type == "compound_statement" and len(named(statement)) == 1:
        statement = statement.parent
    if statement is None or statement.type != "if_statement" or statement.child_by_field_name("alternative"):
        return None
    condition = statement.child_by_field_name("condition")
    test = strip_parentheses(condition) if condition is not None else statement
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    sign = unit.operator(test) if test.type == "binary_expression" else ""
    if left is None or right is None or sign not in ("<", ">", "<=", ">="):
        return None
    texts = [_plain(unit.syntax, side) for side in (left, right)]
    if sorted(texts) != sorted([name, _plain(unit.syntax, value)]) or texts[0] == texts[1]:
        return None
    parts = ["{a}" if text == name else "{b}" for text in texts]
    grows = (sign[0] == ">") == (texts[1] == name)
    way = Way("max" if grows else "min", f"if ({parts[0]} {sign} {parts[1]}) {{a}} = {{b}};")
    return _Update(way, (own, *_uses(unit, test, name)))


def starts_neutral(unit: SourceUnit, kernel: KernelDef, loop: Loop, accumulator: Accumulator) -> bool:
    """Whether an accumulator certainly holds the neutral value where a loop is entered."""
    write = flow_of(unit, kernel).reaching(loop.node, accumulator.declared)
    value = strip_parentheses(write.value) if write is not None and write.value is not None else None
    number = (
        read_number(unit.text_of(value)) if value is not None and value.type == "number_literal" else None
    )
    if number is None or not accumulator.way.neutral:
        return False
    return float(number.value) == float(accumulator.way.neutral)
