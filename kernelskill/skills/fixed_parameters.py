"""Parameters of a kernel whose values at the timed sizes are worth compiling in, and the launches that pass them."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name, units_of
from kernelskill.skills.expression_types import is_integer, is_wide, plain_type
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.influence import influences
from kernelskill.source.loops import find_loops
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, ancestors, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

MOST = 4
"""Combinations of values that get a copy of the kernel."""
_NARROW = ("bool", "char", "signed char", "unsigned char", "short", "unsigned short")


@dataclass(frozen=True)
class Dispatch:
    """One launch, and the values for which it gets a copy of the kernel."""

    entry: KernelLaunch
    names: tuple[str, ...]
    """What each parameter is called where the kernel is launched; empty where it is a constant there."""
    values: tuple[tuple[int, ...], ...]
    """Combinations of values; empty: the general kernel only."""


@dataclass(frozen=True)
class FixedParameters:
    """Parameters of a kernel that may be compiled in."""

    parameters: tuple[ParameterDef, ...]
    dispatches: tuple[Dispatch, ...]

    @property
    def key(self) -> str:
        """Names the parameters."""
        return "+".join(parameter.name for parameter in self.parameters)

    @property
    def values_text(self) -> str:
        """For people."""
        combinations = dict.fromkeys(value for entry in self.dispatches for value in entry.values)
        return ", ".join("x".join(map(str, combination)) for combination in combinations)


def find_fixed(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[FixedParameters]:
    """Return the sets of parameters that may be compiled in: all together, then each alone.

    Raises:
        SkillRefused: The kernel can't be a template, or no parameter is worth it.
    """
    entries = launches_of(unit, kernel, context)
    _refuse_shape(unit, kernel, entries, context)
    useful = [parameter for parameter in kernel.parameters if _is_useful(unit, kernel, parameter)]
    if not useful:
        raise SkillRefused("no whole number that it is given decides a loop or a division")
    sets = [tuple(useful), *((parameter,) for parameter in useful if len(useful) > 1)]
    found = []
    for parameters in sets:
        dispatches = tuple(_dispatch(kernel, parameters, entry, context) for entry in entries)
        if any(dispatch.values for dispatch in dispatches):
            found.append(FixedParameters(parameters, dispatches))
    if not found:
        names = ", ".join(parameter.name for parameter in useful)
        raise SkillRefused(f"the timed cases do not give the values of {names} by the launcher's names")
    return found


def _refuse_shape(
    unit: SourceUnit, kernel: KernelDef, entries: list[KernelLaunch], context: SkillContext
) -> None:
    if kernel.c_linkage:
        raise SkillRefused("a kernel with C linkage can't be a template")
    for other in units_of(unit, context):
        if any(function.name == kernel.name and function.body is None for function in other.all_functions):
            raise SkillRefused("it is declared apart from its definition")
    for entry in entries:
        statement = entry.launch.node.parent
        if statement is None or statement.type != "expression_statement":
            raise SkillRefused(f"the launch on line {entry.launch.line} is no statement of its own")
        given = len(entry.launch.template_arguments)
        if given != len(kernel.template_parameters):
            raise SkillRefused(
                f"the launch on line {entry.launch.line} leaves template arguments to the compiler"
            )
        if len(entry.launch.arguments) != len(kernel.parameters):
            raise SkillRefused(f"the launch on line {entry.launch.line} leaves out arguments")


def _is_useful(unit: SourceUnit, kernel: KernelDef, parameter: ParameterDef) -> bool:
    kind = plain_type(parameter.pointee_type)
    if parameter.is_pointer or parameter.is_reference or not is_integer(kind) or kind in _NARROW:
        return False
    flow = flow_of(unit, kernel)
    if flow.writes_to(parameter) or not parameter.name or _is_fixed_already(unit, kernel, parameter):
        return False
    places: list[Node | None] = []
    loops = find_loops(unit, kernel)
    for loop in loops:
        places += [loop.bound, loop.step, loop.start]
    for node in walk(kernel.body) if kernel.body is not None else ():
        if node.type == "binary_expression" and unit.operator(node) in ("/", "%"):
            places.append(node.child_by_field_name("right"))
        inside = node.type == "if_statement" and any(loop.node in ancestors(node) for loop in loops)
        if inside:
            places.append(node.child_by_field_name("condition"))
    return any(
        parameter.name in influences(flow, place, unit.syntax, place) for place in places if place is not None
    )


def _is_fixed_already(unit: SourceUnit, kernel: KernelDef, parameter: ParameterDef) -> bool:
    """Whether a variable takes a template parameter instead of this one where there is one."""
    templates = {entry.name for entry in kernel.template_parameters}
    for variable in kernel.locals:
        words = (
            {unit.text_of(n) for n in walk(variable.initialiser) if n.type == "identifier"}
            if (variable.initialiser is not None)
            else set()
        )
        if parameter.name in words and words & templates:
            return True
    return False


def _dispatch(
    kernel: KernelDef, parameters: tuple[ParameterDef, ...], entry: KernelLaunch, context: SkillContext
) -> Dispatch:
    positions = {parameter.name: index for index, parameter in enumerate(kernel.parameters)}
    arguments = [entry.launch.arguments[positions[parameter.name]].node for parameter in parameters]
    names = [_launcher_parameter(entry, argument, context) for argument in arguments]
    constants = [entry.constant(argument) for argument in arguments]
    cases = context.task.timed_cases if context.task is not None else ()
    found: list[tuple[int, ...]] = []
    for case in cases:
        values = [
            case.arguments.get(name) if name else constant
            for name, constant in zip(names, constants, strict=True)
        ]
        whole = [value for value in values if type(value) is int]
        fits = all(_fits(value, parameter) for value, parameter in zip(whole, parameters, strict=False))
        if len(whole) == len(values) and fits and tuple(whole) not in found:
            found.append(tuple(whole))
    return Dispatch(entry, tuple(names), tuple(found[:MOST]))


def _fits(value: int, parameter: ParameterDef) -> bool:
    kind = plain_type(parameter.pointee_type)
    return 0 < value < (2**63 if is_wide(kind) else 2**31)


def _launcher_parameter(entry: KernelLaunch, argument: Node, context: SkillContext) -> str:
    """Return the launcher's parameter that is passed on as it came; empty where something else is passed."""
    node = strip_parentheses(argument)
    if entry.function is None or node.type != "identifier" or context.task is None:
        return ""
    flow = flow_of(entry.unit, entry.function)
    declared = flow.resolve(node)
    same = entry.function.name == context.task.signature.symbol
    plain = isinstance(declared, ParameterDef) and not declared.is_pointer and not flow.writes_to(declared)
    return declared.name if same and plain and declared is not None else ""


def write_fixed(
    unit: SourceUnit, kernel: KernelDef, fixed: FixedParameters, context: SkillContext
) -> list[EditSet]:
    """Make the kernel a template over the parameters, and choose at each launch."""
    sets = {unit.path: EditSet(unit)}
    templates: list[str] = []
    taken: list[str] = []
    lines: list[str] = []
    for parameter in fixed.parameters:
        template = fresh_name(unit, context, f"FIXED_{parameter.name.upper()}", taken)
        given = fresh_name(unit, context, f"given_{parameter.name}", [*taken, template])
        taken += [template, given]
        templates.append(f"{parameter.pointee_type} {template}")
        sets[unit.path].replace(parameter.name_span, given)
        lines.append(
            f"const {parameter.pointee_type} {parameter.name} = {template} > 0 ? {template} : {given};"
        )
    _write_header(unit, kernel, templates, sets[unit.path])
    assert kernel.body is not None
    text = "".join(f"\n    {line}" for line in lines)
    sets[unit.path].insert_after(Span(kernel.body.start_byte, kernel.body.start_byte + 1), text)
    for dispatch in fixed.dispatches:
        edits = sets.setdefault(dispatch.entry.unit.path, EditSet(dispatch.entry.unit))
        _write_launch(dispatch, len(fixed.parameters), edits)
    return list(sets.values())


def _write_header(unit: SourceUnit, kernel: KernelDef, templates: list[str], edits: EditSet) -> None:
    note = "// Zero stands for any value; others are compiled in."
    indent = unit.indent_of(kernel.span)
    if not kernel.template_parameters:
        edits.insert_before(kernel.span, f"{note}\n{indent}template <{', '.join(templates)}>\n{indent}")
        return
    outer = kernel.node
    while outer.parent is not None and outer.parent.type == "template_declaration":
        outer = outer.parent
    listed = outer.child_by_field_name("parameters")
    if listed is None:
        raise SkillRefused("its template parameters can't be read")
    edits.insert_before(Span(listed.end_byte - 1, listed.end_byte), f", {', '.join(templates)}")


def _write_launch(dispatch: Dispatch, count: int, edits: EditSet) -> None:
    entry = dispatch.entry
    unit, launch = entry.unit, entry.launch
    general = _call_text(unit, entry, ("0",) * count)
    statement = launch.node.parent
    assert statement is not None
    fixed_everywhere = dispatch.values and not any(dispatch.names)
    if not dispatch.values or fixed_everywhere:
        values = tuple(map(str, dispatch.values[0])) if dispatch.values else ("0",) * count
        edits.replace(launch.span, _call_text(unit, entry, values))
        return
    indent = unit.indent_of(statement)
    text = ""
    for combination in dispatch.values:
        tests = [
            f"{name} == {value}" for name, value in zip(dispatch.names, combination, strict=True) if name
        ]
        call = _call_text(unit, entry, tuple(map(str, combination)))
        text += f"if ({' && '.join(dict.fromkeys(tests))}) {{\n{indent}    {call};\n{indent}}} else "
    text += f"{{\n{indent}    {general};\n{indent}}}"
    if not is_statement_of_block(statement):
        text = f"{{ {text} }}"
    edits.replace(statement, text)


def _call_text(unit: SourceUnit, entry: KernelLaunch, values: tuple[str, ...]) -> str:
    launch = entry.launch
    name = unit.text_of(launch.name_span).rstrip()
    rest = unit.text_of(Span(launch.name_span.end, launch.span.end))
    if launch.template_arguments:
        return f"{name[:-1]}, {', '.join(values)}>{rest}"
    return f"{name}<{', '.join(values)}>{rest}"
