"""Keep elements that a loop updates in local variables for the length of the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name, words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.loop_edits import indent_lines, is_statement_of_block, surround_loop
from kernelskill.skills.loop_effects import (
    entry_condition,
    is_invariant,
    is_unconditional,
    statement_siblings_before,
    visible_accesses,
)
from kernelskill.skills.memory_runs import Order, Run, run_of
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, walk
from kernelskill.source.unit import SourceUnit

_CHANGING = frozenset({"assignment_expression", "update_expression", "call_expression"})
_MOST_TESTS = 24
_LINE = 100
_COMMENT = "// The sums stay in registers where they overlap neither each other nor what the loop {verb}."


@dataclass(frozen=True)
class _Element:
    """One element that a loop updates."""

    text: str
    element_type: str
    base: str
    uses: tuple[Access, ...]
    """Every access to the element inside the loop."""
    is_certain: bool
    """Whether a statement before the loop certainly accesses it."""


@dataclass(frozen=True)
class _Plan:
    """How the elements of one loop are kept."""

    loop: Loop
    elements: tuple[_Element, ...]
    condition: str
    """Test under which the loop, the loads and the stores are put; empty where none is needed."""
    stores_each: bool
    """Whether the element is still stored in every turn, for others that may read it."""
    tests: tuple[tuple[Run, Run], ...]
    """Runs that must be found apart at run time; the first of each is an element."""
    is_stored_to: bool
    """Whether one of the tests is about a store to something else."""
    assumptions: tuple[str, ...]

    def key(self, kernel: KernelDef) -> str:
        names = "+".join("".join(element.text.split()) for element in self.elements)
        return f"{kernel.name}/{self.loop.key}/{names}"


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every loop with the elements that it updates and that can be kept."""
    found: list[Site] = []
    refusals: list[str] = []
    for plan in _plans(unit, kernel, context, refusals):
        texts = " and ".join(element.text for element in plan.elements)
        reason = f"line {plan.loop.line}: the loop reads and writes {texts} in global memory in every turn"
        found.append(Site(key=plan.key(kernel), kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "no loop updates an element at a fixed index")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Load before the loop, update the local variables, store after it."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        if kernel is not None and plan.key(kernel) == site.key:
            return _write(unit, plan, context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _plans(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Plan]:
    """Return a plan for each loop: for all its elements, or for each of them that can be kept alone."""
    found: list[_Plan] = []
    for loop in find_loops(unit, kernel):
        try:
            if _is_general_path(unit, loop):
                raise SkillRefused(f"the loop on line {loop.line} is kept for memory that overlaps")
            accesses = visible_accesses(unit, kernel, loop, context)
            texts = _updated_elements(unit, kernel, loop, accesses)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        groups = [texts, *([text] for text in texts if len(texts) > 1)]
        for group in groups if texts else ():
            try:
                found.append(_plan(unit, kernel, loop, accesses, group, context))
            except SkillRefused as refused:
                refusals.append(refused.reason)
                continue
            if group is texts:
                break
    return found


def _is_general_path(unit: SourceUnit, loop: Loop) -> bool:
    """Whether a loop stands in the `else` of a test whose other side holds the same loop."""
    head = _head_text(unit, loop.node)
    for node in ancestors(loop.node):
        if node.type != "else_clause" or node.parent is None:
            continue
        other = node.parent.child_by_field_name("consequence")
        for entry in walk(other) if other is not None else ():
            if entry.type == loop.node.type and _head_text(unit, entry) == head:
                return True
    return False


def _head_text(unit: SourceUnit, loop: Node) -> str:
    body = loop.child_by_field_name("body")
    end = body.start_byte if body is not None else loop.end_byte
    return "".join(unit.text_of(Span(loop.start_byte, end)).split())


def _updated_elements(unit: SourceUnit, kernel: KernelDef, loop: Loop, accesses: list[Access]) -> list[str]:
    """Return the texts of elements at a fixed index that a loop both reads and writes."""
    texts: dict[str, set[str]] = {}
    for access in accesses:
        plain = access.is_global and access.mode is not AccessMode.ATOMIC and not access.member
        if plain and _is_fixed(unit, kernel, access, loop):
            modes = texts.setdefault(unit.text_of(access.node), set())
            modes |= {"r"} if access.mode.reads else set()
            modes |= {"w"} if access.mode.writes else set()
    return [text for text, modes in texts.items() if modes == {"r", "w"}]


def _is_fixed(unit: SourceUnit, kernel: KernelDef, access: Access, loop: Loop) -> bool:
    parts = [*access.indices]
    argument = access.node.child_by_field_name("argument")
    if argument is None:
        return False
    parts.append(argument)
    return all(is_invariant(unit, kernel, part, loop.span) for part in parts)


def _plan(
    unit: SourceUnit,
    kernel: KernelDef,
    loop: Loop,
    accesses: list[Access],
    texts: list[str],
    context: SkillContext,
) -> _Plan:
    if loop.has_return or any(node.type == "goto_statement" for node in walk(loop.node)):
        raise SkillRefused(f"the loop on line {loop.line} can leave the kernel")
    elements = tuple(_element(unit, loop, accesses, text) for text in texts)
    assumptions, doubts = _doubts(unit, kernel, elements, accesses, context)
    stores_each, tests = False, ()
    try:
        tests = _tests(unit, kernel, loop, doubts)
    except SkillRefused:
        stored = any(other.mode.writes for _, other in doubts)
        if len(elements) > 1 or stored or all(a.mode is AccessMode.WRITE for a in elements[0].uses):
            raise
        stores_each = True
    return _Plan(
        loop=loop,
        elements=elements,
        condition=_condition(unit, kernel, loop, elements),
        stores_each=stores_each,
        tests=tests,
        is_stored_to=any(other.mode.writes and other.node.id not in _ids(elements) for _, other in doubts),
        assumptions=() if stores_each else assumptions,
    )


def _element(unit: SourceUnit, loop: Loop, accesses: list[Access], text: str) -> _Element:
    uses = tuple(access for access in accesses if unit.text_of(access.node) == text)
    if not uses[0].element_type or uses[0].root is None:
        raise SkillRefused(f"what {text} points into can't be told")
    if any(not loop.body_span.contains(access.span) for access in uses):
        raise SkillRefused(f"the head of the loop on line {loop.line} uses {text}")
    return _Element(text, uses[0].element_type, uses[0].base, uses, _is_certain(unit, loop, text))


def _ids(elements: tuple[_Element, ...]) -> set[int]:
    return {access.node.id for element in elements for access in element.uses}


def _doubts(
    unit: SourceUnit,
    kernel: KernelDef,
    elements: tuple[_Element, ...],
    accesses: list[Access],
    context: SkillContext,
) -> tuple[tuple[str, ...], list[tuple[_Element, Access]]]:
    """Return what the promises answer for, and the accesses that may meet an element all the same.

    Raises:
        SkillRefused: Something else stores to the array of an element, where it may reach it.
    """
    assumptions: list[str] = []
    doubts: dict[tuple[str, str], tuple[_Element, Access]] = {}
    for position, element in enumerate(elements):
        own = {access.node.id for access in element.uses} | _ids(elements[:position])
        for other in accesses:
            if other.node.id in own:
                continue
            answer = separate(unit, kernel, element.uses[0], other, context)
            text = unit.text_of(other.node)
            if answer.disjoint:
                assumptions += [answer.assumption] if answer.assumption else []
            elif other.mode.writes and (other.root is None or other.root is element.uses[0].root):
                raise SkillRefused(f"line {other.line} writes {text}, which may be {element.text}")
            else:
                known = doubts.get((element.text, text))
                if known is None or other.mode.writes:
                    doubts[element.text, text] = (element, other)
    return tuple(dict.fromkeys(assumptions)), list(doubts.values())


def _tests(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, doubts: list[tuple[_Element, Access]]
) -> tuple[tuple[Run, Run], ...]:
    """Return the runs to be tested for overlap.

    Raises:
        SkillRefused: One can't be bounded, or is of the element's own array.
    """
    if len(doubts) > _MOST_TESTS:
        raise SkillRefused(f"the loop on line {loop.line} would need {len(doubts)} tests for overlap")
    if doubts and "static" in words_in(unit, loop.node):
        raise SkillRefused(f"the loop on line {loop.line} can't be repeated")
    tests = []
    for element, other in doubts:
        if other.root is None or other.root is element.uses[0].root:
            raise SkillRefused(
                f"line {other.line} reads {unit.text_of(other.node)}, which may be {element.text}"
            )
        tests.append((run_of(unit, kernel, loop, element.uses[0]), run_of(unit, kernel, loop, other)))
    return tuple(dict.fromkeys(tests))


def _condition(unit: SourceUnit, kernel: KernelDef, loop: Loop, elements: tuple[_Element, ...]) -> str:
    """Return the test under which all elements are certainly accessed; empty where they are anyway.

    Raises:
        SkillRefused: There is no such test.
    """
    doubtful = [element for element in elements if not element.is_certain]
    for element in doubtful:
        if not any(is_unconditional(unit, loop, access.node) for access in element.uses):
            raise SkillRefused(f"the loop on line {loop.line} may never access {element.text}")
    condition = entry_condition(unit, kernel, loop) if doubtful else ""
    return "" if condition == "true" else condition


def _is_certain(unit: SourceUnit, loop: Loop, text: str) -> bool:
    """Whether one of the plain statements right before the loop, in the same block, stores the element."""
    for statement in statement_siblings_before(loop.node):
        if statement.type == "expression_statement":
            inner = named(statement)
            target = inner[0].child_by_field_name("left") if inner else None
            value = inner[0].child_by_field_name("right") if inner else None
            if target is None or value is None or inner[0].type != "assignment_expression":
                return False
            if unit.text_of(target) == text:
                return True
            # A store to memory leaves the index as it is; a variable may be part of it.
            is_store = target.type in ("subscript_expression", "pointer_expression")
            if not is_store or any(node.type in _CHANGING for part in (target, value) for node in walk(part)):
                return False
        elif statement.type != "declaration" or any(node.type in _CHANGING for node in walk(statement)):
            return False
    return False


def _write(unit: SourceUnit, plan: _Plan, context: SkillContext) -> Rewrite:
    taken: list[str] = []

    def fresh(wanted: str) -> str:
        taken.append(fresh_name(unit, context, wanted, taken))
        return taken[-1]

    names = {element.text: fresh(f"{element.base}_sum") for element in plan.elements}
    loads = [f"{e.element_type} {names[e.text]} = {e.text};" for e in plan.elements]
    stores = [f"{e.text} = {names[e.text]};" for e in plan.elements] if not plan.stores_each else []
    edits = EditSet(unit)
    if plan.tests:
        _write_both(unit, edits, plan, names, fresh, (loads, stores))
        note = "where memory overlaps, the loop runs as it was"
        return Rewrite(edits=edits.edits, assumptions=plan.assumptions, notes=(note,))
    for element in plan.elements:
        for access in element.uses:
            _replace_use(edits, access, names[element.text], element, plan.stores_each)
    surround_loop(unit, edits, plan.loop, loads, stores, plan.condition)
    return Rewrite(edits=edits.edits, assumptions=plan.assumptions)


def _replace_use(edits: EditSet, access: Access, name: str, element: _Element, stores_each: bool) -> None:
    parent: Node | None = access.node.parent
    if not stores_each or access.mode is AccessMode.READ or parent is None:
        edits.replace(access.node, name)
        return
    if parent.type == "update_expression":
        # `y[i]++` stores the new value, but gives the old one: as a statement it is `++y[i]`.
        if parent.parent is None or parent.parent.type != "expression_statement":
            raise SkillRefused(f"line {access.line}: the value of {element.text} is used where it is counted")
        sign = parent.child_by_field_name("operator")
        step = "--" if sign is not None and sign.type == "--" else "++"
        edits.replace(parent, f"{element.text} = {step}{name}")
        return
    # `y[i] += e` becomes `y[i] = (y_sum += e)`: others still see each partial result.
    edits.insert_before(parent, f"{element.text} = (")
    edits.replace(access.node, name)
    edits.insert_after(parent, ")")


def _write_both(
    unit: SourceUnit,
    edits: EditSet,
    plan: _Plan,
    names: Mapping[str, str],
    fresh: Callable[[str], str],
    around: tuple[list[str], list[str]],
) -> None:
    """Write the loop twice: with its sums in variables where no memory overlaps, and as it is."""
    loop = plan.loop
    indent = unit.indent_of(loop.node)
    place = span_of(loop.node) if loop.pragma_span is None else loop.pragma_span
    lines, flags = _test_lines(plan, fresh)
    condition = " && ".join([plan.condition] * bool(plan.condition) + flags)
    pragma = [unit.text_of(loop.pragma_span)] if loop.pragma_span is not None else []
    loads, stores = around
    fast = [*loads, *pragma, *_kept_loop(unit, plan, names).splitlines(), *stores]
    in_block = is_statement_of_block(loop.node)
    opening = [] if in_block else ["{"]
    lines = [*opening, *lines, f"if ({condition}) {{", *(f"    {line}" for line in fast), "} else {"]
    edits.insert_line_before(place, "\n".join(f"{indent}{line}" for line in lines).lstrip())
    indent_lines(unit, edits, span_of(loop.node))
    edits.insert_after(loop.node, f"\n{indent}}}" + ("" if in_block else " }"))


def _kept_loop(unit: SourceUnit, plan: _Plan, names: Mapping[str, str]) -> str:
    """Return the text of the loop with the elements as variables, its own indentation taken off."""
    loop = plan.loop
    uses = {a.node.start_byte: (a.node, names[e.text]) for e in plan.elements for a in e.uses}
    text, position = "", loop.node.start_byte
    for node, name in (uses[start] for start in sorted(uses)):
        text += unit.text_of(Span(position, node.start_byte)) + name
        position = node.end_byte
    text += unit.text_of(Span(position, loop.node.end_byte))
    return text.replace("\r\n", "\n").replace(f"\n{unit.indent_of(loop.node)}", "\n")


def _test_lines(plan: _Plan, fresh: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Return the declarations of the tests for overlap, and the names that must all be true."""
    lines = [_COMMENT.format(verb="reads or stores" if plan.is_stored_to else "reads")]
    ends: dict[Run, tuple[str, str]] = {}
    for run in dict.fromkeys(run for pair in plan.tests for run in pair):
        begin, end = fresh(f"{run.base}_begin"), fresh(f"{run.base}_end")
        ends[run] = (begin, end)
        low, high = f"(size_t)&{run.first}", f"(size_t)&{run.last} + {run.size}"
        if run.order is Order.ONE:
            high = f"{begin} + {run.size}"
        elif run.order is Order.FALLING:
            low, high = f"(size_t)&{run.last}", f"(size_t)&{run.first} + {run.size}"
        elif run.order is Order.EITHER:
            first, last = fresh(f"{run.base}_first"), fresh(f"{run.base}_last")
            lines.append(f"const size_t {first} = (size_t)&{run.first};")
            lines.append(f"const size_t {last} = (size_t)&{run.last};")
            low = f"{first} < {last} ? {first} : {last}"
            high = f"({first} < {last} ? {last} : {first}) + {run.size}"
        both = f"const size_t {begin} = {low}, {end} = {high};"
        apart = [f"const size_t {begin} = {low};", f"const size_t {end} = {high};"]
        lines += [both] if len(both) <= _LINE else apart
    flags = []
    for kept in dict.fromkeys(first for first, _ in plan.tests):
        begin, end = ends[kept]
        tests = [
            f"({end} <= {ends[other][0]} || {ends[other][1]} <= {begin})"
            for first, other in plan.tests
            if first == kept
        ]
        flags.append(fresh(f"{kept.base}_is_apart"))
        joined = "\n    && ".join(tests)
        lines += f"const bool {flags[-1]} = {joined};".splitlines()
    return lines, flags
