"""Declare variables in one place and give them their values in another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.text_changes import Replacement, replaced_text
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.dimensions import local_constants
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, ancestors, span_of, walk
from kernelskill.source.unit import SourceUnit

_SCALARS = frozenset(
    {
        *("bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned"),
        *("long", "unsigned long", "long long", "unsigned long long", "float", "double"),
    }
)
_VECTORS = frozenset(
    f"{kind}{length}"
    for kind in (
        "char",
        "uchar",
        "short",
        "ushort",
        "int",
        "uint",
        "float",
        "double",
        "longlong",
        "ulonglong",
    )
    for length in "1234"
)


@dataclass
class Parted:
    """Declarations for the outer place, and what stands for each where it was."""

    lines: list[str] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)


def is_plain_type(name: str) -> bool:
    """Whether variables of a type may be declared without a value and given one by `=` later."""
    return plain_type(name.removeprefix("std::")) in _SCALARS | _VECTORS


def needed_later(
    unit: SourceUnit, kernel: KernelDef, statements: Sequence[Node], later: Sequence[Node]
) -> list[VariableDef]:
    """Return the variables that some statements declare and later code uses."""
    flow = flow_of(unit, kernel)
    used = {
        id(flow.resolve(entry))
        for node in later
        for entry in walk(node)
        if entry.type in ("identifier", "type_identifier")
    }
    return [v for v in kernel.locals if v.declaration in statements and id(v) in used]


def part_declarations(
    unit: SourceUnit,
    kernel: KernelDef,
    declarations: Sequence[Node],
    inner: Sequence[Replacement],
    plain_types: Collection[str] = (),
) -> Parted:
    """Split declarations, each with all of its variables.

    Args:
        unit: The file.
        kernel: The kernel.
        declarations: The statements.
        inner: Replacements inside the values.
        plain_types: Names of further types, such as template parameters that stand for numbers.

    Raises:
        SkillRefused: A variable can't be declared without its value.
    """
    found = Parted()
    merged: dict[str, list[str]] = {}
    for declaration in declarations:
        variables = [v for v in kernel.locals if v.declaration == declaration]
        if all(_is_compile_time(unit, kernel, variable) for variable in variables):
            found.lines.append(" ".join(unit.text_of(variables[0].span).split()))
            found.replacements.append((variables[0].span, ""))
            continue
        values = []
        for variable in variables:
            _refuse_sizes(unit, kernel, variable)
            kind, name = _bare(unit, variable, plain_types)
            merged.setdefault(kind, []).append(name)
            if variable.initialiser is not None:
                value = replaced_text(unit, variable.initialiser, inner)
                values.append(f"{variable.name} = {value};")
        whole = variables[0].span if variables else span_of(declaration)
        found.replacements.append((whole, f"\n{unit.indent_of(declaration)}".join(values)))
    found.lines += [f"{kind} {', '.join(names)};" for kind, names in merged.items()]
    return found


def _is_compile_time(unit: SourceUnit, kernel: KernelDef, variable: VariableDef) -> bool:
    """Whether a variable is a constant, such as array sizes may be made of, that is the same for every element."""
    head = unit.text_of(Span(variable.span.start, variable.name_span.start))
    if "constexpr" in head.split():
        return True
    value = variable.initialiser
    if value is None or not variable.is_const or variable.pointer_depth or variable.is_reference:
        return False
    known = local_constants(kernel, unit.syntax)
    names = any(entry.type in ("identifier", "call_expression") for entry in walk(value))
    return not names or unit.constants.value(value, known) is not None


def _refuse_sizes(unit: SourceUnit, kernel: KernelDef, variable: VariableDef) -> None:
    """Decline a variable that has to stay a constant because types are made of it.

    Raises:
        SkillRefused: It has to.
    """
    flow = flow_of(unit, kernel)
    for node in walk(kernel.node):
        if node.type == "identifier" and unit.text_of(node) == variable.name:
            types = any(
                outer.type in ("array_declarator", "template_argument_list") for outer in ancestors(node)
            )
            inside = span_of(node) == variable.name_span
            if types and not inside and flow.resolve(node) is variable:
                raise SkillRefused(f"line {unit.line_of(node)} makes a type of {variable.name!r}")


def _bare(unit: SourceUnit, variable: VariableDef, plain_types: Collection[str]) -> tuple[str, str]:
    """Return type and declarator of a variable without its value.

    Raises:
        SkillRefused: They can't be told, or the variable needs its value where it is declared.
    """
    what = f"line {unit.line_of(variable.span)}: {variable.name!r}"
    if variable.is_reference or variable.storage is not Storage.LOCAL:
        raise SkillRefused(f"{what} needs its value where it is declared")
    if not (is_plain_type(variable.base_type) or variable.base_type in plain_types):
        raise SkillRefused(f"{what} is of a type that may need a value where it is declared")
    by_equals = any(child.type == "=" for child in variable.declarator.children)
    if variable.initialiser is not None and (variable.dimensions or not by_equals):
        raise SkillRefused(f"{what} gets a value that can't be assigned later")
    if variable.pointer_depth > 1 or (variable.pointer_depth and variable.dimensions):
        raise SkillRefused(f"{what} is no plain pointer")
    sizes = "".join(f"[{unit.text_of(size)}]" for size in variable.dimensions if size is not None)
    if len(variable.dimensions) != sizes.count("["):
        raise SkillRefused(f"{what} is an array of unknown size")
    const = "const " if variable.pointer_depth and variable.is_const else ""
    return f"{const}{variable.base_type}", f"{'*' * variable.pointer_depth}{variable.name}{sizes}"


def refuse_other_meanings(
    unit: SourceUnit, kernel: KernelDef, hoisted: Sequence[VariableDef], turn: Span
) -> None:
    """Decline where names of variables that are declared further out would hide or meet others.

    Raises:
        SkillRefused: They would.
    """
    flow = flow_of(unit, kernel)
    names = {variable.name for variable in hoisted}
    outside = [p.name for p in kernel.parameters] + [p.name for p in kernel.template_parameters]
    outside += [v.name for v in kernel.locals if v.scope == kernel.body and v not in hoisted]
    met = sorted(names & set(outside)) or [name for name in names if len(_of_name(hoisted, name)) > 1]
    if met:
        raise SkillRefused(f"{met[0]!r} is the name of more than one variable")
    for node in walk(kernel.node):
        if node.type != "identifier" or unit.text_of(node) not in names or not turn.contains(span_of(node)):
            continue
        declared = flow.resolve(node)
        if not isinstance(declared, VariableDef) or not turn.contains(declared.name_span):
            raise SkillRefused(f"line {unit.line_of(node)} means another {unit.text_of(node)!r}")


def _of_name(variables: Sequence[VariableDef], name: str) -> list[VariableDef]:
    return [variable for variable in variables if variable.name == name]
