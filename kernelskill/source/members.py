"""The types of the members of the records that a file defines."""

from __future__ import annotations

from functools import lru_cache

from tree_sitter import Node

from kernelskill.source.syntax import walk
from kernelskill.source.unit import SourceUnit

_RECORDS = ("struct_specifier", "class_specifier")


def member_type(unit: SourceUnit, record: str, member: str) -> str:
    """Return the type of a scalar member as written; empty where the record is unknown, or not the only one."""
    found = [members for name, members in _records(unit) if name == record]
    return found[0].get(member, "") if len(found) == 1 else ""


@lru_cache(maxsize=64)
def _records(unit: SourceUnit) -> tuple[tuple[str, dict[str, str]], ...]:
    found = []
    for node in walk(unit.root):
        body = node.child_by_field_name("body") if node.type in _RECORDS else None
        if body is None:
            continue
        members = _members(unit, body)
        found += [(name, members) for name in _names(unit, node)]
    return tuple(found)


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
            if declared.type == "field_identifier" and kind is not None:
                found[unit.text_of(declared)] = unit.text_of(kind)
    return found
