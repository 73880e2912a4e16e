"""Names that skills give things of their own in definitions they add, where the user's file has macros of those names.

Names in a kernel are chosen so that the file does not use them. The functions and types that come with it are texts of
their own, and a `T` or a `value` in them would be replaced by whatever the user's macro says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache

from kernelskill.schema.candidate import Edit, Replacement, Scheduled
from kernelskill.skills.transformation import Rewrite
from kernelskill.source.masking import lexemes
from kernelskill.source.syntax import Node, parse_syntax, walk
from kernelskill.source.unit import SourceUnit

_DEFINITIONS = ("template_declaration", "function_definition", "struct_specifier")
_DECLARATIONS = (
    "declaration",
    "parameter_declaration",
    "optional_parameter_declaration",
    "init_declarator",
)


def without_macro_names(rewrite: Rewrite, units: Collection[SourceUnit]) -> Rewrite:
    """Return a rewrite whose definitions declare nothing by the name of a macro.

    Args:
        rewrite: What a skill made.
        units: All files of the candidate. What they declare by such a name themselves, they mean.
    """
    macros = {macro.name for unit in units for macro in unit.macros}
    macros -= {name for unit in units for name in _declared_in_file(unit, frozenset(macros))}
    edits = tuple(_edited(edit, macros) for edit in rewrite.edits)
    if edits == rewrite.edits:
        return rewrite
    return Rewrite(edits, rewrite.assumptions, rewrite.notes, _emitted(rewrite.scheduled, macros))


def _edited(edit: Edit, macros: Collection[str]) -> Edit:
    text = respelled(edit.text, macros)
    return edit if text == edit.text else edit.model_copy(update={"text": text})


def _emitted(scheduled: Scheduled | None, macros: Collection[str]) -> Scheduled | None:
    """Return the record of an emission with the texts that stand in the file now: moves are added by them later."""
    if scheduled is None:
        return None
    replacements = tuple(_replaced(each, macros) for each in scheduled.replacements)
    return scheduled.model_copy(update={"replacements": replacements})


def _replaced(replacement: Replacement, macros: Collection[str]) -> Replacement:
    return replacement.model_copy(update={"emitted": respelled(replacement.emitted, macros)})


def respelled(text: str, macros: Collection[str]) -> str:
    """Return a text whose function and type definitions declare nothing by the name of a macro.

    The same definition becomes the same text wherever it stands.
    """
    data = text.encode()
    if not _words(data) & set(macros):
        return text
    pieces: list[str] = []
    done = 0
    for definition in _definitions(parse_syntax(text).root):
        start, end = definition.start_byte, definition.end_byte
        taken = {*_words(data[start:end]), *macros}
        names = {name: _free(name, taken) for name in _declared(definition) if name in macros}
        if names:
            pieces += [data[done:start].decode(), _renamed(data[start:end], names)]
            done = end
    return "".join([*pieces, data[done:].decode()])


def _renamed(data: bytes, names: dict[str, str]) -> str:
    pieces: list[str] = []
    done = 0
    for each in lexemes(data):
        word = data[each.start : each.end].decode()
        if each.kind == "word" and word in names:
            pieces += [data[done : each.start].decode(), names[word]]
            done = each.end
    return "".join([*pieces, data[done:].decode()])


def _words(data: bytes) -> set[str]:
    return {data[each.start : each.end].decode() for each in lexemes(data) if each.kind == "word"}


def _free(name: str, taken: Collection[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _definitions(node: Node) -> Iterator[Node]:
    """Yield the outermost definitions under a node."""
    for child in node.named_children:
        if child.type in _DEFINITIONS:
            yield child
        else:
            yield from _definitions(child)


def _declared(definition: Node) -> Iterator[str]:
    """Yield the names of template parameters, parameters and variables that a definition declares."""
    for node in walk(definition):
        if node.type == "type_parameter_declaration":
            yield from (_text(child) for child in node.named_children if child.type == "type_identifier")
        elif node.type in _DECLARATIONS:
            for declarator in node.children_by_field_name("declarator"):
                yield from _declarator_name(declarator)


def _declarator_name(declarator: Node) -> Iterator[str]:
    node: Node | None = declarator
    while node is not None:
        if node.type == "identifier":
            yield _text(node)
            return
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next(iter(node.named_children), None)


def _text(node: Node) -> str:
    return node.text.decode() if node.text is not None else ""


@lru_cache(maxsize=64)
def _declared_in_file(unit: SourceUnit, macros: frozenset[str]) -> frozenset[str]:
    if not macros:
        return frozenset()
    return frozenset(
        name for node in _definitions(unit.syntax.root) for name in _declared(node) if name in macros
    )
