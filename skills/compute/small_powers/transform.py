"""Write `pow` with a small constant exponent as products, divisions and square roots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import editable_functions, fresh_name, units_of
from kernelskill.skills.early_values import is_body, statement_before
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_integer, is_pure
from kernelskill.skills.float_flow import FloatFlow, FloatTypes
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.literal_values import literal_value
from kernelskill.skills.never_negative import is_never_negative
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, named, span_of, walk
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
_INVERSE = {-1.5: 3, -2.5: 5}
"""Exponents that are products of so many inverse roots, where there is a place for one."""
_DIVISORS = {0.5: 1, 1.5: 3, 2.5: 5, 3.5: 7}
"""The same, where the power is all that something is divided by."""
_CALLS = (0.5, -0.5)
"""Exponents whose form is one call, which binds tighter than anything round it."""
_BARE_PARENTS = frozenset(
    {"init_declarator", "argument_list", "return_statement", "parenthesized_expression"}
)
_REPEATED_BADLY = frozenset({"call_expression", "subscript_expression", "pointer_expression"})
"""Parts of a base that is not worth taking twice."""
_WHY_GUARD = "// As in pow: minus infinity counts as infinity, and there is no negative zero."
_ROOTS = ("sqrt", "rsqrt")


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
    quotient: Node | None = None
    """The division that multiplies by inverse roots instead, where the power is all of its divisor."""
    roots: Node | None = None
    """Statement before which the inverse root is computed; None where there is none to keep."""


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
        exponent = literal_value(self.unit, arguments[1]) if len(arguments) == 2 else None
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
        guarded = (
            exponent in _HALF
            and not is_integer(base_type)
            and not is_never_negative(self.types, base, self.context)
        )
        simple = _is_simple(base) and not guarded
        statement = None if simple else statement_before(self.types, node, base, bare=True)
        if statement is None and guarded:
            raise SkillRefused(f"{where} may be negative, and it can't be computed before the statement")
        if statement is None and not simple and any(n.type in _REPEATED_BADLY for n in walk(base)):
            raise SkillRefused(f"{where} can't be computed before the statement")
        quotient, roots = self._quotient(node, kind) if exponent in _DIVISORS else None, None
        if exponent in _INVERSE or (quotient is not None and exponent not in _CALLS):
            roots = statement_before(self.types, node, base, bare=True)
            quotient = quotient if roots is not None else None
        return _Power(node, base, exponent, base_type, kind, statement, guarded, quotient, roots)

    def _is_defined(self, name: str) -> bool:
        return any(u.function(name) or u.macro(name) for u in units_of(self.unit, self.context))

    def _kind(self, node: Node, base_type: str, exponent: Node) -> str:
        """Return the type of `pow`: C++ computes in float only where both arguments are float."""
        if base_type != "float":
            return "double"
        return "float" if self.types.of(exponent) == "float" or self.flow.accepts(node) else "double"

    def _quotient(self, node: Node, kind: str) -> Node | None:
        """Return the division that a power is the whole divisor of, where it can be a product of its type."""
        outer = node
        while outer.parent is not None and outer.parent.type == "parenthesized_expression":
            outer = outer.parent
        division = outer.parent
        if division is None or division.type != "binary_expression" or self.unit.operator(division) != "/":
            return None
        left = division.child_by_field_name("left")
        if left is None or left == outer or self.unit.is_locked(division):
            return None
        given = self.types.of(left)
        fits = given == kind or is_integer(given) or (kind == "double" and given == "float")
        return division if fits or (_is_one(self.unit, left) and self.flow.accepts(node)) else None


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
        base, place = unit.text_of(power.base), power.statement or power.roots
        before = lines.setdefault(place.start_byte, (place, []))[1] if place is not None else []
        if power.statement is not None:
            names: list[str] = []
            for wanted in ("base", "given"):
                names.append(fresh_name(unit, context, wanted, taken))
                taken.append(names[-1])
            before.extend(_declarations(power, names[0], names[1], base))
            base = names[0]
        elif power.base_type != power.kind:
            base = f"({power.kind}){base}" if _is_simple(power.base) else f"({power.kind})({base})"
        elif not _is_simple(power.base):
            base = f"({base})"
        root = f"{'rsqrtf' if power.kind == 'float' else 'rsqrt'}({base})"
        if power.roots is not None:
            taken.append(fresh_name(unit, context, "inverse_root", taken))
            before.append(f"const {power.kind} {taken[-1]} = {root};")
            root = taken[-1]
        _replace(unit, power, base, root, edits)
    for statement, declarations in lines.values():
        _write_before(unit, statement, declarations, edits)
    return Rewrite(edits=edits.edits)


def _write_before(unit: SourceUnit, statement: Node, lines: list[str], edits: EditSet) -> None:
    """Write lines before a statement, in braces with it where it alone is what a loop or an `if` does."""
    indent = unit.indent_of(statement)
    text = f"\n{indent}".join(lines)
    if not is_body(statement):
        edits.insert_line_before(statement, text)
        return
    head = statement.prev_sibling
    while head is not None and head.type == "comment":
        head = head.prev_sibling
    outer = unit.indent_of(statement.parent) if statement.parent is not None else ""
    if head is None or indent == outer:  # on one line with its loop
        edits.insert_before(statement, f"{{ {' '.join(lines)} ").insert_after(statement, " }")
        return
    edits.insert_after(head, " {").insert_line_before(statement, text)
    edits.insert_after(statement, f"\n{outer}}}")


def _replace(unit: SourceUnit, power: _Power, base: str, root: str, edits: EditSet) -> None:
    """Write a power, or the quotient by it, by its base and the inverse root of that."""
    if power.quotient is None:
        inverse = power.exponent in _INVERSE and power.roots is not None
        edits.replace(power.node, _product(power, base, root if inverse else ""))
        return
    left, right = (power.quotient.child_by_field_name(side) for side in ("left", "right"))
    operator = next(child for child in power.quotient.children if child.type == "/")
    assert left is not None
    assert right is not None
    product = " * ".join([root] * _DIVISORS[power.exponent])
    if _is_one(unit, left):
        edits.replace(power.quotient, product)
    else:
        edits.replace(operator, "*").replace(right, product)


def _declarations(power: _Power, name: str, given: str, base: str) -> list[str]:
    """Return the lines that keep a base; one that is more than a name is computed once."""
    if not power.guarded:
        return [f"const {power.kind} {name} = {base};"]
    lines = [] if _is_simple(power.base) else [f"const {power.kind} {given} = {base};"]
    value = given if lines else base
    zero = "0.0f" if power.kind == "float" else "0.0"
    chosen = f"{value} == -INFINITY ? INFINITY : {value} + {zero}"
    return [*lines, _WHY_GUARD, f"const {power.kind} {name} = {chosen};"]


def _product(power: _Power, base: str, root: str) -> str:
    """Return what stands for a power: of its base, or of an inverse root where there is one."""
    single = "f" if power.kind == "float" else ""
    one = "1.0f" if power.kind == "float" else "1.0"
    text = {**_WHOLE, **_HALF}[power.exponent].format(b=base, one=one, f=single)
    text = " * ".join([root] * _INVERSE[power.exponent]) if root else text
    parent = power.node.parent
    assigned = parent is not None and parent.type == "assignment_expression"
    bare = (parent is not None and parent.type in _BARE_PARENTS) or assigned or power.exponent in _CALLS
    return text if bare else f"({text})"


def _powers(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Power]:
    found: list[_Power] = []
    for function in editable_functions(unit, kernel, context):
        bindings = template_bindings(unit, kernel, context) if function is kernel else {}
        flow = FloatFlow(_PowerTypes(unit, function, bindings), exact=False)
        reader = _Reader(ExpressionTypes(unit, function, bindings), flow, context)
        for node in walk(function.body) if function.body is not None else ():
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


def _is_one(unit: SourceUnit, node: Node) -> bool:
    return literal_value(unit, node) == 1


def _is_simple(node: Node) -> bool:
    """Whether repeating the expression reads well and costs nothing."""
    if node.type in ("identifier", "number_literal"):
        return True
    argument = node.child_by_field_name("argument")
    return node.type == "field_expression" and argument is not None and argument.type == "identifier"
