"""Put a scheduled kernel in the place of the user's, and take it out again."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.algorithm.extents import apart_test
from kernelskill.algorithm.lifting import Lifted
from kernelskill.algorithm.lowering.kernel import LaunchFacts, emit
from kernelskill.algorithm.lowering.text import Names, Writer
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.schedule import Schedule
from kernelskill.algorithm.stages.emission import emit_stages
from kernelskill.schema.candidate import Replacement
from kernelskill.source.syntax import Span, walk
from kernelskill.source.unit import SourceUnit

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Rewritten:
    """A file with one kernel and its launch replaced."""

    text: str
    replacements: tuple[Replacement, ...]
    """What was replaced, in the order of the text."""


def launch_facts(unit: SourceUnit, lifted: Lifted) -> LaunchFacts:
    """Return what emission needs to know of the launch and of the names in the file."""
    stream = lifted.launch.stream
    definition = lifted.kernel.span
    outside = unit.text_of(Span(0, definition.start)) + unit.text_of(Span(definition.end, len(unit.data)))
    return LaunchFacts(
        arguments=dict(lifted.arguments),
        stream=stream.text if stream is not None and stream.text.strip() != "0" else "",
        configuration=unit.text_of(lifted.launch.configuration_span).removeprefix("<<<").removesuffix(">>>"),
        qualifier=_qualifier(unit, lifted),
        identifiers=frozenset(_IDENTIFIER.findall(outside)),
    )


def _qualifier(unit: SourceUnit, lifted: Lifted) -> str:
    """Return the namespaces that stand before the kernel's name in its launch, with the last `::`."""
    launch = lifted.launch
    callee = unit.text_of(Span(launch.span.start, launch.configuration_span.start)).partition("<")[0]
    scope, colons, _ = callee.rpartition("::")
    return f"{scope.strip()}{colons}"


def rewrite_kernel(
    unit: SourceUnit, lifted: Lifted, plan: Plan, apart: Sequence[tuple[str, str]] = ()
) -> Rewritten:
    """Return the file with the kernel emitted under a plan; one whose threads work together stays until a move is made.

    Args:
        unit: The user's file.
        lifted: The kernel.
        plan: The algorithm and its schedule.
        apart: Pairs of buffers that must not overlap. Where there are any, the launcher looks, and the user's own
            kernel, under another name, serves where they do.

    Raises:
        IllegalMove: The plan cannot be lowered, or the kernel stands where it cannot be replaced.
    """
    if lifted.algorithm.joined and plan == Plan(lifted.algorithm, Schedule()):
        # What threads of a block do together has no other form yet than the user's own.
        return Rewritten(unit.text, ())
    if len(unit.launches_of(lifted.kernel)) != 1:
        raise IllegalMove("the kernel is launched from several places")
    facts = launch_facts(unit, lifted)
    definition = lifted.kernel.span
    statement = _statement_span(unit, lifted)
    emitted = _emitted(plan, facts)
    if (apart or emitted.is_changed) and _is_named_elsewhere(unit, lifted.kernel.name, definition, statement):
        raise IllegalMove(f"{lifted.kernel.name} is named in other places than its launch")
    if unit.is_locked(definition) or unit.is_locked(statement):
        raise IllegalMove("it lies in a region under `// kernelskill: off`")
    code, launch = emitted.code, emitted.launch
    if apart:
        guarded = _guarded(unit, lifted, plan, apart, facts, launch)
        code, launch = f"{guarded.original}\n\n{code.lstrip()}", guarded.launch
    parts = [(definition, code), (statement, _indented(launch, unit.indent_of(statement)))]
    parts.sort(key=lambda part: part[0].start)
    text, position, replacements = "", 0, []
    for span, fresh in parts:
        text += unit.text_of(Span(position, span.start)) + fresh
        replacements.append(Replacement(original=unit.text_of(span), emitted=fresh))
        position = span.end
    text += unit.text_of(Span(position, len(unit.data)))
    for replacement in replacements:
        if text.count(replacement.emitted) != 1:
            raise IllegalMove("the emitted text is not unique in the file")
    return Rewritten(text, tuple(replacements))


@dataclass(frozen=True)
class _Text:
    """What stands in the place of a kernel and of its launch."""

    code: str
    launch: str
    is_changed: bool
    """Whether the kernel's name no longer stands for a function that can be named without more."""


def _emitted(plan: Plan, facts: LaunchFacts) -> _Text:
    if plan.stages is not None:
        several = emit_stages(plan.stages, facts)
        return _Text(several.code, several.launch, is_changed=True)
    emitted = emit(plan.algorithm, plan.schedule, facts)
    code = f"{emitted.definitions}\n{emitted.kernel.rstrip()}"
    return _Text(code, emitted.launch, emitted.kernel.startswith("template"))


@dataclass(frozen=True)
class _Guarded:
    """The user's kernel under another name, and the statement that chooses between both."""

    original: str
    launch: str


def _guarded(
    unit: SourceUnit,
    lifted: Lifted,
    plan: Plan,
    apart: Sequence[tuple[str, str]],
    facts: LaunchFacts,
    launch: str,
) -> _Guarded:
    names = Names({*facts.identifiers, *facts.arguments, *_IDENTIFIER.findall(launch)})
    test = apart_test(plan.algorithm, apart, facts.arguments, names)
    name = names.fresh(f"{lifted.kernel.name}_overlapping")
    original = _renamed(unit, lifted.kernel.span, lifted.kernel.name_span, lifted.kernel.name, name)
    statement = _statement_span(unit, lifted)
    call = _renamed(unit, statement, lifted.launch.name_span, lifted.kernel.name, name)
    out = Writer()
    with out.block(""):
        out.line("// Arrays that overlap are left to the kernel as it was.")
        for line in test.lines:
            out.line(line)
        inside = launch.startswith("{\n") and launch.endswith("\n}")
        with out.block(f"if ({test.name})"):
            out.line(textwrap.dedent(launch[2:-2]) if inside else launch)
        with out.block("else"):
            out.line(call)
    return _Guarded(original, out.text.rstrip("\n").replace("}\n    else {", "} else {"))


def _renamed(unit: SourceUnit, whole: Span, place: Span, name: str, fresh: str) -> str:
    """Return a part of the file in which one name stands for another in one place."""
    before, after = unit.text_of(Span(whole.start, place.start)), unit.text_of(Span(place.end, whole.end))
    text = unit.text_of(place)
    found = re.search(rf"\b{re.escape(name)}\b", text)
    if found is None:
        raise IllegalMove(f"the name of {name} is written in a way that cannot be changed")
    return f"{before}{text[: found.start()]}{fresh}{text[found.end() :]}{after}"


def _is_named_elsewhere(unit: SourceUnit, name: str, *places: Span) -> bool:
    """Whether code outside of some places declares a kernel or gives it to the runtime, by its name."""
    return any(
        node.type == "identifier"
        and unit.text_of(node) == name
        and not any(place.start <= node.start_byte < place.end for place in places)
        and _is_kernel_itself(unit, node)
        for node in walk(unit.root)
    )


def _is_kernel_itself(unit: SourceUnit, node: Node) -> bool:
    """Whether a name is that of a declared function, or an argument of a function of CUDA."""
    parent = node.parent
    if parent is not None and parent.type == "function_declarator":
        return True
    while parent is not None and parent.type != "call_expression":
        parent = parent.parent
    function = parent.child_by_field_name("function") if parent is not None else None
    return function is not None and unit.text_of(function).startswith("cu")


def _statement_span(unit: SourceUnit, lifted: Lifted) -> Span:
    """Return the launch with its semicolon.

    Raises:
        IllegalMove: It is part of a larger expression.
    """
    node = lifted.launch.node
    statement = node.parent
    if statement is None or statement.type != "expression_statement":
        raise IllegalMove("the launch is part of a larger expression")
    return Span(statement.start_byte, statement.end_byte)


def _indented(text: str, indent: str) -> str:
    lines = text.split("\n")
    return "\n".join([lines[0], *(f"{indent}{line}" if line else line for line in lines[1:])])


def restored(text: str, replacements: tuple[Replacement, ...]) -> str:
    """Return a file with emitted texts replaced by the originals.

    Raises:
        IllegalMove: One of them is no longer there: the kernel was changed after it was scheduled.
    """
    for replacement in replacements:
        if text.count(replacement.emitted) != 1:
            raise IllegalMove("the kernel was edited after it was scheduled")
        text = text.replace(replacement.emitted, replacement.original)
    return text
