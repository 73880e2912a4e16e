"""Read declarators: parameters, variables and their types as written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tree_sitter import Node

from kernelskill.source.syntax import Span, SyntaxTree, ancestors, named, span_of, walk

_RESTRICT = frozenset({"__restrict__", "__restrict", "restrict"})
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier", "qualified_identifier"})
_SPECIFIERS = frozenset(
    {
        *(
            "primitive_type",
            "sized_type_specifier",
            "type_identifier",
            "qualified_identifier",
            "template_type",
        ),
        *(
            "placeholder_type_specifier",
            "struct_specifier",
            "enum_specifier",
            "union_specifier",
            "dependent_type",
        ),
        *("class_specifier", "decltype"),
    }
)
SCOPES = frozenset(
    {
        *("compound_statement", "for_statement", "while_statement", "if_statement", "switch_statement"),
        *(
            "for_range_loop",
            "lambda_expression",
            "function_definition",
            "translation_unit",
            "declaration_list",
        ),
        *("do_statement", "struct_specifier", "class_specifier", "template_declaration"),
    }
)


class Storage(StrEnum):
    """Where a variable lives."""

    LOCAL = "local"
    SHARED = "shared"
    DYNAMIC_SHARED = "dynamic_shared"
    CONSTANT = "constant"
    DEVICE = "device"
    STATIC = "static"
    HOST = "host"


@dataclass(frozen=True, eq=False)
class ParameterDef:
    """One parameter of a function, as declared."""

    name: str
    """Empty where the declaration names none."""
    type_text: str
    """The declared type without the name, for example `const float* __restrict__`."""
    pointer_depth: int
    """Arrays count as pointers."""
    pointee_type: str
    """The type without `const`, pointers and references, for example `float`."""
    is_const: bool
    """Whether what a pointer points at (or the value itself) is const."""
    is_restrict: bool
    is_reference: bool
    span: Span
    name_span: Span
    node: Node
    default: Node | None = None

    @property
    def is_pointer(self) -> bool:
        return self.pointer_depth > 0


@dataclass(frozen=True, eq=False)
class VariableDef:
    """One declared variable of a function or of the file."""

    name: str
    type_text: str
    base_type: str
    """The type without qualifiers, pointers and references."""
    pointer_depth: int
    dimensions: tuple[Node | None, ...]
    """Array extents from the left; None for `[]`."""
    storage: Storage
    is_const: bool
    """For a pointer: whether the pointee is const."""
    is_reference: bool
    initialiser: Node | None
    """The value, or the argument or brace list of `dim3 b(16, 16)`."""
    declaration: Node
    """The whole statement, which may declare others too."""
    declarator: Node
    scope: Node
    """The block, loop or file that ends the variable's life."""
    name_span: Span
    scope_span: Span
    span: Span
    """The whole statement with its semicolon."""

    @property
    def is_array(self) -> bool:
        return bool(self.dimensions)


@dataclass(frozen=True)
class _Declarator:
    name: Node | None
    pointer_depth: int
    dimensions: tuple[Node | None, ...]
    is_reference: bool
    is_function: bool
    qualifiers: tuple[str, ...]


def read_declarator(syntax: SyntaxTree, node: Node | None) -> _Declarator:
    """Unwrap pointers, arrays, references and parentheses round a declared name."""
    depth, reference, function = 0, False, False
    dimensions: list[Node | None] = []
    qualifiers: list[str] = []
    while node is not None and node.type not in _NAMES:
        if node.type in ("pointer_declarator", "abstract_pointer_declarator"):
            depth += 1
            qualifiers += [syntax.text_of(child) for child in node.children if _is_qualifier(child)]
        elif node.type in ("array_declarator", "abstract_array_declarator"):
            dimensions.insert(0, node.child_by_field_name("size"))
        elif node.type in ("reference_declarator", "abstract_reference_declarator"):
            reference = True
        elif node.type in ("function_declarator", "abstract_function_declarator"):
            function = True
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next((child for child in named(node) if _is_declarator(child)), None)
        node = inner
    return _Declarator(node, depth, tuple(dimensions), reference, function, tuple(qualifiers))


def _is_qualifier(node: Node) -> bool:
    return node.type in ("type_qualifier", "ms_pointer_modifier", "ms_restrict_modifier")


def _is_declarator(node: Node) -> bool:
    return node.type in _NAMES or node.type.endswith("_declarator")


def type_node(declaration: Node) -> Node | None:
    """Return the node of the type that a declaration names."""
    found = declaration.child_by_field_name("type")
    if found is not None:
        return found
    return next((child for child in named(declaration) if child.type in _SPECIFIERS), None)


def read_parameters(syntax: SyntaxTree, parameter_list: Node) -> tuple[ParameterDef, ...]:
    """Return the parameters of a parameter list; `(void)` has none."""
    found = []
    for node in named(parameter_list):
        if node.type in ("parameter_declaration", "optional_parameter_declaration"):
            parameter = _read_parameter(syntax, node)
            if parameter.type_text != "void":
                found.append(parameter)
    return tuple(found)


def _read_parameter(syntax: SyntaxTree, node: Node) -> ParameterDef:
    declared = read_declarator(syntax, node.child_by_field_name("declarator"))
    default = node.child_by_field_name("default_value")
    kind = type_node(node)
    end = _end_before_default(node) if default is not None else node.end_byte
    name_span = span_of(declared.name) if declared.name is not None else Span(end, end)
    start = syntax.start_with_masks(node.start_byte)
    before = syntax.text_of(Span(start, name_span.start)).rstrip()
    after = syntax.text_of(Span(name_span.end, end)).strip()
    specifiers = [syntax.text_of(child) for child in node.children if _is_qualifier(child)]
    words = {*specifiers, *declared.qualifiers, *syntax.masked_words(start, node.end_byte)}
    depth = declared.pointer_depth + len(declared.dimensions)
    masked_const = "const" in syntax.masked_words(start, name_span.start) and depth < 2
    return ParameterDef(
        name=syntax.text_of(declared.name) if declared.name is not None else "",
        type_text=" ".join(f"{before}{after}".split()),
        pointer_depth=depth + declared.is_function,
        pointee_type=" ".join(syntax.text_of(kind).split()) if kind is not None else "",
        is_const="const" in specifiers or masked_const,
        is_restrict=bool(words & _RESTRICT),
        is_reference=declared.is_reference,
        span=Span(start, node.end_byte),
        name_span=name_span,
        node=node,
        default=default,
    )


def _end_before_default(node: Node) -> int:
    equals = next((child for child in node.children if child.type == "="), None)
    return equals.start_byte if equals is not None else node.end_byte


def read_variables(syntax: SyntaxTree, declaration: Node, *, in_device_code: bool) -> tuple[VariableDef, ...]:
    """Return the variables that one declaration statement declares; functions and types are left out."""
    kind = type_node(declaration)
    words = [
        syntax.text_of(child)
        for child in declaration.children
        if child.type in ("type_qualifier", "storage_class_specifier")
    ]
    start = syntax.start_with_masks(declaration.start_byte)
    words += syntax.masked_words(start, declaration.end_byte)
    words += [child.type for child in declaration.children if child.type in ("__device__", "__host__")]
    found = []
    for node in declaration.children_by_field_name("declarator"):
        variable = _read_variable(syntax, declaration, node, kind, words, in_device_code)
        if variable is not None:
            found.append(variable)
    return tuple(found)


def _read_variable(
    syntax: SyntaxTree,
    declaration: Node,
    node: Node,
    kind: Node | None,
    words: list[str],
    in_device_code: bool,
) -> VariableDef | None:
    initialiser = node.child_by_field_name("value") if node.type == "init_declarator" else None
    inner = node.child_by_field_name("declarator") if node.type == "init_declarator" else node
    declared = read_declarator(syntax, inner)
    if declaration.type == "for_range_loop":
        initialiser = None
    elif initialiser is None:
        initialiser = declaration.child_by_field_name("default_value")
    if declared.is_function and _is_constructor_call(declared, inner, kind, syntax):
        initialiser = next(child for child in walk(node) if child.type == "parameter_list")
    elif declared.is_function and declared.pointer_depth == 0:
        return None
    if declared.name is None:
        return None
    base = " ".join(syntax.text_of(kind).split()) if kind is not None else ""
    scope = next((parent for parent in ancestors(declaration) if parent.type in SCOPES), declaration)
    return VariableDef(
        name=syntax.text_of(declared.name),
        type_text=_variable_type(base, words, declared),
        base_type=base,
        pointer_depth=declared.pointer_depth,
        dimensions=declared.dimensions,
        storage=_storage(words, in_device_code),
        is_const="const" in words or "constexpr" in words,
        is_reference=declared.is_reference,
        initialiser=initialiser,
        declaration=declaration,
        declarator=node,
        scope=scope,
        name_span=span_of(declared.name),
        scope_span=span_of(scope),
        span=Span(syntax.start_with_masks(declaration.start_byte), declaration.end_byte),
    )


def _is_constructor_call(
    declared: _Declarator, node: Node | None, kind: Node | None, syntax: SyntaxTree
) -> bool:
    """Whether `dim3 b(x, y)` was read as the declaration of a function."""
    return node is not None and kind is not None and syntax.text_of(kind) in ("dim3", "uint3")


def _variable_type(base: str, words: list[str], declared: _Declarator) -> str:
    const = "const " if "const" in words or "constexpr" in words else ""
    return f"{const}{base}{'*' * declared.pointer_depth}{'&' if declared.is_reference else ''}"


def _storage(words: list[str], in_device_code: bool) -> Storage:
    if "__shared__" in words:
        return Storage.DYNAMIC_SHARED if "extern" in words else Storage.SHARED
    if "__constant__" in words:
        return Storage.CONSTANT
    if "__device__" in words or "__managed__" in words:
        return Storage.DEVICE
    if "static" in words and not in_device_code:
        return Storage.STATIC
    return Storage.LOCAL if in_device_code else Storage.HOST
