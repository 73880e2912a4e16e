"""Calls and divisions that a block computes more than once from the same values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.adjacent_loops import refuse_aliased_variables
from kernelskill.skills.canonical import Canonical
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.plain_code import accesses_in, refuse_unclear
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_CHEAP = frozenset({"fabsf", "fabs", "abs", "fmaxf", "fmax", "fminf", "fmin", "max", "min", "fmaf", "fma"})
_FLOATS = ("float", "double")
_STATEMENTS = ("expression_statement", "declaration", "return_statement")


@dataclass(frozen=True)
class Repeated:
    """A value and every place of one block that computes it."""

    text: str
    kind: str
    """`float` or `double`."""
    stem: str
    statement: Node
    """The statement of the first place."""
    places: tuple[Node, ...]
    assumptions: tuple[str, ...]


def find_repeated(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[Repeated]:
    """Yield what is computed more than once, outer expressions before what is inside them."""
    reader = _Reader(unit, kernel, context, Canonical(unit, kernel))
    seen: set[int] = set()
    for block in walk(kernel.body) if kernel.body is not None else ():
        if block.type != "compound_statement":
            continue
        statements = named(block)
        for index, statement in enumerate(statements):
            if statement.type not in _STATEMENTS:
                continue
            for node in walk(statement):
                if node.id in seen or not reader.is_costly(node) or not _is_always(unit, statement, node):
                    continue
                try:
                    found = reader.read(node, statements[index:])
                except SkillRefused as refused:
                    refusals.append(refused.reason)
                    continue
                if found is not None:
                    seen.update(below.id for place in found.places for below in walk(place))
                    yield found


def _is_always(unit: SourceUnit, statement: Node, node: Node) -> bool:
    """Whether a statement certainly evaluates an expression in it."""
    child = node
    for parent in ancestors(node):
        if child == statement:
            return True
        if parent.type in ("lambda_expression", "sizeof_expression", "decltype"):
            return False
        if parent.type == "conditional_expression" and parent.child_by_field_name("condition") != child:
            return False
        short = parent.type == "binary_expression" and unit.operator(parent) in ("&&", "||")
        if short and parent.child_by_field_name("left") != child:
            return False
        child = parent
    return False


@dataclass(frozen=True)
class _Reader:
    unit: SourceUnit
    kernel: KernelDef
    context: SkillContext
    form: Canonical

    def is_costly(self, node: Node) -> bool:
        """Whether a node is a call or division that is worth keeping, with nothing but values in it."""
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            cast = function is None or function.type in ("primitive_type", "template_function")
            if cast or called_name(self.unit, node) in _CHEAP:
                return False
        elif node.type != "binary_expression" or self.unit.operator(node) != "/":
            return False
        types = ExpressionTypes(
            self.unit, self.kernel, template_bindings(self.unit, self.kernel, self.context)
        )
        changes = any(entry.type == "identifier" and self._declared(entry) for entry in walk(node))
        return types.of(node) in _FLOATS and changes and is_pure(self.unit, node)

    def _declared(self, name: Node) -> bool:
        return flow_of(self.unit, self.kernel).resolve(name) is not None

    def read(self, node: Node, statements: list[Node]) -> Repeated | None:
        """Return a value with all later places of its block, as far as nothing changes it.

        Raises:
            SkillRefused: It stands there again, but may have changed by then.
        """
        own = self.form.of(node)
        places: list[Node] = []
        assumptions: list[str] = []
        for statement in statements:
            same = [n for n in walk(statement) if n.type == node.type and self.form.of(n) == own]
            if not same:
                continue
            span = Span(statements[0].start_byte, statement.end_byte)
            try:
                assumptions += self._refuse_change(node, statements, span)
            except SkillRefused:
                if len(places) > 1:
                    break
                raise
            places += same
        if len(places) < 2:
            return None
        types = ExpressionTypes(
            self.unit, self.kernel, template_bindings(self.unit, self.kernel, self.context)
        )
        stem = f"{called_name(self.unit, node)}_value" if node.type == "call_expression" else "ratio"
        kept = tuple(dict.fromkeys(assumptions))
        text = clean_text(self.unit, node)
        return Repeated(text, str(types.of(node)), stem, statements[0], tuple(places), kept)

    def _refuse_change(self, node: Node, statements: list[Node], span: Span) -> list[str]:
        flow = flow_of(self.unit, self.kernel)
        text = clean_text(self.unit, node)
        refuse_aliased_variables(self.unit, self.kernel, node)
        for entry in walk(node):
            declared = flow.resolve(entry) if entry.type == "identifier" else None
            if declared is None:
                continue
            written = any(span.overlaps(span_of(write.node)) for write in flow.writes_to(declared))
            if written or span.contains(declared.name_span):
                raise SkillRefused(
                    f"{text} stands in several places, but {declared.name!r} changes between them"
                )
        inside = [statement for statement in statements if span.contains(span_of(statement))]
        for statement in inside:
            refuse_unclear(self.unit, self.kernel, statement, self.context)
        return self._refuse_stores(node, inside)

    def _refuse_stores(self, node: Node, statements: list[Node]) -> list[str]:
        loads = accesses_in(self.unit, self.kernel, node, self.context)
        found: list[str] = []
        for statement in statements if loads else ():
            accesses = accesses_in(self.unit, self.kernel, statement, self.context)
            for write in (access for access in accesses if access.mode.writes):
                for load in loads:
                    answer = separate(self.unit, self.kernel, load, write, self.context)
                    if not answer.disjoint:
                        where = f"line {write.line} writes {clean_text(self.unit, write.node)}"
                        raise SkillRefused(f"{where}, which may change {clean_text(self.unit, node)}")
                    found += [answer.assumption] if answer.assumption else []
        return found


def write_repeated(unit: SourceUnit, repeated: Repeated, context: SkillContext, edits: EditSet) -> None:
    """Keep the value in a constant before its first use."""
    name = fresh_name(unit, context, repeated.stem)
    edits.insert_line_before(repeated.statement, f"const {repeated.kind} {name} = {repeated.text};")
    for place in repeated.places:
        parent = place.parent
        whole = parent if parent is not None and parent.type == "parenthesized_expression" else place
        in_call = whole.parent is not None and whole.parent.type in (
            "if_statement",
            "while_statement",
            "call_expression",
        )
        edits.replace(place if in_call or strip_parentheses(whole) != place else whole, name)
