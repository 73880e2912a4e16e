"""Multiply by an inverse square root instead of dividing by products of a value and its root."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kernelskill.skills.device_code import editable_functions, fresh_name, units_of, words_in
from kernelskill.skills.early_values import is_body, reads_memory, statement_before
from kernelskill.skills.expression_types import ExpressionTypes, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.literal_values import literal_value
from kernelskill.skills.root_quotients import Quotient, RootQuotients, quotients_in
from kernelskill.skills.text_changes import clean_text, uses_of
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

_ROOTS = ("sqrt", "sqrtf", "rsqrt", "rsqrtf")
_STATEMENTS = ("expression_statement", "declaration", "return_statement")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WHY_ZERO = "// Plus zero: of negative zero, the product with the root is positive."


@dataclass(frozen=True)
class _Place:
    """Where an inverse root is computed."""

    statement: Node
    where: str
    """`before` or `after` the statement, or `braces`: before it, with both in braces of their own."""


@dataclass(frozen=True)
class _Change:
    """One quotient, and where its inverse root gets a name; None where it is written in place."""

    quotient: Quotient
    place: _Place | None


@dataclass
class _Lines:
    """What is written beside one statement."""

    place: _Place
    texts: list[str] = field(default_factory=list)


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the quotients of a kernel, and of the device functions that it reaches, together."""
    refusals: list[str] = []
    count = sum(len(changes) for _, changes in _changes(unit, kernel, context, refusals))
    if count == 0:
        raise SkillRefused(refusals[0] if refusals else "nothing is divided by a square root or its powers")
    reason = f"{count} quotient{'s' if count > 1 else ''} by a square root or its powers"
    return [Site(key=f"{kernel.name}/roots", kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the products; variables that nothing else reads go."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    edits, taken = EditSet(unit), list[str]()
    for types, changes in _changes(unit, kernel, context, []):
        _write(types, changes, context, edits, taken)
    return Rewrite(edits=edits.edits)


def _changes(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> list[tuple[ExpressionTypes, list[_Change]]]:
    """Return what can be changed in every function."""
    if any(u.function(name) or u.macro(name) for u in units_of(unit, context) for name in _ROOTS):
        raise SkillRefused("a square root is defined in the source")
    found = []
    for function in editable_functions(unit, kernel, context):
        if function.body is None or "volatile" in words_in(unit, function.span):
            continue
        bindings = template_bindings(unit, kernel, context) if function is kernel else {}
        types = ExpressionTypes(unit, function, bindings)
        found.append((types, list(_read(types, function.body, context, refusals))))
    return found


def _read(
    types: ExpressionTypes, body: Node, context: SkillContext, refusals: list[str]
) -> Iterable[_Change]:
    reader, found = RootQuotients.of(types, context), list[_Change]()
    for node in quotients_in(body):
        if types.unit.is_locked(node):
            continue
        try:
            quotient = reader.read(node)
            if quotient is not None:
                found.append(_Change(quotient, _place(types, quotient)))
        except SkillRefused as refused:
            refusals.append(refused.reason)
    # Quotients in a divisor first: an outer one can be asked for again afterwards.
    inner = [span_of(change.quotient.node) for change in found]
    return [
        change for change in found if not any(span_of(change.quotient.right).contains(span) for span in inner)
    ]


def _place(types: ExpressionTypes, quotient: Quotient) -> _Place | None:
    """Return where the inverse root is computed; None where it can be written in place.

    Raises:
        SkillRefused: It must be computed beforehand, and cannot.
    """
    unit, value = types.unit, quotient.value
    where = f"line {unit.line_of(quotient.node)}: the inverse root of {clean_text(unit, value)!r}"
    if not is_pure(unit, value):
        raise SkillRefused(f"{where} has side effects")
    if quotient.is_direct and quotient.power == 1:
        return None
    statement = None
    if not quotient.is_direct:
        own = next((entry for entry in ancestors(quotient.root) if entry.type in _STATEMENTS), None)
        inside = own is not None and span_of(own).contains(span_of(quotient.node))
        if own is not None and not inside and _follows(types, own, value):
            statement = _Place(own, "after")
    if statement is None:
        before = statement_before(types, quotient.root, value, bare=quotient.is_direct)
        if before is not None:
            statement = _Place(before, "braces" if is_body(before) else "before")
    if statement is None or unit.is_locked(statement.statement):
        raise SkillRefused(f"{where} can't be computed in a statement of its own")
    return statement


def _follows(types: ExpressionTypes, statement: Node, value: Node) -> bool:
    """Whether a value that a statement computes is the same right after it."""
    unit, flow = types.unit, flow_of(types.unit, types.function)
    if statement.parent is None or statement.parent.type != "compound_statement":
        return False
    inside = span_of(statement)
    for name in (entry for entry in walk(value) if entry.type == "identifier"):
        declared = flow.resolve(name)
        writes = flow.writes_to(declared) if declared is not None else ()
        own = [write for write in writes if inside.contains(span_of(write.node))]
        if any(write.operator != "init" or write.node.end_byte > value.start_byte for write in own):
            return False
    expression = named(statement)[0] if statement.type == "expression_statement" else None
    if expression is None:
        return is_pure(unit, statement)
    target, given = expression.child_by_field_name("left"), expression.child_by_field_name("right")
    local = expression.type == "assignment_expression" and target is not None and target.type == "identifier"
    return local and given is not None and (is_pure(unit, given) or not reads_memory(value))


def _write(
    types: ExpressionTypes,
    changes: list[_Change],
    context: SkillContext,
    edits: EditSet,
    taken: list[str],
) -> None:
    unit = types.unit
    lines: dict[tuple[int, str], _Lines] = {}
    names: dict[tuple[int, str, int, bool], str] = {}
    keys = [(change, _key(change)) for change in changes]
    zeroed = {key for _, key in keys if key is not None and key[3]}
    for change, key in keys:
        quotient, place = change.quotient, change.place
        if key is None or place is None:
            _write_quotient(unit, quotient, _call(unit, quotient), edits)
            continue
        if quotient.power % 2 == 0 and (*key[:3], True) in zeroed:
            key = (*key[:3], True)  # an even power has no sign
        if key not in names:
            names[key] = fresh_name(unit, context, "inverse_root", taken)
            taken.append(names[key])
            beside = lines.setdefault(key[:2], _Lines(place))
            beside.texts += [_WHY_ZERO] if key[3] and _starts_line(unit, place) else []
            beside.texts.append(f"const {quotient.kind} {names[key]} = {_call(unit, quotient, zero=key[3])};")
        _write_quotient(unit, quotient, names[key], edits)
    unused = _unused(types, changes, [text for beside in lines.values() for text in beside.texts])
    for beside in lines.values():
        _write_lines(unit, beside, unused, edits)
    for declaration in unused:
        if (declaration.start_byte, "after") not in lines:
            edits.delete_line(declaration)


def _key(change: _Change) -> tuple[int, str, int, bool] | None:
    """Return by what an inverse root is the same: place, value, sign."""
    quotient, place = change.quotient, change.place
    if place is None:
        return None
    return place.statement.start_byte, place.where, quotient.number, quotient.adds_zero


def _starts_line(unit: SourceUnit, place: _Place) -> bool:
    """Whether there is room for a comment above."""
    line = unit.syntax.line_span(unit.line_of(place.statement))
    before = unit.text_of(Span(line.start, place.statement.start_byte))
    return place.where != "braces" and not before.strip()


def _call(unit: SourceUnit, quotient: Quotient, *, zero: bool = False) -> str:
    single = "f" if quotient.kind == "float" else ""
    value = clean_text(unit, quotient.value)
    if zero:
        simple = quotient.value.type in ("identifier", "subscript_expression", "field_expression")
        value = f"{value if simple else f'({value})'} + 0.0{single}"
    return f"rsqrt{single}({value})"


def _write_quotient(unit: SourceUnit, quotient: Quotient, root: str, edits: EditSet) -> None:
    """Write `* r * r * r` for `/ d`, numbers of at least one first, so that nothing overflows on the way."""
    product = " * ".join([root] * quotient.power)
    scale, large = 1.0, [clean_text(unit, entry) for entry in quotient.constants]
    for entry in quotient.constants:
        scale *= literal_value(unit, entry) or 1.0
    divisor = large[0] if len(large) == 1 else f"({' * '.join(large)})"
    operator = "*"
    if large:
        operator, product = (
            ("/", f"{divisor} * {product}") if abs(scale) >= 1 else ("*", f"{product} / {divisor}")
        )
    if quotient.is_one and not large:
        edits.replace(quotient.node, product)
        return
    if quotient.is_compound:
        single = operator == "*" and quotient.power == 1 and not large
        right = product if single else f"{clean_text(unit, quotient.left)} {operator} {product}"
        edits.replace(quotient.operator, "*=" if single else "=")
        edits.replace(quotient.right, right)
        return
    if quotient.is_one:
        edits.replace(quotient.left, "1.0f" if quotient.kind == "float" else "1.0")
    if operator == "*":
        edits.replace(quotient.operator, "*")
    edits.replace(quotient.right, product)


def _unused(types: ExpressionTypes, changes: list[_Change], texts: list[str]) -> list[Node]:
    """Return the declarations of variables that only the divisors read, which are gone."""
    unit, function = types.unit, types.function
    written = {word for text in texts for word in _WORD.findall(text)}
    gone = [span_of(change.quotient.right) for change in changes]
    pending = list(dict.fromkeys(name for change in changes for name in change.quotient.via))
    kept = {
        change.place.statement.start_byte
        for change in changes
        if change.place and change.place.where != "after"
    }
    found: list[Node] = []
    progress = True
    while progress:
        progress = False
        for variable in list(pending):
            if variable.name in written or not _is_plain(types, variable, kept):
                continue
            uses = uses_of(unit, function, variable.scope, variable)
            own = variable.name_span
            if all(span_of(use) == own or any(span.contains(span_of(use)) for span in gone) for use in uses):
                pending.remove(variable)
                found.append(variable.declaration)
                gone.append(span_of(variable.declaration))
                progress = True
    return found


def _is_plain(types: ExpressionTypes, variable: VariableDef, kept: set[int]) -> bool:
    """Whether a declaration is a statement of its own for one variable, which keeps its value."""
    declaration, flow = variable.declaration, flow_of(types.unit, types.function)
    alone = len(declaration.children_by_field_name("declarator")) == 1
    in_block = declaration.parent is not None and declaration.parent.type == "compound_statement"
    plain = alone and in_block and flow.is_constant(variable) and declaration.start_byte not in kept
    pure = variable.initialiser is not None and is_pure(types.unit, variable.initialiser)
    return plain and pure and not types.unit.is_locked(declaration)


def _write_lines(unit: SourceUnit, beside: _Lines, unused: list[Node], edits: EditSet) -> None:
    statement, where = beside.place.statement, beside.place.where
    if where == "braces":
        edits.insert_before(statement, f"{{ {' '.join(beside.texts)} ")
        edits.insert_after(statement, " }")
        return
    text = f"\n{unit.indent_of(statement)}".join(beside.texts)
    if where == "before":
        edits.insert_line_before(statement, text)
    elif statement in unused:
        edits.replace(statement, text)
    else:
        _write_after(unit, statement, text, unused, edits)


def _write_after(unit: SourceUnit, statement: Node, text: str, unused: list[Node], edits: EditSet) -> None:
    """Insert lines below a statement, and its comment; a `#pragma` further down stays with its loop."""
    line = unit.syntax.line_span(unit.line_of(statement.end_byte - 1))
    rest = unit.text_of(Span(statement.end_byte, line.end)).rstrip()
    if not rest.strip() or rest.lstrip().startswith("//"):
        end = Span(statement.end_byte, statement.end_byte + len(rest.encode()))
        edits.insert_after(end, f"\n{unit.indent_of(statement)}{text}")
        return
    later = statement.next_named_sibling
    while later is not None and (later.type == "comment" or later in unused):
        later = later.next_named_sibling
    if later is not None and later.start_byte < line.end:
        edits.insert_line_before(later, text)
    else:
        edits.insert_after(statement, f"\n{unit.indent_of(statement)}{text}")
