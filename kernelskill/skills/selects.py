"""Short branches that only give local variables other values, and the same as conditional values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import (
    ExpressionTypes,
    called_name,
    common_type,
    is_integer,
    is_pure,
)
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.loop_statements import expression_of
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

MOST = 4
"""Assignments in a branch that is worth taking always."""
_LONGEST = 40
"""Nodes of a value that is worth computing always."""
_CHEAP = frozenset({"fabsf", "fabs", "abs", "fmaxf", "fmax", "fminf", "fmin", "max", "min", "fmaf", "fma"})
_LOADS = ("subscript_expression", "pointer_expression", "field_expression")


@dataclass(frozen=True)
class Assignment:
    """One variable and the value that a branch gives it."""

    variable: Declared
    kind: str
    """Plain type of the variable."""
    value: str


@dataclass(frozen=True)
class Select:
    """An `if` that may be a choice of values."""

    statement: Node
    condition: str
    taken: tuple[Assignment, ...]
    other: tuple[Assignment, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, each once."""
        return tuple(dict.fromkeys(entry.variable.name for entry in (*self.taken, *self.other)))


def find_selects(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[Select]:
    """Yield every `if` of a kernel that only chooses values of local variables."""
    reader = _Reader(unit, kernel, ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context)))
    for node in walk(kernel.body) if kernel.body is not None else ():
        if node.type != "if_statement" or unit.is_locked(node):
            continue
        try:
            refuse_unclear(unit, kernel, node, context)
            yield reader.read(node)
        except SkillRefused as refused:
            refusals.append(refused.reason)


@dataclass(frozen=True)
class _Reader:
    unit: SourceUnit
    kernel: KernelDef
    types: ExpressionTypes

    def read(self, node: Node) -> Select:
        """Return an `if` as a choice of values.

        Raises:
            SkillRefused: It does something else.
        """
        where = f"the if on line {self.unit.line_of(node)}"
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        constant = any(child.type == "constexpr" for child in node.children)
        if condition is None or body is None or constant or len(named(condition)) != 1:
            raise SkillRefused(f"{where} declares a variable or is decided by the compiler")
        test = strip_parentheses(condition)
        declares = any(entry.type in ("declaration", "init_declarator") for entry in walk(condition))
        if declares or not is_pure(self.unit, test):
            raise SkillRefused(f"{where} tests more than plain values")
        alternative = node.child_by_field_name("alternative")
        if alternative is not None and alternative.type == "else_clause":
            alternative = named(alternative)[0] if named(alternative) else None
        sure = {self._form(load) for load in self._sure_loads(test)}
        taken = self._assignments(body, where, sure)
        other = self._assignments(alternative, where, sure) if alternative is not None else ()
        text = clean_text(self.unit, test)
        loose = test.type in ("conditional_expression", "comma_expression")
        return Select(node, f"({text})" if loose else text, taken, other)

    def _assignments(self, body: Node, where: str, sure: set[str]) -> tuple[Assignment, ...]:
        statements = named(body) if body.type == "compound_statement" else [body]
        if not statements or len(statements) > MOST:
            raise SkillRefused(f"{where} is empty or long")
        return tuple(self._assignment(statement, where, sure) for statement in statements)

    def _assignment(self, statement: Node, where: str, sure: set[str]) -> Assignment:
        node = expression_of(statement)
        target = (
            node.child_by_field_name("left" if node.type == "assignment_expression" else "argument")
            if (node is not None and node.type in ("assignment_expression", "update_expression"))
            else None
        )
        declared = self._local(target)
        if node is None or target is None or declared is None:
            raise SkillRefused(f"{where} does more than set local variables")
        kind = self.types.of(target)
        if kind not in ("float", "double", "bool") and not is_integer(kind):
            raise SkillRefused(f"{where} sets {declared.name!r}, whose type is not known as a number")
        value, value_type = self._value(node, target, str(kind), where, sure)
        return Assignment(declared, str(kind), value if value_type == kind else _cast(str(kind), value))

    def _local(self, target: Node | None) -> Declared | None:
        """Return the variable of the kernel's own that an assignment sets; None where it sets something else."""
        bare = strip_parentheses(target) if target is not None else None
        flow = flow_of(self.unit, self.kernel)
        declared = flow.resolve(bare) if bare is not None and bare.type == "identifier" else None
        if declared is None or declared.pointer_depth or declared.is_reference:
            return None
        if isinstance(declared, ParameterDef):
            return declared
        own = declared.storage.value == "local" and not declared.dimensions
        hidden = any(write.operator in ("&", "asm", "lambda") for write in flow.writes_to(declared))
        return declared if own and not hidden else None

    def _value(
        self, node: Node, target: Node, kind: str, where: str, sure: set[str]
    ) -> tuple[str, str | None]:
        """Return text and type of what a variable is set to."""
        operator, name = self.unit.operator(node), clean_text(self.unit, target)
        if node.type == "update_expression":
            return f"{name} {operator[0]} 1", common_type(kind, "int")
        right = node.child_by_field_name("right")
        assert right is not None
        self._refuse_costly(right, where, sure)
        text = clean_text(self.unit, right)
        if operator == "=":
            loose = right.type in ("conditional_expression", "comma_expression")
            return (f"({text})" if loose else text), self.types.of(right)
        if operator not in ("+=", "-=", "*=", "&=", "|=", "^="):
            raise SkillRefused(f"{where} divides or shifts")
        atom = right.type in ("identifier", "number_literal", "subscript_expression", "call_expression")
        return f"{name} {operator[0]} {text if atom else f'({text})'}", common_type(
            kind, self.types.of(right)
        )

    def _refuse_costly(self, value: Node, where: str, sure: set[str]) -> None:
        nodes = list(walk(value))
        if not is_pure(self.unit, value) or self.types.of(value) is None or len(nodes) > _LONGEST:
            raise SkillRefused(f"{where} computes more than a short plain value")
        for node in nodes:
            if node.type == "call_expression" and called_name(self.unit, node) not in _CHEAP:
                raise SkillRefused(f"{where} calls {called_name(self.unit, node)!r}, which would run always")
            if self.unit.operator(node) in ("/", "%"):
                raise SkillRefused(f"{where} divides, which would be done always")
            if node.type in _LOADS and self._is_load(node) and self._form(node) not in sure:
                raise SkillRefused(
                    f"{where} loads {clean_text(self.unit, node)}, which it does not always load"
                )

    def _is_load(self, node: Node) -> bool:
        """Whether a node reads memory; a field belongs to what it is a field of."""
        if node.type == "field_expression":
            return any(child.type == "->" for child in node.children)
        return True

    def _sure_loads(self, condition: Node) -> Iterator[Node]:
        """Yield the loads that the condition makes whatever its parts give."""
        stack = [condition]
        while stack:
            node = stack.pop()
            if node.type in _LOADS and self._is_load(node):
                yield node
            if node.type == "conditional_expression" or self.unit.operator(node) in ("&&", "||"):
                first = node.child_by_field_name("condition") or node.child_by_field_name("left")
                stack.extend([first] if first is not None else [])
            else:
                stack.extend(node.children)

    def _form(self, node: Node) -> str:
        return "".join(clean_text(self.unit, node).split())


def _cast(kind: str, value: str) -> str:
    return f"({kind}){value}" if value.replace(".", "").isalnum() or value[0] == "(" else f"({kind})({value})"


def write_select(unit: SourceUnit, select: Select, context: SkillContext, edits: EditSet) -> None:
    """Write the values as conditional ones, in the order of the assignments."""
    condition = select.condition
    lines = []
    pairs = _paired(select)
    if len(pairs) > 1:
        condition = fresh_name(unit, context, "is_chosen")
        lines.append(f"const bool {condition} = {select.condition};")
    for name, taken, other in pairs:
        lines.append(f"{name} = {condition} ? {taken} : {other};")
    indent = unit.indent_of(select.statement)
    if len(lines) == 1:
        text = lines[0]
    elif is_statement_of_block(select.statement) and not _has_label(select.statement):
        text = f"\n{indent}".join(lines)
    else:
        text = "{ " + " ".join(lines) + " }"
    edits.replace(select.statement, text)


def _has_label(statement: Node) -> bool:
    return statement.parent is not None and statement.parent.type in ("case_statement", "labeled_statement")


def _paired(select: Select) -> list[tuple[str, str, str]]:
    """Return each variable with its value where the condition holds and where it doesn't."""
    taken, other = select.taken, select.other
    if [entry.variable for entry in taken] == [entry.variable for entry in other]:
        return [(a.variable.name, a.value, b.value) for a, b in zip(taken, other, strict=True)]
    found = [(entry.variable.name, entry.value, entry.variable.name) for entry in taken]
    return [*found, *((entry.variable.name, entry.variable.name, entry.value) for entry in other)]
