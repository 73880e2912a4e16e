"""Launches that stand one after the other in a launcher, and what their arguments have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelskill.algorithm.lifting import Lifted, lift
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import Algorithm, CannotLift, Parameter
from kernelskill.algorithm.renaming import bound_names, renamed
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import LaunchSite
from kernelskill.source.syntax import Node, Span, named, walk
from kernelskill.source.unit import SourceUnit

_PLAIN_CALLS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "sizeof", "min", "max", "dim3"})


@dataclass(frozen=True)
class LaunchPair:
    """Two launches in a row."""

    first: LaunchSite
    second: LaunchSite


def pairs_after(unit: SourceUnit, kernel: str) -> list[LaunchPair]:
    """Return the launches of a kernel that another kernel's launch follows at once, on the same stream.

    Comments and plain declarations may stand between; nothing there may change what arguments are worth.
    """
    by_start = {launch.span.start: launch for launch in unit.launches if not launch.uses_api}
    found = []
    for launch in unit.launches:
        if launch.kernel != kernel or launch.uses_api:
            continue
        statement = statement_of(launch)
        following = _next_statement(unit, statement) if statement is not None else None
        second = _launch_in(following, by_start) if following is not None else None
        if second is not None and _stream(launch) == _stream(second):
            found.append(LaunchPair(launch, second))
    return found


def triples_after(unit: SourceUnit, kernel: str) -> list[tuple[LaunchSite, LaunchSite, LaunchSite]]:
    """Return the launches of a kernel that two others' launches follow at once, on the same stream.

    Raises:
        SkillRefused: There are none.
    """
    starts = pairs_after(unit, kernel)
    if not starts:
        raise SkillRefused("no launch follows its launch on the same stream, with nothing between them")
    found = [
        (start.first, start.second, rest.second)
        for start in starts
        for rest in pairs_after(unit, start.second.kernel)
        if rest.first.span == start.second.span
    ]
    if not found:
        raise SkillRefused("a single launch follows its launch on the same stream, with nothing between them")
    return found


def lifted_launch(unit: SourceUnit, launch: LaunchSite) -> Lifted:
    """Read what a launch computes.

    Raises:
        SkillRefused: It can't be told.
    """
    try:
        return lift(unit, launch)
    except CannotLift as refused:
        raise SkillRefused(f"{launch.kernel}: {refused.reason}") from refused


def statement_of(launch: LaunchSite) -> Node | None:
    """Return the statement that is nothing but a launch, directly inside braces."""
    node = launch.node.parent
    if node is None or node.type != "expression_statement" or node.parent is None:
        return None
    return node if node.parent.type == "compound_statement" else None


def _next_statement(unit: SourceUnit, statement: Node) -> Node | None:
    node = statement.next_named_sibling
    while node is not None:
        if node.type != "comment" and not (node.type == "declaration" and _is_plain(unit, node)):
            return node
        node = node.next_named_sibling
    return None


def _launch_in(statement: Node, by_start: Mapping[int, LaunchSite]) -> LaunchSite | None:
    if statement.type != "expression_statement":
        return None
    return next((by_start[c.start_byte] for c in named(statement) if c.start_byte in by_start), None)


def _is_plain(unit: SourceUnit, node: Node) -> bool:
    """Whether evaluating something changes nothing and gives the same a little later."""
    for entry in walk(node):
        if entry.type in (
            "assignment_expression",
            "update_expression",
            "lambda_expression",
            "new_expression",
        ):
            return False
        if entry.type == "call_expression":
            function = entry.child_by_field_name("function")
            name = unit.text_of(function).split("<")[0].removeprefix("std::") if function is not None else ""
            if name not in _PLAIN_CALLS:
                return False
    return True


def has_plain_arguments(unit: SourceUnit, launch: LaunchSite) -> bool:
    """Whether the arguments, the grid and the block of a launch have no side effects."""
    nodes = [*(argument.node for argument in launch.arguments), launch.grid.node, launch.block.node]
    return all(_is_plain(unit, node) for node in nodes)


def _stream(launch: LaunchSite) -> str:
    text = "" if launch.stream is None else "".join(launch.stream.text.split())
    return "" if text in ("0", "nullptr", "NULL") else text


@dataclass(frozen=True)
class Joined:
    """The algorithms of two launches in one set of names."""

    first: Algorithm
    second: Algorithm
    arguments: dict[str, str]
    """Parameter -> text of its argument."""
    origins: dict[str, tuple[tuple[int, str], ...]]
    """Parameter -> the launches (0 or 1) that have it, with its name there."""


def join_names(first: Lifted, second: Lifted, names: Names) -> Joined:
    """Give parameters of equal arguments one name, and everything else names of its own."""
    tables: tuple[dict[str, str], dict[str, str]] = ({}, {})
    kept: list[tuple[str, Lifted, Parameter]] = []
    origins: dict[str, list[tuple[int, str]]] = {}
    for number, lifted in ((1, second), (0, first)):
        taken = {entry[0] for entry in kept}
        for parameter in lifted.algorithm.parameters:
            twin = next((k for k in kept if _same(k[1], k[2], lifted, parameter)), None)
            name = twin[0] if twin is not None else parameter.name
            if twin is None:
                name = _free_name(name, dict(lifted.arguments)[name], taken, names)
                taken.add(name)
                kept.append((name, lifted, parameter))
            tables[number][parameter.name] = name
            origins.setdefault(name, []).append((number, parameter.name))
    used = {entry[0] for entry in kept} | set(bound_names(second.algorithm))
    for name in bound_names(first.algorithm):
        if name in used:
            tables[0][name] = names.fresh(name)
    for name in bound_names(second.algorithm):
        if name in {entry[0] for entry in kept}:
            tables[1][name] = names.fresh(name)
    arguments = {name: dict(lifted.arguments)[parameter.name] for name, lifted, parameter in kept}
    return Joined(
        renamed(first.algorithm, tables[0]),
        renamed(second.algorithm, tables[1]),
        arguments,
        {name: tuple(found) for name, found in origins.items()},
    )


def _free_name(name: str, argument: str, taken: set[str], names: Names) -> str:
    if name not in taken:
        return name
    return argument if argument.isidentifier() and argument not in taken else names.fresh(name)


def _same(lifted: Lifted, one: Parameter, other_lifted: Lifted, other: Parameter) -> bool:
    """Whether two parameters always have the same value, and the same type."""
    if (one.kind, one.view, one.is_pointer) != (other.kind, other.view, other.is_pointer):
        return False
    known = dict(lifted.roots if one.is_pointer else lifted.values)
    known_other = dict(other_lifted.roots if other.is_pointer else other_lifted.values)
    if one.name in known and other.name in known_other:
        return bool(known[one.name] == known_other[other.name])
    texts = dict(lifted.arguments)[one.name], dict(other_lifted.arguments)[other.name]
    return "".join(texts[0].split()) == "".join(texts[1].split())


def host_values(joined: Joined, pair: tuple[Lifted, Lifted]) -> Mapping[str, object]:
    """Return the values of integer parameters in the launcher's terms, by joined name."""
    values = [dict(lifted.values) for lifted in pair]
    return {
        name: values[number][own]
        for name, origins in joined.origins.items()
        for number, own in origins
        if own in values[number]
    }


def deletion_span(unit: SourceUnit, span: Span) -> Span:
    """Return a range with the line break behind it, where it fills whole lines."""
    start = span.start
    while start > 0 and unit.data[start - 1 : start] in (b" ", b"\t"):
        start -= 1
    end = span.end
    while unit.data[end : end + 1] in (b" ", b"\t", b"\r"):
        end += 1
    alone = (start == 0 or unit.data[start - 1 : start] == b"\n") and unit.data[end : end + 1] == b"\n"
    return Span(start, end + 1) if alone else span


def only_launched_by(
    unit: SourceUnit, kernel: KernelDef, launches: Sequence[LaunchSite], context: SkillContext
) -> bool:
    """Whether nothing but some launches names a kernel."""
    own = [launch for launch in launches if launch.kernel == kernel.name]
    word = re.compile(rf"\b{re.escape(kernel.name)}\b")
    everywhere = sum(len(word.findall(other.text)) for other in context.units or (unit,))
    return everywhere == len(word.findall(unit.text_of(kernel.span))) + len(own)
