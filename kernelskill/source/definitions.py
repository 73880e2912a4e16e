"""Find the functions of a source: kernels, device functions and host functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tree_sitter import Node

from kernelskill.source.declarations import (
    ParameterDef,
    VariableDef,
    read_parameters,
    read_variables,
    type_node,
)
from kernelskill.source.preprocessor import MacroDef, is_disabled
from kernelskill.source.syntax import Span, SyntaxTree, ancestors, named, span_of, walk

_MARKS = frozenset({"__global__", "__device__", "__host__", "__forceinline__", "__noinline__"})


class FunctionKind(StrEnum):
    """Where a function runs."""

    KERNEL = "kernel"
    DEVICE = "device"
    HOST = "host"
    HOST_DEVICE = "host_device"


@dataclass(frozen=True)
class TemplateParameter:
    """One parameter of a template header."""

    name: str
    kind: str
    """`typename`, or the type of a value parameter such as `int`."""
    default: str = ""


@dataclass(frozen=True, eq=False)
class FunctionDef:
    """A function with a body, or a prototype where `body` is None."""

    name: str
    qualified_name: str
    kind: FunctionKind
    qualifiers: tuple[str, ...]
    template_parameters: tuple[TemplateParameter, ...]
    parameters: tuple[ParameterDef, ...]
    return_type: str
    c_linkage: bool
    namespace: tuple[str, ...]
    line: int
    span: Span
    """From the template header or first specifier to the closing brace."""
    name_span: Span
    body_span: Span | None
    """The body with its braces."""
    locals: tuple[VariableDef, ...]
    """Every variable declared in the body, in the order of the text; names may repeat."""
    node: Node = field(repr=False)
    body: Node | None = field(repr=False)
    opaque_reason: str = ""
    """Why the function can't be relied on to mean what its tree says; empty when it can."""

    @property
    def is_opaque(self) -> bool:
        return bool(self.opaque_reason)

    @property
    def is_templated(self) -> bool:
        return bool(self.template_parameters)

    @property
    def is_device_code(self) -> bool:
        return self.kind is not FunctionKind.HOST

    def parameter(self, name: str) -> ParameterDef | None:
        """Return the parameter of that name."""
        return next((entry for entry in self.parameters if entry.name == name), None)

    def local(self, name: str) -> VariableDef | None:
        """Return the first local variable of that name."""
        return next((entry for entry in self.locals if entry.name == name), None)


@dataclass(frozen=True, eq=False)
class KernelDef(FunctionDef):
    """A `__global__` function."""

    launch_bounds: tuple[str, ...] = ()
    """The arguments of `__launch_bounds__` as written."""
    launch_bounds_span: Span | None = None


def find_functions(syntax: SyntaxTree, macros: tuple[MacroDef, ...]) -> tuple[FunctionDef, ...]:
    """Return all functions, kernels included, in the order of the text."""
    words = {macro.name: tuple(macro.value.split()) for macro in macros if not macro.is_function_like}
    found: list[FunctionDef] = []
    for node in walk(syntax.root):
        if node.type == "function_definition" or (node.type == "declaration" and _is_prototype(node)):
            function = _read_function(syntax, node, words)
            if function is not None:
                found.append(function)
    return tuple(found)


def _is_prototype(node: Node) -> bool:
    if any(parent.type == "compound_statement" for parent in ancestors(node)):
        return False
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and _function_declarator(declarator) is not None


def _function_declarator(node: Node | None) -> Node | None:
    while node is not None:
        if node.type == "function_declarator":
            inner = node.child_by_field_name("declarator")
            return None if inner is None or inner.type == "parenthesized_declarator" else node
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next((c for c in named(node) if "declarator" in c.type), None)
    return None


def _read_function(
    syntax: SyntaxTree, node: Node, macro_words: dict[str, tuple[str, ...]]
) -> FunctionDef | None:
    declarator = _function_declarator(node.child_by_field_name("declarator"))
    name_node = declarator.child_by_field_name("declarator") if declarator is not None else None
    if declarator is None or name_node is None:
        return None
    listed = declarator.child_by_field_name("parameters")
    words = _words_before(syntax, node, name_node, macro_words)
    kind = _kind(words)
    outer = node
    while outer.parent is not None and outer.parent.type == "template_declaration":
        outer = outer.parent
    body = node.child_by_field_name("body")
    names = _namespaces(syntax, node)
    name = syntax.text_of(name_node)
    base = name.split("<")[0].split("::")[-1]
    common = {
        "name": base,
        "qualified_name": "::".join((*names, name)),
        "kind": kind,
        "qualifiers": words,
        "template_parameters": _template_parameters(syntax, outer),
        "parameters": read_parameters(syntax, listed) if listed is not None else (),
        "return_type": _return_type(syntax, node),
        "c_linkage": _has_c_linkage(syntax, node),
        "namespace": names,
        "line": syntax.line_of(name_node),
        "span": Span(syntax.start_with_masks(outer.start_byte), outer.end_byte),
        "name_span": span_of(name_node),
        "body_span": span_of(body) if body is not None else None,
        "locals": find_variables(syntax, body, kind) if body is not None else (),
        "node": node,
        "body": body,
        "opaque_reason": "it is disabled by `#if 0`" if is_disabled(syntax, node) else "",
    }
    if kind is not FunctionKind.KERNEL:
        return FunctionDef(**common)  # type: ignore[arg-type]
    bounds = next((child for child in walk(node) if child.type == "launch_bounds"), None)
    return KernelDef(
        **common,  # type: ignore[arg-type]
        launch_bounds=tuple(syntax.text_of(child) for child in named(bounds)) if bounds is not None else (),
        launch_bounds_span=span_of(bounds) if bounds is not None else None,
    )


def _words_before(
    syntax: SyntaxTree, node: Node, name: Node, macro_words: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the specifiers of a function, macros replaced by their value."""
    words: list[str] = []
    for child in node.children:
        if child.start_byte >= name.start_byte:
            break
        if child.type in _MARKS or child.type in ("storage_class_specifier", "type_qualifier"):
            words.append(syntax.text_of(child))
        elif child.type in ("type_identifier", "identifier"):
            words.extend(macro_words.get(syntax.text_of(child), ()))
    start = syntax.start_with_masks(node.start_byte)
    words.extend(syntax.masked_words(start, name.start_byte))
    return tuple(words)


def _kind(words: tuple[str, ...]) -> FunctionKind:
    if "__global__" in words:
        return FunctionKind.KERNEL
    if "__device__" in words:
        return FunctionKind.HOST_DEVICE if "__host__" in words else FunctionKind.DEVICE
    return FunctionKind.HOST


def _return_type(syntax: SyntaxTree, node: Node) -> str:
    kind = type_node(node)
    text = " ".join(syntax.text_of(kind).split()) if kind is not None else ""
    stars, declarator = "", node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        stars += "*" if declarator.type == "pointer_declarator" else "&"
        inner = declarator.child_by_field_name("declarator")
        declarator = inner if inner is not None else next(iter(named(declarator)), None)
    const = any(
        child.type == "type_qualifier" and syntax.text_of(child) == "const" for child in node.children
    )
    return f"{'const ' if const else ''}{text}{stars}"


def _has_c_linkage(syntax: SyntaxTree, node: Node) -> bool:
    for parent in ancestors(node):
        if parent.type == "linkage_specification":
            value = parent.child_by_field_name("value")
            return value is not None and syntax.text_of(value) == '"C"'
    return False


def _namespaces(syntax: SyntaxTree, node: Node) -> tuple[str, ...]:
    names: list[str] = []
    for parent in ancestors(node):
        if parent.type in ("namespace_definition", "struct_specifier", "class_specifier"):
            name = parent.child_by_field_name("name")
            names.insert(0, syntax.text_of(name) if name is not None else "")
    return tuple(names)


def _template_parameters(syntax: SyntaxTree, outer: Node) -> tuple[TemplateParameter, ...]:
    listed = outer.child_by_field_name("parameters") if outer.type == "template_declaration" else None
    if listed is None:
        return ()
    return tuple(_template_parameter(syntax, node) for node in named(listed))


def _template_parameter(syntax: SyntaxTree, node: Node) -> TemplateParameter:
    default = node.child_by_field_name("default_value") or node.child_by_field_name("default_type")
    default_text = syntax.text_of(default) if default is not None else ""
    name = node.child_by_field_name("declarator") or node.child_by_field_name("name")
    if name is None:
        name = next((child for child in named(node) if child.type in ("type_identifier", "identifier")), None)
    kind = node.child_by_field_name("type") if "parameter_declaration" in node.type else None
    is_type = node.type.startswith(("type_parameter", "optional_type", "variadic_type", "template_template"))
    return TemplateParameter(
        name=syntax.text_of(name) if name is not None else "",
        kind="typename" if is_type or kind is None else syntax.text_of(kind),
        default=default_text,
    )


def find_variables(syntax: SyntaxTree, body: Node, kind: FunctionKind) -> tuple[VariableDef, ...]:
    """Return every variable declared below a node, in the order of the text."""
    found: list[VariableDef] = []
    device = kind is not FunctionKind.HOST
    for node in walk(body):
        if node.type in ("declaration", "for_range_loop", "condition_declaration"):
            found.extend(read_variables(syntax, node, in_device_code=device))
    return tuple(found)
