"""Join two rewrites of one launcher: the sizes decide which of them runs, the general one by default.

The special variant's own functions, constants and types are copied behind the general one's under
fresh names; what both have in common stays once. The launcher keeps its name and its signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.parsed_files import parsed
from kernelskill.skills.transformation import SkillRefused
from kernelskill.skills.variant_items import copied_items, needed_items, renamed_text, require_same_rest
from kernelskill.source.declarations import Storage
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.edits import EditConflict, EditSet, LockedRegion, apply_edits
from kernelskill.source.items import Item, ItemKind, items_of, words_of
from kernelskill.source.names import NameSource
from kernelskill.source.syntax import Span
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class SizeCondition:
    """When the special variant runs."""

    parameter: str
    """An integer parameter of the launcher."""
    side: Literal["small", "large"]
    bound: int
    """The largest small size, or the smallest large one."""

    @property
    def text(self) -> str:
        """The condition as C++ writes it."""
        return f"{self.parameter} {'<=' if self.side == 'small' else '>='} {self.bound}"


def dispatch_on_size(
    general: Candidate, special: Candidate, launcher: str, condition: SizeCondition, flags: Sequence[str] = ()
) -> Candidate:
    """Return the general candidate with the special one beside it, chosen by a size.

    Args:
        general: Runs wherever the condition does not hold.
        special: Another rewrite of the same launcher.
        launcher: Name of the launcher.
        condition: When the special one runs.
        flags: Of the compiler; they may define macros.

    Raises:
        SkillRefused: The two cannot live in one file; the reason says why.
    """
    if general.main != special.main or _others(general) != _others(special):
        raise SkillRefused("the variants differ in more than the main file")
    ours = parsed(general.source, general.main, tuple(flags))
    theirs = parsed(special.source, special.main, tuple(flags))
    first, second = _launcher(ours, launcher), _launcher(theirs, launcher)
    _check_launchers(ours, first, second, condition)
    _refuse_other_callers(general, ours, first, tuple(flags))
    require_same_rest(ours, theirs)
    copied = copied_items(ours, theirs, launcher)
    _refuse_shared_state(ours, theirs, copied, launcher)
    edits = EditSet(ours)
    names = NameSource(ours)
    renamed = _fresh_names(names, theirs, copied, launcher, condition.side)
    general_name = names.fresh(f"{launcher}_general")
    edits.replace(first.name_span, general_name)
    _make_static(ours, edits, first)
    end = Span(len(ours.data), len(ours.data))
    block = _block(theirs, copied, second, renamed, condition)
    dispatcher = _dispatcher(ours, first, condition, renamed[launcher], general_name)
    lead = "" if ours.text.endswith("\n") else "\n"
    edits.insert_after(end, f"{lead}\n{block}\n\n{dispatcher}\n")
    try:
        result = apply_edits(general, edits.edits)
    except (EditConflict, LockedRegion) as error:
        raise SkillRefused(error.message) from error
    _check(general, result, launcher)
    return result


def _others(candidate: Candidate) -> list[tuple[str, str]]:
    return [(file.path, file.text) for file in candidate.files if file.path != candidate.main]


def _launcher(unit: SourceUnit, name: str) -> FunctionDef:
    found = [function for function in unit.host_functions if function.name == name]
    if len(found) != 1:
        raise SkillRefused(f"{len(found)} functions are named {name!r} in {unit.path}")
    if found[0].namespace or found[0].is_templated:
        raise SkillRefused(f"{name!r} is a template or lies in a namespace")
    if found[0].is_opaque:
        raise SkillRefused(found[0].opaque_reason)
    return found[0]


def _check_launchers(
    unit: SourceUnit, first: FunctionDef, second: FunctionDef, condition: SizeCondition
) -> None:
    signatures = [
        ([(p.name, p.type_text) for p in f.parameters], f.return_type, f.c_linkage) for f in (first, second)
    ]
    if signatures[0] != signatures[1]:
        raise SkillRefused("the variants' launchers have different signatures")
    if any(not parameter.name for parameter in first.parameters):
        raise SkillRefused("a parameter of the launcher has no name")
    parameter = first.parameter(condition.parameter)
    if parameter is None or parameter.is_pointer:
        raise SkillRefused(f"the launcher has no size {condition.parameter!r}")
    if unit.is_locked(first.span):
        raise SkillRefused("the launcher lies in a region under `// kernelskill: off`")
    if any(item.kind is ItemKind.OTHER and first.name in item.words for item in items_of(unit)):
        raise SkillRefused("what the parser does not follow names the launcher")


def _refuse_other_callers(
    candidate: Candidate, unit: SourceUnit, launcher: FunctionDef, flags: tuple[str, ...]
) -> None:
    """Decline where other code calls the launcher: it would stand above the dispatcher."""
    for file in candidate.files:
        other = unit if file.path == unit.path else parsed(file.text, file.path, flags)
        for item in items_of(other):
            own = item.span == launcher.span and other is unit
            uses = item.words if not own else words_of(unit.text_of(_body(launcher)).encode())
            if launcher.name in uses and item.kind is not ItemKind.PROTOTYPE:
                raise SkillRefused(f"other code of {file.path} names {launcher.name!r}")


def _body(function: FunctionDef) -> Span:
    if function.body_span is None:
        raise SkillRefused(f"{function.name!r} has no body")
    return function.body_span


def _refuse_shared_state(ours: SourceUnit, theirs: SourceUnit, copied: Sequence[Item], launcher: str) -> None:
    """Decline variables that outlive a call where the variants would not agree on them."""
    reached = needed_items(items_of(theirs), launcher)
    words = frozenset(word for item in reached for word in item.words)
    lasting = {
        v.name
        for v in theirs.globals
        if v.name in words and not v.is_const and v.storage is not Storage.CONSTANT
    }
    before = {v.name for v in ours.globals}
    names = {name for item in copied for name in item.names}
    for name in sorted(lasting & names & before):
        raise SkillRefused(f"variable {name!r} lasts between calls, and the variants declare it differently")
    kept = [
        v.name
        for function in theirs.functions
        if function.name in names
        for v in function.locals
        if v.storage is Storage.STATIC and not v.is_const
    ]
    if kept and lasting - names:
        raise SkillRefused(f"static {kept[0]!r} and a variable of the file last between calls")


def _fresh_names(
    names: NameSource, theirs: SourceUnit, copied: Sequence[Item], launcher: str, side: str
) -> dict[str, str]:
    """Return new names for everything copied whose own is taken; none may meet a word of either file."""
    words = words_of(theirs.data)
    renamed: dict[str, str] = {}
    for name in dict.fromkeys(name for item in copied for name in sorted(item.names)):
        if name != launcher and names.is_free(name):
            names.fresh(name)
            continue
        wanted = f"{name}_{side.upper() if name.isupper() else side}"
        fresh = names.fresh(wanted)
        while fresh in words:
            fresh = names.fresh(wanted)
        renamed[name] = fresh
    return renamed


def _make_static(unit: SourceUnit, edits: EditSet, launcher: FunctionDef) -> None:
    """Take the launcher out of the file's interface: the dispatcher has its name now."""
    holder = launcher.node.parent
    start = launcher.span.start
    if holder is not None and holder.type == "linkage_specification":
        edits.replace(Span(unit.syntax.start_with_masks(holder.start_byte), start), "static ")
    elif "static" not in launcher.qualifiers:
        edits.insert_before(Span(start, start), "static ")


def _block(
    unit: SourceUnit,
    copied: Sequence[Item],
    launcher: FunctionDef,
    renamed: dict[str, str],
    condition: SizeCondition,
) -> str:
    parts = [f"// From here on: what runs where {condition.text}."]
    for item in copied:
        text = renamed_text(unit, item, renamed)
        if item.kind is ItemKind.PROTOTYPE and launcher.name in item.names:
            continue
        if item.span == launcher.span and "static" not in launcher.qualifiers:
            text = f"static {text}"
        parts.append(text)
    return "\n\n".join(parts)


def _dispatcher(
    unit: SourceUnit, launcher: FunctionDef, condition: SizeCondition, special: str, general: str
) -> str:
    header = unit.text_of(Span(launcher.span.start, _body(launcher).start)).rstrip()
    linkage = 'extern "C" ' if launcher.c_linkage else ""
    arguments = ", ".join(parameter.name for parameter in launcher.parameters)
    lead = "" if launcher.return_type == "void" else "return "
    return "\n".join(
        [
            "// Timed cases differ in what is fast: their sizes choose, and all others take the general way.",
            f"{linkage}{header}",
            "{",
            f"    if ({condition.text})",
            f"        {lead}{special}({arguments});",
            "    else",
            f"        {lead}{general}({arguments});",
            "}",
        ]
    )


def _check(before: Candidate, after: Candidate, launcher: str) -> None:
    unit = parsed(after.source, after.main)
    if len(unit.problems) > len(parsed(before.source, before.main).problems):
        raise SkillRefused("the joined file no longer parses (internal)")
    if sum(function.name == launcher for function in unit.host_functions) != 1:
        raise SkillRefused("the joined file does not define the launcher once (internal)")


__all__ = ["SizeCondition", "dispatch_on_size"]
