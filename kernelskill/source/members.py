"""The types of the members of the records that a file defines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from kernelskill.source.syntax import walk
from kernelskill.source.unit import SourceUnit

_RECORDS = ("struct_specifier", "class_specifier")


@dataclass(frozen=True)
class _Record:
    """A record that the file defines."""

    names: frozenset[str]
    parameters: tuple[str, ...]
    """Of its template, by place; empty for what is not the name of a type."""
    members: dict[str, str]


def member_type(unit: SourceUnit, record: str, member: str) -> str:
    """Return the type of a member as written, of an array `T*`; empty where the record is unknown, or not the only one.

    The record may be a template with its arguments: `Pair<float, 4>`.
    """
    name, arguments = _template_arguments(record)
    found = [entry for entry in _records(unit) if name in entry.names]
    if len(found) != 1:
        return ""
    text = found[0].members.get(member, "")
    base = text.rstrip("*")
    if base in found[0].parameters:
        place = found[0].parameters.index(base)
        return arguments[place] + text[len(base) :] if place < len(arguments) else ""
    return text


def _template_arguments(record: str) -> tuple[str, list[str]]:
    """Return the name of a record, and the arguments of its template, if it is one."""
    name, opened, rest = record.partition("<")
    if not opened or not rest.endswith(">"):
        return record, []
    arguments, round_, angled = [""], 0, 0
    for letter in rest[:-1]:
        round_ += (letter == "(") - (letter == ")")
        # Within parentheses these are comparisons and shifts.
        angled += 0 if round_ else (letter == "<") - (letter == ">")
        if letter == "," and round_ == angled == 0:
            arguments.append("")
        else:
            arguments[-1] += letter
    return name.strip(), [argument.strip() for argument in arguments]


@lru_cache(maxsize=64)
def _records(unit: SourceUnit) -> tuple[_Record, ...]:
    found = []
    for node in walk(unit.root):
        body = node.child_by_field_name("body") if node.type in _RECORDS else None
        if body is not None:
            names = frozenset(_names(unit, node))
            found.append(_Record(names, _parameters(unit, node), _members(unit, body)))
    return tuple(found)


def _parameters(unit: SourceUnit, record: Node) -> tuple[str, ...]:
    """Return the names of a template's type parameters by their place; of other parameters nothing."""
    template = record.parent
    listed = template.child_by_field_name("parameters") if template is not None else None
    if template is None or template.type != "template_declaration" or listed is None:
        return ()
    kinds = ("type_parameter_declaration", "optional_type_parameter_declaration")
    return tuple(
        next((unit.text_of(part) for part in entry.named_children if part.type == "type_identifier"), "")
        if entry.type in kinds
        else ""
        for entry in listed.named_children
    )


def _names(unit: SourceUnit, record: Node) -> set[str]:
    """Return what a record is called: its own name, and that of a `typedef` round it."""
    name, parent = record.child_by_field_name("name"), record.parent
    found = {unit.text_of(name)} if name is not None else set()
    if parent is not None and parent.type == "type_definition":
        declared = parent.children_by_field_name("declarator")
        found |= {unit.text_of(entry) for entry in declared if entry.type == "type_identifier"}
    return found


def _members(unit: SourceUnit, body: Node) -> dict[str, str]:
    found = {}
    for entry in body.named_children:
        kind = entry.child_by_field_name("type") if entry.type == "field_declaration" else None
        for declared in entry.children_by_field_name("declarator") if kind is not None else ():
            name: Node | None = declared
            depth = 0
            while name is not None and name.type == "array_declarator":
                name, depth = name.child_by_field_name("declarator"), depth + 1
            if kind is not None and name is not None and name.type == "field_identifier":
                found[unit.text_of(name)] = unit.text_of(kind) + "*" * depth
    return found
