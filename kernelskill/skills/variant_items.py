"""What of one rewrite has to be copied beside another, and how its names are changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tree_sitter import Node

from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.items import Item, ItemKind, items_of
from kernelskill.source.masking import lexemes
from kernelskill.source.syntax import span_of, walk
from kernelskill.source.unit import SourceUnit

_MEMBERS = frozenset({"field_identifier", "statement_identifier"})
_DECLARATORS = frozenset(
    {"init_declarator", "parameter_declaration", "pointer_declarator", "array_declarator", "declaration"}
    | {"reference_declarator", "optional_parameter_declaration", "type_parameter_declaration", "enumerator"}
    | {"optional_type_parameter_declaration", "lambda_capture_initializer", "for_range_loop"}
)


def require_same_rest(ours: SourceUnit, theirs: SourceUnit) -> None:
    """Decline variants that differ in what the parser says nothing of.

    Raises:
        SkillRefused: A namespace, a conditional or a using directive differs.
    """
    opaque = [[i.text for i in items_of(unit) if i.kind is ItemKind.OTHER] for unit in (ours, theirs)]
    if opaque[0] != opaque[1]:
        raise SkillRefused("the variants differ in a namespace, a conditional or a directive")
    if any("##" in macro.possible for unit in (ours, theirs) for macro in unit.macros):
        raise SkillRefused("a macro pastes names together")


def copied_items(ours: SourceUnit, theirs: SourceUnit, launcher: str) -> tuple[Item, ...]:
    """Return the items of one variant that its launcher needs and the other does not hold, in order.

    An item that both hold in equal words is common, unless it names something that is not.

    Raises:
        SkillRefused: What must be copied cannot be told from what must not.
    """
    known = items_of(ours)
    items = items_of(theirs)
    needed = needed_items(items, launcher)
    texts = {(item.kind, item.text) for item in known}
    own = {launcher}
    while True:
        found = {
            name
            for item in needed
            if (item.kind, item.text) not in texts or item.words & own
            for name in item.names
        } | own
        if found == own:
            break
        own = found
    for item in items:
        if item.kind is ItemKind.OTHER and item.words & own:
            name = sorted(item.words & own)[0]
            raise SkillRefused(f"{name!r} is named where the parser does not follow")
        stray = item.kind is ItemKind.MACRO and item not in needed
        if stray and (item.kind, item.text) not in texts:
            raise SkillRefused(f"macro {sorted(item.names)[0]!r} differs and nothing visible uses it")
    includes = [i for i in items if i.kind is ItemKind.INCLUDE and (i.kind, i.text) not in texts]
    return tuple(item for item in items if item in includes or (item in needed and item.names & own))


def renamed_text(unit: SourceUnit, item: Item, renamed: Mapping[str, str]) -> str:
    """Return an item's text with new names.

    Raises:
        SkillRefused: A name means something else inside the item too.
    """
    names = item.words & set(renamed)
    if names:
        _refuse_second_meanings(unit, item, names)
    data = item.text.encode()
    pieces: list[bytes] = []
    position = 0
    for token in lexemes(data):
        word = data[token.start : token.end].decode() if token.kind == "word" else ""
        if word in names:
            pieces += [data[position : token.start], renamed[word].encode()]
            position = token.end
    return b"".join([*pieces, data[position:]]).decode()


def needed_items(items: Sequence[Item], launcher: str) -> list[Item]:
    """Return the items that the launcher reaches by name, itself among them."""
    by_name: dict[str, list[Item]] = {}
    for item in items:
        for name in item.names:
            by_name.setdefault(name, []).append(item)
    reached: dict[str, None] = {}
    waiting = [launcher]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached[name] = None
        for item in by_name.get(name, []):
            waiting.extend(item.names | (item.words & by_name.keys()))
    return [item for item in items if item.names & reached.keys()]


def _refuse_second_meanings(unit: SourceUnit, item: Item, names: frozenset[str]) -> None:
    for node in walk(item.node):
        if node.child_count or node.type not in _MEMBERS | {"identifier", "type_identifier"}:
            continue
        name = unit.text_of(node)
        if name not in names:
            continue
        own = name in item.names and _is_own_name(unit, item, node, name)
        if node.type in _MEMBERS or (not own and _declares(node)) or _is_qualified(unit, node):
            raise SkillRefused(f"{name!r} has two meanings in line {unit.line_of(node)} of {unit.path}")


def _is_own_name(unit: SourceUnit, item: Item, node: Node, name: str) -> bool:
    """Whether a node is where the item itself declares the name, not a place inside a body."""
    functions = [f for f in unit.all_functions if f.span == item.span]
    if functions:
        return functions[0].name_span.contains(span_of(node))
    return item.kind in (ItemKind.VARIABLE, ItemKind.TYPE, ItemKind.MACRO)


def _declares(node: Node) -> bool:
    """Whether a name stands where it is declared, and is no type or value that a declaration uses."""
    parent = node.parent
    if parent is None or parent.type not in _DECLARATORS:
        return False
    for field_name in ("declarator", "name"):
        if any(child.id == node.id for child in parent.children_by_field_name(field_name)):
            return True
    return parent.type == "type_parameter_declaration"


def _is_qualified(unit: SourceUnit, node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type != "qualified_identifier":
        return False
    scope = parent.child_by_field_name("scope")
    return scope is not None and scope.id != node.id and bool(unit.text_of(scope).strip())
