"""Read grid and block shapes: literals, `dim3(...)`, braces, and `dim3` variables with later assignments."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from kernelskill.source.constants import Constants
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.syntax import Span, SyntaxTree, ancestors, named, span_of, strip_parentheses, walk

_AXES = "xyz"
_BRANCHES = frozenset(
    {
        "if_statement",
        "for_statement",
        "while_statement",
        "do_statement",
        "switch_statement",
        "lambda_expression",
    }
)

_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})


@dataclass(frozen=True)
class Component:
    """The size along one axis."""

    text: str
    """The expression; `1` where none is written."""
    value: int | None
    """The constant, where it is one."""
    span: Span | None
    """Where the expression stands; None where it is not written."""
    node: Node | None = field(default=None, repr=False)


_ONE = Component("1", 1, None)


@dataclass(frozen=True)
class Dimensions:
    """A grid or block shape as a launch gives it."""

    text: str
    span: Span
    """The expression between the chevrons."""
    node: Node = field(repr=False)
    components: tuple[Component, Component, Component] | None
    """None where the shape can't be told, for example a function's result."""
    variable: VariableDef | None = None
    """The `dim3` variable that the launch names."""

    @property
    def values(self) -> tuple[int | None, int | None, int | None]:
        """Constants in x, y, z."""
        if self.components is None:
            return (None, None, None)
        x, y, z = (component.value for component in self.components)
        return (x, y, z)

    @property
    def is_linear(self) -> bool:
        """Whether y and z are 1."""
        return self.values[1:] == (1, 1)


def local_constants(function: FunctionDef | None, syntax: SyntaxTree) -> dict[str, Node]:
    """Return initialisers of a function's local integers that are never written again, by name.

    Names declared twice are left out.
    """
    if function is None or function.body is None:
        return {}
    counts: dict[str, int] = {parameter.name: 1 for parameter in function.parameters}
    for variable in function.locals:
        counts[variable.name] = counts.get(variable.name, 0) + 1
    written = written_names(syntax, function.body)
    found = {}
    for variable in function.locals:
        plain = variable.pointer_depth == 0 and not variable.dimensions
        if plain and counts[variable.name] == 1 and variable.name not in written and variable.initialiser:
            values = named(variable.initialiser)
            listed = variable.initialiser.type in ("argument_list", "initializer_list")
            if not listed or len(values) == 1:
                found[variable.name] = values[0] if listed else variable.initialiser
    return found


def written_names(syntax: SyntaxTree, node: Node) -> set[str]:
    """Return the names that are assigned, incremented or have their address taken below a node."""
    found: set[str] = set()
    for entry in walk(node):
        target: Node | None = None
        if entry.type == "assignment_expression":
            target = entry.child_by_field_name("left")
        elif entry.type == "update_expression" or (
            entry.type == "pointer_expression" and syntax.text_of(entry).startswith("&")
        ):
            target = entry.child_by_field_name("argument")
        if target is not None:
            found.add(syntax.text_of(_base_name(target)))
    return found


def _base_name(node: Node) -> Node:
    while True:
        node = strip_parentheses(node)
        inner = node.child_by_field_name("argument")
        if node.type not in ("field_expression", "subscript_expression") or inner is None:
            return node
        node = inner


def resolve_dimensions(
    syntax: SyntaxTree, node: Node, function: FunctionDef | None, constants: Constants, *, before: Node
) -> Dimensions:
    """Read a shape at a launch.

    Args:
        syntax: The file.
        node: The expression between the chevrons.
        function: The function that launches.
        constants: Constants of the file.
        before: The launch; assignments to a `dim3` variable count when they come before it.
    """
    reader = _ShapeReader(syntax, constants, local_constants(function, syntax))
    inner = strip_parentheses(node)
    variable: VariableDef | None = None
    if inner.type == "identifier" and function is not None:
        variable = _shape_variable(syntax, inner, function, before)
        if variable is not None:
            components = reader.of_variable(variable, function, before)
            return Dimensions(syntax.text_of(node), span_of(node), node, components, variable)
    return Dimensions(syntax.text_of(node), span_of(node), node, reader.of_expression(inner, function))


def _shape_variable(
    syntax: SyntaxTree, node: Node, function: FunctionDef, before: Node
) -> VariableDef | None:
    name = syntax.text_of(node)
    scopes = list(ancestors(before))
    visible = [
        v
        for v in function.locals
        if v.name == name and v.scope in scopes and v.name_span.start < before.start_byte
    ]
    return visible[-1] if visible and visible[-1].base_type in ("dim3", "uint3", "auto") else None


@dataclass(frozen=True)
class _ShapeReader:
    syntax: SyntaxTree
    constants: Constants
    locals: dict[str, Node]

    def component(self, node: Node) -> Component:
        # `dim3 b(X, Y)` reads like a function whose parameters have the types X and Y.
        inner = named(node) if node.type == "parameter_declaration" else []
        node = inner[0] if len(inner) == 1 and inner[0].type == "type_identifier" else node
        value = self.constants.value(node, self.locals)
        return Component(self.syntax.text_of(node), value, span_of(node), node)

    def of_expression(
        self, node: Node, function: FunctionDef | None
    ) -> tuple[Component, Component, Component] | None:
        if node.type == "call_expression":
            called = node.child_by_field_name("function")
            listed = node.child_by_field_name("arguments")
            if called is not None and listed is not None and self.syntax.text_of(called) == "dim3":
                return self.of_list(listed)
        if node.type == "compound_literal_expression":
            listed = node.child_by_field_name("value")
            return self.of_list(listed) if listed is not None else None
        if node.type in ("initializer_list", "argument_list", "parameter_list"):
            return self.of_list(node)
        if self._may_be_shape(node, function):
            return None
        return (self.component(node), _ONE, _ONE)

    def _may_be_shape(self, node: Node, function: FunctionDef | None) -> bool:
        """Whether an expression could be of type dim3 rather than an integer."""
        if node.type == "identifier" and function is not None:
            parameter = function.parameter(self.syntax.text_of(node))
            return parameter is not None and parameter.pointee_type == "dim3"
        return node.type == "conditional_expression" and "dim3" in self.syntax.text_of(node)

    def of_list(self, listed: Node) -> tuple[Component, Component, Component] | None:
        parts = [self.component(child) for child in named(listed)]
        if len(parts) > len(_AXES):
            return None
        x, y, z = (*parts, *[_ONE] * (len(_AXES) - len(parts)))
        return (x, y, z)

    def of_variable(
        self, variable: VariableDef, function: FunctionDef, before: Node
    ) -> tuple[Component, Component, Component] | None:
        start = (_ONE, _ONE, _ONE)
        found = self.of_expression(variable.initialiser, function) if variable.initialiser else start
        if found is None or function.body is None:
            return None
        current = dict(zip(_AXES, found, strict=True))
        for node in walk(function.body):
            if not self._touches(node, variable):
                continue
            if node.start_byte >= before.start_byte:
                if _share_loop(node, variable, before):
                    return None
                continue
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
            simple = node.type == "assignment_expression" and self.syntax.operator(node) == "="
            if not simple or target is None or value is None or _is_conditional(node, variable, before):
                return None
            if target.type == "identifier":
                replaced = self.of_expression(strip_parentheses(value), function)
                if replaced is None:
                    return None
                current = dict(zip(_AXES, replaced, strict=True))
            else:
                axis = target.child_by_field_name("field")
                current[self.syntax.text_of(axis) if axis is not None else ""] = self.component(value)
        return (current["x"], current["y"], current["z"])

    def _touches(self, node: Node, variable: VariableDef) -> bool:
        """Whether a node writes the variable or takes its address."""
        target: Node | None = None
        if node.type == "assignment_expression":
            target = node.child_by_field_name("left")
        elif node.type == "update_expression" or self.syntax.text_of(node).startswith("&"):
            target = node.child_by_field_name("argument")
        if target is None or node.start_byte < variable.name_span.start:
            return False
        return self.syntax.text_of(_base_name(target)) == variable.name


def _share_loop(node: Node, variable: VariableDef, before: Node) -> bool:
    """Whether a write after the launch comes before the launch of the next iteration."""
    reached = set(ancestors(before))
    return any(
        parent.type in _LOOPS and parent in reached
        for parent in ancestors(node)
        if variable.scope_span.contains(span_of(parent)) and parent != variable.scope
    )


def _is_conditional(node: Node, variable: VariableDef, before: Node) -> bool:
    """Whether a write may not happen before the launch though it stands before it."""
    reached = set(ancestors(before))
    return any(
        parent.type in _BRANCHES and parent not in reached
        for parent in ancestors(node)
        if variable.scope_span.contains(span_of(parent)) and parent != variable.scope
    )
