"""Write `pow` with a small constant exponent as products, divisions and square roots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name, units_of
from kernelskill.skills.expression_types import (
    ExpressionTypes,
    called_name,
    is_integer,
    is_pure,
    is_unsigned,
    visible_local,
)
from kernelskill.skills.float_flow import FloatFlow, FloatTypes
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.literals import read_number
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_NAMES = {"pow": "", "powf": "float", "__powf": "float"}
# {b} is the base, {one} a one of its type, {f} the suffix of float functions.
_WHOLE: dict[float, str] = {
    2: "{b} * {b}",
    3: "{b} * {b} * {b}",
    4: "({b} * {b}) * ({b} * {b})",
    -1: "{one} / {b}",
    -2: "{one} / ({b} * {b})",
}
_HALF: dict[float, str] = {
    0.5: "sqrt{f}({b})",
    1.5: "{b} * sqrt{f}({b})",
    2.5: "{b} * {b} * sqrt{f}({b})",
    3.5: "({b} * {b}) * ({b} * sqrt{f}({b}))",
    -0.5: "rsqrt{f}({b})",
    -1.5: "rsqrt{f}({b}) / {b}",
    -2.5: "rsqrt{f}({b}) / ({b} * {b})",
}
_CALLS = (0.5, -0.5)
"""Exponents whose form is one call, which binds tighter than anything round it."""
_BARE_PARENTS = frozenset(
    {"init_declarator", "argument_list", "return_statement", "parenthesized_expression"}
)
_POSITIVE_FUNCTIONS = frozenset({"fabs", "fabsf", "exp", "expf", "__expf", "exp2f", "exp2"})
_REPEATED_BADLY = frozenset({"call_expression", "subscript_expression", "pointer_expression"})
"""Parts of a base that is not worth taking twice."""
_CONDITIONAL = frozenset({"conditional_expression", "lambda_expression", "comma_expression"})
_WHY_GUARD = "// As in pow: minus infinity counts as infinity, and there is no negative zero."
_ROOTS = ("sqrt", "rsqrt")
_DEPTH = 8


@dataclass(frozen=True)
class _Power:
    """One call that can be rewritten."""

    node: Node
    base: Node
    exponent: float
    base_type: str
    """`float`, `double` or an integer type."""
    kind: str
    """Type in which the power is computed: that of the call, or float where only float uses it."""
    statement: Node | None
    """Statement before which the base is kept; None where the base is simple enough to repeat."""
    guarded: bool
    """Whether the base may be minus infinity or negative zero, where roots differ from `pow`."""


class _PowerTypes(FloatTypes):
    """Types as they are once `pow` of a float and a constant is float."""

    def _generic(self, name: str, arguments: list[str | None]) -> str | None:
        if name == "pow" and len(arguments) == 2 and arguments[0] == "float" and is_integer(arguments[1]):
            return "float"
        return super()._generic(name, arguments)


@dataclass(frozen=True)
class _Reader:
    """Reads the powers of one kernel."""

    types: ExpressionTypes
    flow: FloatFlow
    context: SkillContext

    @property
    def unit(self) -> SourceUnit:
        return self.types.unit

    def read(self, node: Node) -> _Power | None:
        """Return a call as a power; None where it is another call.

        Raises:
            SkillRefused: It is a power with such an exponent, but must stay as it is.
        """
        name, listed = called_name(self.unit, node), node.child_by_field_name("arguments")
        if name not in _NAMES or self._is_defined(name):
            return None
        arguments = named(listed) if listed is not None else []
        exponent = _constant(self.unit, arguments[1]) if len(arguments) == 2 else None
        if exponent is None or (exponent not in _WHOLE and exponent not in _HALF):
            return None
        base, where = arguments[0], f"line {self.unit.line_of(node)}: the base {{}} of {name}"
        where = where.format(repr(self.unit.text_of(arguments[0])))
        base_type = self.types.of(base)
        if base_type is None or (base_type not in ("float", "double") and not is_integer(base_type)):
            raise SkillRefused(f"{where} has no known type")
        if not is_pure(self.unit, base):
            raise SkillRefused(f"{where} may have side effects")
        if exponent in _HALF and any(self._is_defined(f"{root}{f}") for root in _ROOTS for f in ("", "f")):
            raise SkillRefused("a square root is defined in the source")
        kind = _NAMES[name] or self._kind(node, base_type, arguments[1])
        guarded = exponent in _HALF and not is_integer(base_type) and not self._is_never_negative(base)
        simple = _is_simple(base) and not guarded
        statement = None if simple else _statement_for(self.types, node, base)
        if statement is None and guarded:
            raise SkillRefused(f"{where} may be negative, and it can't be computed before the statement")
        if statement is None and not simple and any(n.type in _REPEATED_BADLY for n in walk(base)):
            raise SkillRefused(f"{where} can't be computed before the statement")
        return _Power(node, base, exponent, base_type, kind, statement, guarded)

    def _is_defined(self, name: str) -> bool:
        return any(u.function(name) or u.macro(name) for u in units_of(self.unit, self.context))

    def _kind(self, node: Node, base_type: str, exponent: Node) -> str:
        """Return the type of `pow`: C++ computes in float only where both arguments are float."""
        if base_type != "float":
            return "double"
        return "float" if self.types.of(exponent) == "float" or self.flow.accepts(node) else "double"

    def _is_never_negative(self, node: Node, depth: int = 0) -> bool:
        """Whether a value is never minus infinity or negative zero; definitions of variables are followed."""
        node, unit = strip_parentheses(node), self.unit
        if is_unsigned(self.types.of(node)) or _constant(unit, node) is not None:
            return is_unsigned(self.types.of(node)) or (_constant(unit, node) or 0) > 0
        if node.type == "identifier" and depth < _DEPTH and self.types.of(node) in ("float", "double"):
            flow = flow_of(unit, self.types.function)
            declared = flow.resolve(node)
            write = flow.reaching(node, declared) if declared is not None else None
            known = write is not None and visible_local(self.types.function, unit.text_of(node), node)
            value = write.value if write is not None and known else None
            return value is not None and self._is_never_negative(value, depth + 1)
        if node.type == "call_expression":
            return called_name(unit, node) in _POSITIVE_FUNCTIONS and not self._is_defined(
                called_name(unit, node)
            )
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type != "binary_expression" or left is None or right is None:
            return False
        operator = unit.operator(node)
        same = unit.text_of(strip_parentheses(left)) == unit.text_of(strip_parentheses(right))
        if operator == "*" and same and is_pure(unit, left):
            return self.types.of(left) in ("float", "double")
        # A sum with one positive zero is no negative zero; minus infinity would need one in a term.
        both = operator in ("+", "*", "/")
        return both and self._is_never_negative(left, depth) and self._is_never_negative(right, depth)


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel where it has a power that can be rewritten."""
    refusals: list[str] = []
    count = len(_powers(unit, kernel, context, refusals))
    if count == 0:
        raise SkillRefused(refusals[0] if refusals else "it takes no power with a small constant exponent")
    reason = f"{count} small constant power{'s' if count > 1 else ''}"
    return [Site(key=f"{kernel.name}/powers", kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Replace the calls; bases that are more than a name get a constant of their own."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    edits = EditSet(unit)
    taken: list[str] = []
    lines: dict[int, tuple[Node, list[str]]] = {}
    for power in _powers(unit, kernel, context, []):
        base = unit.text_of(power.base)
        if power.statement is not None:
            before = lines.setdefault(power.statement.start_byte, (power.statement, []))
            names: list[str] = []
            for wanted in ("base", "given"):
                names.append(fresh_name(unit, context, wanted, taken))
                taken.append(names[-1])
            before[1].extend(_declarations(power, names[0], names[1], base))
            base = names[0]
        elif power.base_type != power.kind:
            base = f"({power.kind}){base}" if _is_simple(power.base) else f"({power.kind})({base})"
        elif not _is_simple(power.base):
            base = f"({base})"
        edits.replace(power.node, _product(power, base))
    for statement, declarations in lines.values():
        indent = unit.indent_of(statement)
        edits.insert_line_before(statement, f"\n{indent}".join(declarations))
    return Rewrite(edits=edits.edits)


def _declarations(power: _Power, name: str, given: str, base: str) -> list[str]:
    """Return the lines that keep a base; one that is more than a name is computed once."""
    if not power.guarded:
        return [f"const {power.kind} {name} = {base};"]
    lines = [] if _is_simple(power.base) else [f"const {power.kind} {given} = {base};"]
    value = given if lines else base
    zero = "0.0f" if power.kind == "float" else "0.0"
    chosen = f"{value} == -INFINITY ? INFINITY : {value} + {zero}"
    return [*lines, _WHY_GUARD, f"const {power.kind} {name} = {chosen};"]


def _product(power: _Power, base: str) -> str:
    single = "f" if power.kind == "float" else ""
    one = "1.0f" if power.kind == "float" else "1.0"
    text = {**_WHOLE, **_HALF}[power.exponent].format(b=base, one=one, f=single)
    parent = power.node.parent
    assigned = parent is not None and parent.type == "assignment_expression"
    bare = (parent is not None and parent.type in _BARE_PARENTS) or assigned or power.exponent in _CALLS
    return text if bare else f"({text})"


def _powers(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Power]:
    bindings = template_bindings(unit, kernel, context)
    flow = FloatFlow(_PowerTypes(unit, kernel, bindings), exact=False)
    reader = _Reader(ExpressionTypes(unit, kernel, bindings), flow, context)
    found: list[_Power] = []
    for node in walk(kernel.body) if kernel.body is not None else ():
        if node.type != "call_expression" or unit.is_locked(node):
            continue
        try:
            power = reader.read(node)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        if power is not None:
            found.append(power)
    spans = [span_of(power.node) for power in found]
    # Inner powers first: an outer one can be asked for again afterwards.
    return [
        power
        for power in found
        if not any(span_of(power.node).contains(span) and span != span_of(power.node) for span in spans)
    ]


def _constant(unit: SourceUnit, node: Node) -> float | None:
    text = unit.text_of(node).replace(" ", "").strip("()")
    macro = unit.macro(text)
    if macro is not None and not macro.is_function_like:
        text = macro.value.replace(" ", "").strip("()")
    number = read_number(text.removeprefix("-"))
    if number is None:
        return None
    return -float(number.value) if text.startswith("-") else float(number.value)


def _is_simple(node: Node) -> bool:
    """Whether repeating the expression reads well and costs nothing."""
    if node.type in ("identifier", "number_literal"):
        return True
    argument = node.child_by_field_name("argument")
    return node.type == "field_expression" and argument is not None and argument.type == "identifier"


def _statement_for(types: ExpressionTypes, node: Node, base: Node) -> Node | None:
    """Return the statement before which the base may be computed: same values, no new memory access."""
    unit = types.unit
    reads = any(
        n.type in ("subscript_expression", "pointer_expression", "field_expression") for n in walk(base)
    )
    for entry in ancestors(node):
        skipped = entry.type in _CONDITIONAL or unit.operator(entry) in ("&&", "||")
        if skipped and (reads or entry.type != "conditional_expression"):
            return None
        if entry.type in ("expression_statement", "declaration", "return_statement"):
            in_block = entry.parent is not None and entry.parent.type == "compound_statement"
            return entry if in_block and not _changes_inside(types, entry, base) else None
        if entry.type.endswith("_statement"):
            return None
    return None


def _changes_inside(types: ExpressionTypes, statement: Node, base: Node) -> bool:
    """Whether the statement itself declares or writes what the base reads, before the base is read."""
    flow = flow_of(types.unit, types.function)
    inside = span_of(statement)
    declared = [flow.resolve(n) for n in walk(base) if n.type == "identifier"]
    writes = [write for d in declared if d is not None for write in flow.writes_to(d)]
    own = [w for w in writes if inside.contains(span_of(w.node))]
    assignments = [n for n in walk(statement) if n.type in ("assignment_expression", "update_expression")]
    # `v = pow(v + 1, 2)` writes after reading; anything else in the statement may write before.
    late = len(assignments) == 1 and all(span_of(w.node).contains(span_of(base)) for w in own)
    if any(w.operator == "init" for w in own) or (own and not late):
        return True
    return len(assignments) > 1
