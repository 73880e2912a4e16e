"""Compute indices in 32 bits where the launcher finds that all of them fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name, units_of
from kernelskill.skills.expression_types import ExpressionTypes, is_integer, is_pure, is_unsigned, plain_type
from kernelskill.skills.index_widths import LaunchBounds, WidePlaces, hides_widths, wide_places
from kernelskill.skills.kept_elements import refuse_strange
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.polynomial import Polynomial
from kernelskill.source.syntax import Node, span_of
from kernelskill.source.unit import SourceUnit

_LIMIT = 2147483647


@dataclass(frozen=True)
class _Plan:
    places: WidePlaces
    entries: list[KernelLaunch]
    tests: tuple[str, ...]
    """C text for each launch that tells whether every index fits."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel whose 64-bit integers are all bounded by what it is launched with."""
    plan = _plan(unit, kernel, context)
    names = ", ".join(dict.fromkeys(one.name for one in plan.places.declared)) or "its casts"
    return [Site(key=kernel.name, kernel=kernel.name, reason=f"{names}: computed in 64 bits")]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Make the index type a template parameter, and choose it at each launch."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    plan = _plan(unit, kernel, context)
    index = fresh_name(unit, context, "Index")
    sets = edit_sets(plan.entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    own.insert_line_before(kernel.span, f"template <typename {index}>")
    for place in plan.places.types:
        own.replace(place, index)
    narrow = "unsigned" if plan.places.is_unsigned else "int"
    for entry, test in zip(plan.entries, plan.tests, strict=True):
        _write_launch(sets[entry.unit.path], entry, test, (narrow, plan.places.written))
    edits = tuple(edit for each in sets.values() for edit in each.edits)
    return Rewrite(edits=edits, notes=("sizes that do not fit 32 bits take the kernel as it was",))


def _plan(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> _Plan:
    if kernel.is_templated or kernel.c_linkage:
        raise SkillRefused("it is a template already, or can't be one")
    if any(
        other.name == kernel.name and other.body is None
        for one in units_of(unit, context)
        for other in one.all_functions
    ):
        raise SkillRefused("it is also declared elsewhere")
    places = wide_places(unit, kernel)
    refuse_strange(unit, kernel)
    macro = hides_widths(unit, kernel, context)
    if macro:
        raise SkillRefused(f"macro {macro!r} may compute in the type of its arguments")
    entries = launches_of(unit, kernel, context)
    tests = tuple(_test(unit, kernel, entry, places, context) for entry in entries)
    return _Plan(places, entries, tests)


def _test(
    unit: SourceUnit, kernel: KernelDef, entry: KernelLaunch, places: WidePlaces, context: SkillContext
) -> str:
    statement = entry.launch.node.parent
    if statement is None or statement.type != "expression_statement":
        raise SkillRefused(f"line {entry.launch.line} launches it inside an expression")
    bounds = LaunchBounds(unit, kernel, entry, places, context)
    found = bounds.all_bounds()
    texts = _argument_texts(kernel, entry, bounds)
    tests = [f"{text} >= 0" for name, (text, signed) in texts.items() if signed]
    for bound in found:
        if bound.value is not None and bound.value > _LIMIT:
            raise SkillRefused(f"an index may reach {bound.value}")
        if bound.value is None:
            tests.append(f"{_sum_text(bound, texts)} <= {_LIMIT}.0")
    if not tests:
        raise SkillRefused("its indices are constants")
    return "\n    && ".join(tests)


def _argument_texts(
    kernel: KernelDef, entry: KernelLaunch, bounds: LaunchBounds
) -> dict[str, tuple[str, bool]]:
    """Return the text of each argument that bounds rest on, as the kernel gets it, and whether it is signed."""
    if entry.function is None:
        raise SkillRefused("the launch stands outside any function")
    types = ExpressionTypes(entry.unit, entry.function)
    found: dict[str, tuple[str, bool]] = {}
    for name, node in bounds.arguments.items():
        kind = types.of(node)
        parameter = next(one for one in kernel.parameters if one.name == name)
        if not is_integer(kind) or not is_pure(entry.unit, node):
            raise SkillRefused(f"line {entry.launch.line}: what is given for {name!r} is no plain integer")
        text = " ".join(entry.unit.text_of(node).split())
        own = plain_type(parameter.pointee_type)
        simple = node.type in ("identifier", "number_literal")
        if kind != own:
            text = f"({parameter.pointee_type}){text if simple else f'({text})'}"
        elif not simple:
            text = f"({text})"
        found[name] = (text, not is_unsigned(own) and node.type != "number_literal")
    for shape in (entry.launch.grid, entry.launch.block):
        if not is_pure(entry.unit, shape.node):
            raise SkillRefused(f"the shape on line {entry.launch.line} does more than give a value")
    return found


def _sum_text(bound: Polynomial, texts: Mapping[str, tuple[str, bool]]) -> str:
    terms = []
    for monomial, factor in sorted(bound.terms, key=lambda term: -len(term[0])):
        factors = [_factor_text(atom.text, texts) for atom in monomial]
        if factor != 1 or not factors:
            factors.append(str(factor))
        head = f"(double){factors[0]}" if monomial else factors[0]
        terms.append(" * ".join([head, *factors[1:]]))
    return " + ".join(terms)


def _factor_text(atom: str, texts: Mapping[str, tuple[str, bool]]) -> str:
    name = atom.removeprefix("param ")
    if atom != name:
        return texts[name][0]
    return atom if atom.replace(".", "").replace("_", "").isalnum() else f"({atom})"


def _write_launch(edits: EditSet, entry: KernelLaunch, test: str, kinds: tuple[str, str]) -> None:
    unit, launch = entry.unit, entry.launch
    statement: Node = launch.node.parent or launch.node
    indent = unit.indent_of(statement)
    text = unit.text_of(statement)
    at = span_of(launch.name_span).end - statement.start_byte
    data = text.encode()
    narrow, wide = (data[:at].decode() + f"<{kind}>" + data[at:].decode() for kind in kinds)
    lines = [
        "// 32-bit indices where all of them fit.",
        *f"if ({test}) {{".split("\n"),
        f"    {narrow}",
        "} else {",
        f"    {wide}",
        "}",
    ]
    if not is_statement_of_block(statement):
        lines = ["{", *(f"    {line}" for line in lines), "}"]
    edits.replace(statement, f"\n{indent}".join(lines))
