"""Write `pow` with a small constant exponent as products, a division or a square root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_integer, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.literals import read_number
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_NAMES = {"pow": "", "powf": "float", "__powf": "float"}
_PRODUCTS: dict[float, str] = {2: "{b} * {b}", 3: "{b} * {b} * {b}", 4: "({b} * {b}) * ({b} * {b})"}
_INVERSES: dict[float, str] = {-1: "{one} / {b}", -2: "{one} / ({b} * {b})"}
_ROOTS: dict[float, str] = {0.5: "sqrt{f}({b})", -0.5: "rsqrt{f}({b})"}
_BARE_PARENTS = frozenset(
    {"init_declarator", "argument_list", "return_statement", "parenthesized_expression"}
)
_POSITIVE_FUNCTIONS = frozenset({"fabs", "fabsf", "abs", "exp", "expf", "__expf", "exp2f", "sqrt", "sqrtf"})
_REPEATED_BADLY = frozenset({"call_expression", "subscript_expression", "pointer_expression"})
"""Parts of a base that is not worth taking twice."""
_CONDITIONAL = frozenset({"conditional_expression", "lambda_expression", "comma_expression"})


@dataclass(frozen=True)
class _Power:
    """One call that can be rewritten."""

    node: Node
    base: Node
    exponent: float
    base_type: str
    """`float`, `double` or an integer type."""
    kind: str
    """Type in which the product is taken."""
    statement: Node | None
    """Statement before which the base can be kept; None where the base is simple enough to repeat."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel where it has a power that can be rewritten."""
    count = len(_powers(unit, kernel, context))
    if count == 0:
        raise SkillRefused("it takes no small constant power whose base has a known type and one evaluation")
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
    for power in _powers(unit, kernel, context):
        base = unit.text_of(power.base)
        if power.statement is not None:
            name = fresh_name(unit, context, "base", taken)
            taken.append(name)
            before = lines.setdefault(power.statement.start_byte, (power.statement, []))
            before[1].append(f"const {power.kind} {name} = {base};")
            base = name
        elif is_integer(power.base_type) or power.base_type != power.kind:
            base = f"({power.kind})({base})" if not _is_simple(power.base) else f"({power.kind}){base}"
        elif not _is_simple(power.base):
            base = f"({base})"
        edits.replace(power.node, _product(power, base))
    for statement, declarations in lines.values():
        indent = unit.indent_of(statement)
        edits.insert_line_before(statement, f"\n{indent}".join(declarations))
    return Rewrite(edits=edits.edits)


def _product(power: _Power, base: str) -> str:
    single = "f" if power.kind == "float" else ""
    one = "1.0f" if power.kind == "float" else "1.0"
    forms: dict[float, str] = {**_PRODUCTS, **_INVERSES, **_ROOTS}
    text = forms[power.exponent].format(b=base, one=one, f=single)
    parent = power.node.parent
    assigned = parent is not None and parent.type == "assignment_expression"
    bare = (parent is not None and parent.type in _BARE_PARENTS) or assigned or power.exponent in _ROOTS
    return text if bare else f"({text})"


def _powers(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[_Power]:
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    found: list[_Power] = []
    for node in walk(kernel.body) if kernel.body is not None else ():
        power = _read(types, node) if node.type == "call_expression" else None
        if power is not None and not unit.is_locked(node):
            found.append(power)
    spans = [span_of(power.node) for power in found]
    # Inner powers first: an outer one can be asked for again afterwards.
    return [
        power
        for power in found
        if not any(span_of(power.node).contains(span) and span != span_of(power.node) for span in spans)
    ]


def _read(types: ExpressionTypes, node: Node) -> _Power | None:
    unit = types.unit
    name, listed = called_name(unit, node), node.child_by_field_name("arguments")
    if name not in _NAMES or unit.function(name) is not None or unit.macro(name) is not None:
        return None
    arguments = named(listed) if listed is not None else []
    exponent = _constant(unit, arguments[1]) if len(arguments) == 2 else None
    if exponent is None or (
        exponent not in _PRODUCTS and exponent not in _INVERSES and exponent not in _ROOTS
    ):
        return None
    base = arguments[0]
    base_type = types.of(base)
    if base_type is None or (base_type not in ("float", "double") and not is_integer(base_type)):
        return None
    kind = _NAMES[name] or ("float" if base_type == "float" else "double")
    if not is_pure(unit, base) or (exponent in _ROOTS and not _not_negative(types, base)):
        return None
    if _is_simple(base):
        return _Power(node, base, exponent, base_type, kind, None)
    statement = _statement_for(types, node, base)
    if statement is None and any(entry.type in _REPEATED_BADLY for entry in walk(base)):
        return None
    return _Power(node, base, exponent, base_type, kind, statement)


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


def _not_negative(types: ExpressionTypes, node: Node) -> bool:
    node, unit = strip_parentheses(node), types.unit
    if node.type == "number_literal" or (types.of(node) or "").startswith("unsigned"):
        return True
    if node.type == "call_expression":
        return called_name(unit, node) in _POSITIVE_FUNCTIONS
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or left is None or right is None:
        return False
    operator = unit.operator(node)
    if operator == "*" and unit.text_of(strip_parentheses(left)) == unit.text_of(strip_parentheses(right)):
        return True
    return operator in ("+", "*", "/") and _not_negative(types, left) and _not_negative(types, right)
