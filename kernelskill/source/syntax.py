"""Parse CUDA text into a tree whose positions are byte offsets into the original text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter_cuda
from tree_sitter import Language, Parser, Tree
from tree_sitter import Node as Node

from kernelskill.source.masking import QUALIFIER_WORDS, Mask, mask_false_templates, mask_source

_LANGUAGE = Language(tree_sitter_cuda.language())
_VARIABLE_DECLARATORS = frozenset(
    {
        *("parameter_declaration", "init_declarator", "optional_parameter_declaration", "array_declarator"),
        *("pointer_declarator", "reference_declarator", "declaration"),
    }
)
_TYPE_DECLARATIONS = frozenset(
    {
        *("type_definition", "alias_declaration", "type_parameter_declaration"),
        *("struct_specifier", "class_specifier", "union_specifier", "enum_specifier"),
    }
)
_MASKING_ROUNDS = 8


@dataclass(frozen=True, order=True)
class Span:
    """A half-open range of bytes of the UTF-8 text."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Whether the two share a byte."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: Span) -> bool:
        """Whether `other` lies inside."""
        return self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, eq=False)
class SyntaxTree:
    """A parsed source. Take text from here, never from the nodes: the parser read a masked copy."""

    text: str
    data: bytes
    tree: Tree
    masks: tuple[Mask, ...]
    line_starts: tuple[int, ...] = field(repr=False)
    false_casts: tuple[Span, ...] = ()
    """Variables in parentheses that the tree has as the types of casts."""

    @property
    def root(self) -> Node:
        return self.tree.root_node

    def text_of(self, node: Node | Span) -> str:
        """Return the original text of a node or span."""
        if isinstance(node, Span):
            return self.data[node.start : node.end].decode()
        return self.data[node.start_byte : node.end_byte].decode()

    def operator(self, node: Node) -> str:
        """Return the operator of a binary, unary, assignment or update expression; empty if it has none."""
        operator = node.child_by_field_name("operator")
        return self.text_of(operator) if operator is not None else ""

    def line_of(self, position: Node | Span | int) -> int:
        """Return the line, counted from 1, of a byte offset or of the start of a node."""
        if not isinstance(position, int):
            position = position.start if isinstance(position, Span) else position.start_byte
        return bisect_right(self.line_starts, position)

    def line_span(self, line: int) -> Span:
        """Return the bytes of one line without its line break."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.data)
        return Span(start, start + len(self.data[start:end].rstrip(b"\r\n")))

    def masked_words(self, start: int, end: int) -> tuple[str, ...]:
        """Return the qualifiers that stand in a range of the original but not in the tree."""
        return tuple(
            word
            for mask in self.masks
            if mask.kind == "qualifier" and start <= mask.start < end
            for word in mask.meaning.split()
        )

    def start_with_masks(self, start: int) -> int:
        """Return where a declaration starts when qualifiers left out of the tree come first."""
        for mask in reversed(self.masks):
            between = self.data[mask.end : start] if mask.end <= start else b"x"
            if mask.kind == "qualifier" and not between.strip():
                start = mask.start
        return start


def span_of(node: Node | Span) -> Span:
    """Return the byte range of a node."""
    return node if isinstance(node, Span) else Span(node.start_byte, node.end_byte)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it in the order of the text."""
    # A cursor makes a node only where it stands; lists of children would be made and thrown away.
    cursor = node.walk()
    yield node
    while True:
        if not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return
        current = cursor.node
        if current is not None:  # it never is, but for the types
            yield current


def ancestors(node: Node) -> Iterator[Node]:
    """Yield the parents of a node, nearest first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def named(node: Node) -> list[Node]:
    """Return the named children that are not comments."""
    return [child for child in node.named_children if child.type != "comment"]


def strip_parentheses(node: Node) -> Node:
    """Return the expression inside any parentheses."""
    while node.type in ("parenthesized_expression", "condition_clause"):
        inner = named(node)
        if len(inner) != 1:
            break
        node = inner[0]
    return node


def parse_syntax(text: str) -> SyntaxTree:
    """Parse text; broken text gives a tree with error nodes.

    Comparisons that the grammar takes for template arguments are found by their name, which is that of a variable, and
    read again as comparisons. Operands in parentheses that it takes for the types of casts (`(flag) & a < b`) are found
    in the same way; no spelling of the same length and meaning is read otherwise, so they are told.
    """
    data = text.encode()
    parser = Parser(_LANGUAGE)
    copy, masks = mask_source(data, {})
    tree = parser.parse(copy)
    macros = _qualifier_macros(tree.root_node, data)
    if macros:
        copy, masks = mask_source(data, macros)
        tree = parser.parse(copy)
    false_casts: list[Span] = []
    for _ in range(_MASKING_ROUNDS):
        closers, false_casts = _misread(tree.root_node, data)
        if not closers:
            break
        copy = mask_false_templates(copy, closers)
        tree = parser.parse(copy)
    starts = [0]
    starts.extend(index + 1 for index, byte in enumerate(data) if byte == ord("\n"))
    return SyntaxTree(text, data, tree, masks, tuple(starts), tuple(false_casts))


def _qualifier_macros(root: Node, data: bytes) -> dict[str, str]:
    macros: dict[str, str] = {}
    for node in walk(root):
        if node.type != "preproc_def":
            continue
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            continue
        words = data[value.start_byte : value.end_byte].decode().split() if value is not None else []
        words = [word for entry in words for word in macros.get(entry, entry).split()]
        if words and all(word in QUALIFIER_WORDS for word in words):
            macros[data[name.start_byte : name.end_byte].decode()] = " ".join(words)
    return macros


def _misread(root: Node, data: bytes) -> tuple[list[int], list[Span]]:
    """Return where false templates are closed, and the types of false casts."""
    variables: set[bytes] = set()
    types: set[bytes] = set()
    templates: list[tuple[bytes, Node]] = []
    casts: list[tuple[bytes, Node]] = []
    for node in walk(root):
        if node.type in _VARIABLE_DECLARATORS:
            for declared in node.children_by_field_name("declarator"):
                if declared.type == "identifier":
                    variables.add(_bytes_of(declared, data))
            if node.type == "reference_declarator" and named(node)[0].type == "identifier":
                variables.add(_bytes_of(named(node)[0], data))
        elif node.type in _TYPE_DECLARATIONS:
            types.update(
                _bytes_of(each, data) for each in node.named_children if each.type == "type_identifier"
            )
        elif node.type == "template_argument_list" and node.parent is not None:
            name = node.parent.child_by_field_name("name")
            if name is not None:
                templates.append((_bytes_of(name, data), node))
        elif node.type == "cast_expression" and (kind := node.child_by_field_name("type")) is not None:
            casts.append((_bytes_of(kind, data), kind))
    closers = [
        node.end_byte - 1
        for name, node in templates
        if name in variables and data[node.end_byte - 1 : node.end_byte] == b">" and not _launches(node)
    ]
    return closers, [span_of(kind) for name, kind in casts if name in variables - types]


def _bytes_of(node: Node, data: bytes) -> bytes:
    return data[node.start_byte : node.end_byte]


def _launches(arguments: Node) -> bool:
    """Whether a template argument list belongs to the name of a launched kernel."""
    call = arguments.parent.parent if arguments.parent is not None else None
    return call is not None and any(child.type == "kernel_call_syntax" for child in call.children)
