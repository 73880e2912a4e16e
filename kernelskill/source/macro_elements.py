"""Find the array elements that a use of a function-like macro names, such as `AT(a, i, j)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.source.affine import resolve_text
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.expansion import expand_macro, parse_expression
from kernelskill.source.pointers import PointerReader, Target
from kernelskill.source.syntax import SyntaxTree, named, strip_parentheses, walk


@dataclass(frozen=True)
class MacroElement:
    """One element named by the expansion of a macro."""

    base: str
    target: Target
    is_whole: bool
    """Whether the macro stands for the element itself, so that it can be assigned to."""
    is_written: bool
    """Whether the expansion assigns to it."""


def macro_elements(reader: PointerReader, call: Node) -> tuple[MacroElement, ...]:
    """Return the elements in the expansion of a macro call; none where it is no macro or can't be expanded."""
    function, listed = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    macro = reader.unit.macro(reader.unit.text_of(function)) if function is not None else None
    if macro is None or not macro.is_function_like or listed is None:
        return ()
    arguments = named(listed)
    text = expand_macro(macro, [reader.unit.text_of(argument) for argument in arguments])
    parsed = parse_expression(f"({text})") if text is not None else None
    if parsed is None:
        return ()
    return tuple(_elements(reader, call, arguments, *parsed))


def _elements(
    reader: PointerReader, call: Node, arguments: list[Node], syntax: SyntaxTree, value: Node
) -> Iterator[MacroElement]:
    whole = strip_parentheses(value)
    own = {" ".join(reader.unit.text_of(argument).split()) for argument in arguments}
    for node in walk(value):
        parent = node.parent
        if node.type != "subscript_expression" or (
            parent is not None and parent.type == "subscript_expression"
        ):
            continue
        if " ".join(syntax.text_of(node).split()) in own:
            continue
        base, indices = _base_and_indices(node)
        target = _target(reader, call, arguments, syntax, base)
        for index in indices:
            target = reader.moved(target, reader.indices.read_at(index, syntax, call), subscript=True)
        assigned = parent is not None and parent.child_by_field_name("left") == node
        written = assigned and parent is not None and parent.type == "assignment_expression"
        yield MacroElement(syntax.text_of(base), target, node == whole, written)


def _base_and_indices(node: Node) -> tuple[Node, list[Node]]:
    indices: list[Node] = []
    while node.type == "subscript_expression":
        listed, inner = node.child_by_field_name("indices"), node.child_by_field_name("argument")
        indices = [*(named(listed) if listed is not None else []), *indices]
        if inner is None:
            break
        node = strip_parentheses(inner)
    return node, indices


def _target(
    reader: PointerReader, call: Node, arguments: list[Node], syntax: SyntaxTree, base: Node
) -> Target:
    text = syntax.text_of(base)
    for argument in arguments:
        if reader.unit.text_of(strip_parentheses(argument)) == text:
            return reader.read(argument)
    declared = resolve_text(reader.unit, reader.function, text, call)
    if isinstance(declared, ParameterDef):
        return reader.parameter(declared, call)
    if isinstance(declared, VariableDef) and declared.dimensions:
        return reader.array(declared)
    return reader.unknown(text)
