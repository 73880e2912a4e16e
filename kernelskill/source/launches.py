"""Find kernel launches and read their grid and block shapes."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from kernelskill.source.constants import Constants
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.dimensions import Dimensions, resolve_dimensions
from kernelskill.source.syntax import Span, SyntaxTree, named, span_of, strip_parentheses, walk

_API_LAUNCHES = frozenset({"cudaLaunchKernel", "cudaLaunchCooperativeKernel"})
_CAST_CALLS = frozenset({"reinterpret_cast", "static_cast", "const_cast"})


@dataclass(frozen=True)
class Expression:
    """An expression with its text and place."""

    text: str
    span: Span
    node: Node = field(repr=False)


@dataclass(frozen=True)
class LaunchSite:
    """One launch of a kernel."""

    kernel: str
    """The kernel's name without template arguments; the variable's name where that is launched."""
    template_arguments: tuple[str, ...]
    grid: Dimensions
    block: Dimensions
    shared: Expression | None
    """Dynamic shared memory in bytes; None where the launch does not say (then 0)."""
    stream: Expression | None
    arguments: tuple[Expression, ...]
    """Empty where an API launch's argument array could not be read."""
    function: str
    """Name of the function that launches; empty at file scope."""
    uses_api: bool
    """Whether it is a call of cudaLaunchKernel rather than `<<<>>>`."""
    line: int
    span: Span
    """The whole call, without a semicolon."""
    node: Node = field(repr=False)
    name_span: Span
    """The kernel's name with template arguments."""
    configuration_span: Span
    """From `<<<` to `>>>`; for an API launch the argument list."""
    arguments_readable: bool = True


def block_shape(launch: LaunchSite) -> tuple[int | None, int | None, int | None]:
    """Return the threads of a block in x, y, z; None for what is not a constant."""
    return launch.block.values


def grid_shape(launch: LaunchSite) -> tuple[int | None, int | None, int | None]:
    """Return the blocks of the grid in x, y, z; None for what is not a constant."""
    return launch.grid.values


def find_launches(
    syntax: SyntaxTree, functions: tuple[FunctionDef, ...], constants: Constants
) -> tuple[LaunchSite, ...]:
    """Return every launch in the order of the text."""
    reader = _LaunchReader(syntax, functions, constants)
    found = [reader.read(node) for node in walk(syntax.root) if node.type == "call_expression"]
    return tuple(launch for launch in found if launch is not None)


@dataclass(frozen=True)
class _LaunchReader:
    syntax: SyntaxTree
    functions: tuple[FunctionDef, ...]
    constants: Constants

    def read(self, node: Node) -> LaunchSite | None:
        configuration = next((c for c in node.children if c.type == "kernel_call_syntax"), None)
        function = node.child_by_field_name("function")
        listed = node.child_by_field_name("arguments")
        if function is None or listed is None:
            return None
        if configuration is not None:
            return self._triple_chevron(node, function, configuration, listed)
        name = self.syntax.text_of(function).split("<")[0]
        if name in _API_LAUNCHES and len(named(listed)) >= 4:
            return self._api_launch(node, listed)
        return None

    def _triple_chevron(
        self, node: Node, function: Node, configuration: Node, listed: Node
    ) -> LaunchSite | None:
        parts = named(configuration)
        if len(parts) < 2:
            return None
        return self._site(
            node,
            function,
            parts[:4],
            tuple(self._expression(child) for child in named(listed)),
            span_of(configuration),
        )

    def _api_launch(self, node: Node, listed: Node) -> LaunchSite | None:
        parts = named(listed)
        kernel = _without_casts(parts[0])
        if kernel.type == "pointer_expression":
            kernel = kernel.child_by_field_name("argument") or kernel
        enclosing = self._enclosing(node)
        arguments = self._argument_array(parts[3], enclosing)
        return self._site(
            node,
            kernel,
            [parts[1], parts[2], *parts[4:6]],
            arguments or (),
            span_of(listed),
            uses_api=True,
            readable=arguments is not None,
        )

    def _site(
        self,
        node: Node,
        function: Node,
        parts: list[Node],
        arguments: tuple[Expression, ...],
        configuration_span: Span,
        *,
        uses_api: bool = False,
        readable: bool = True,
    ) -> LaunchSite:
        enclosing = self._enclosing(node)
        name, template_arguments = self._kernel_name(function)
        shape = [
            resolve_dimensions(self.syntax, part, enclosing, self.constants, before=node)
            for part in parts[:2]
        ]
        return LaunchSite(
            kernel=name,
            template_arguments=template_arguments,
            grid=shape[0],
            block=shape[1],
            shared=self._expression(parts[2]) if len(parts) > 2 else None,
            stream=self._expression(parts[3]) if len(parts) > 3 else None,
            arguments=arguments,
            function=enclosing.name if enclosing is not None else "",
            uses_api=uses_api,
            line=self.syntax.line_of(node),
            span=span_of(node),
            node=node,
            name_span=span_of(function),
            configuration_span=configuration_span,
            arguments_readable=readable,
        )

    def _expression(self, node: Node) -> Expression:
        return Expression(self.syntax.text_of(node), span_of(node), node)

    def _enclosing(self, node: Node) -> FunctionDef | None:
        inside = [f for f in self.functions if f.body is not None and f.span.contains(span_of(node))]
        return min(inside, key=lambda f: f.span.end - f.span.start, default=None)

    def _kernel_name(self, function: Node) -> tuple[str, tuple[str, ...]]:
        function = strip_parentheses(function)
        template = next((n for n in walk(function) if n.type == "template_function"), None)
        arguments: tuple[str, ...] = ()
        if template is not None:
            listed = template.child_by_field_name("arguments")
            if listed is not None:
                arguments = tuple(self.syntax.text_of(child) for child in named(listed))
        name = self.syntax.text_of(function).split("<")[0].split("::")[-1].strip()
        return name, arguments

    def _argument_array(self, node: Node, enclosing: FunctionDef | None) -> tuple[Expression, ...] | None:
        """Return what `void* args[] = {&a, &b}` points at; None where it can't be told."""
        if node.type != "identifier" or enclosing is None:
            return None
        variable: VariableDef | None = enclosing.local(self.syntax.text_of(node))
        if (
            variable is None
            or variable.initialiser is None
            or variable.initialiser.type != "initializer_list"
        ):
            return None
        found = []
        for entry in named(variable.initialiser):
            target = _without_casts(entry)
            if target.type != "pointer_expression" or self.syntax.operator(target) not in ("&", ""):
                return None
            argument = target.child_by_field_name("argument")
            found.append(self._expression(argument if argument is not None else target))
        return tuple(found)


def _without_casts(node: Node) -> Node:
    """Return what is cast."""
    while True:
        node = strip_parentheses(node)
        inner: Node | None = None
        if node.type == "cast_expression":
            inner = node.child_by_field_name("value")
        elif node.type == "call_expression":
            function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
            name = function.child_by_field_name("name") if function is not None else None
            if name is not None and listed is not None and _is_cast(name):
                inner = named(listed)[0]
        if inner is None:
            return node
        node = inner


def _is_cast(name: Node) -> bool:
    return name.text is not None and name.text.decode() in _CAST_CALLS
