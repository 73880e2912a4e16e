"""What a loop may do besides what its own text shows, and what of it stays the same in every turn."""

from __future__ import annotations

from kernelskill.skills.device_code import BARRIERS, macros_in, reached_functions, units_of, words_in
from kernelskill.skills.expression_types import PURE_FUNCTIONS, ExpressionTypes, called_name, plain_type
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, find_accesses
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, named, span_of, walk
from kernelskill.source.unit import SourceUnit

_CASTS = ("static_cast<", "reinterpret_cast<", "const_cast<")
_INTRINSICS = ("__ldg", "__ldcg", "__ldcs", "__ldca")
_SIMPLE = frozenset(
    {
        *(
            "identifier",
            "number_literal",
            "binary_expression",
            "parenthesized_expression",
            "field_expression",
        ),
        *("unary_expression", "cast_expression", "type_descriptor", "primitive_type", "type_identifier"),
        *("field_identifier", "sized_type_specifier"),
    }
)


def visible_accesses(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> list[Access]:
    """Return every access to memory that a loop makes.

    Raises:
        SkillRefused: It may make others: in a called function, a macro, by a barrier or inline assembly.
    """
    barriers = sorted(set(words_in(unit, loop.node)) & BARRIERS)
    if barriers or loop.has_barrier:
        raise SkillRefused(f"the loop on line {loop.line} uses {barriers[0] if barriers else 'a barrier'!r}")
    if "volatile" in words_in(unit, kernel.span):
        raise SkillRefused("the kernel uses volatile memory")
    refuse_hidden_accesses(unit, kernel, loop.node, context)
    return [access for access in find_accesses(unit, kernel) if loop.span.contains(access.span)]


def refuse_hidden_accesses(unit: SourceUnit, kernel: KernelDef, node: Node, context: SkillContext) -> None:
    """Decline where a call or macro below a node may access memory.

    Raises:
        SkillRefused: It may.
    """
    for macro in macros_in(unit, words_in(unit, node), context):
        if any(sign in macro.possible for sign in ("[", "->", "*(", "=", "asm")):
            raise SkillRefused(f"macro {macro.name!r} may access memory")
    own = {function.name: (other, function) for other, function in reached_functions(unit, kernel, context)}
    for call in walk(node):
        if call.type != "call_expression":
            continue
        name = called_name(unit, call).split("<")[0]
        if name in own:
            _refuse_memory(*own[name], own, _binds_locals(unit, kernel, call, own[name][1]))
        elif not _is_harmless(unit, call, name) and not _is_macro(unit, name, context):
            raise SkillRefused(f"line {unit.line_of(call)} calls {name!r}, which may access memory")


def _is_macro(unit: SourceUnit, name: str, context: SkillContext) -> bool:
    """Whether a macro of any file has the name: what macros hold has been looked at before."""
    return any(macro.name == name for other in units_of(unit, context) for macro in other.macros)


def _is_harmless(unit: SourceUnit, call: Node, name: str) -> bool:
    function = call.child_by_field_name("function")
    text = unit.text_of(function) if function is not None else ""
    if function is not None and function.type == "primitive_type":
        return True
    known = name in PURE_FUNCTIONS or name in _INTRINSICS or name.startswith(("make_", "atomic"))
    return known or text.startswith(_CASTS) or name.startswith("__float2") or unit.macro(name) is not None


def _binds_locals(unit: SourceUnit, kernel: KernelDef, call: Node, function: FunctionDef) -> bool:
    """Whether a call hands only plain local variables to the references of a function."""
    listed = call.child_by_field_name("arguments")
    for argument, parameter in zip(
        named(listed) if listed is not None else [], function.parameters, strict=False
    ):
        if parameter.is_reference:
            declared = flow_of(unit, kernel).resolve(argument) if argument.type == "identifier" else None
            is_local = isinstance(declared, VariableDef) and declared.storage is Storage.LOCAL
            if not is_local or (isinstance(declared, VariableDef) and declared.is_reference):
                return False
    return True


def _refuse_memory(
    unit: SourceUnit,
    function: FunctionDef,
    own: dict[str, tuple[SourceUnit, FunctionDef]],
    binds_locals: bool,
) -> None:
    """Decline a function of the user's that touches memory or calls another of the user's."""
    harmful = {"subscript_expression", "pointer_expression", "gnu_asm_expression"}
    touches = any(n.type in harmful for n in walk(function.body)) if function.body is not None else True
    pointers = any(p.pointer_depth or (p.is_reference and not binds_locals) for p in function.parameters)
    calls = set(words_in(unit, function.span)) - {function.name}
    macros = any("[" in m.possible for m in unit.macros if m.name in calls)
    globals_used = {v.name for v in unit.globals if not v.is_const} & calls
    if touches or pointers or macros or globals_used or calls & set(own):
        raise SkillRefused(f"function {function.name!r} may access memory")


def _is_of_extremes(unit: SourceUnit, node: Node) -> bool:
    """Whether a call, or its list of arguments, is one of CUDA's own `min` and `max`."""
    call = node.parent if node.type == "argument_list" else node
    function = call.child_by_field_name("function") if call is not None else None
    name = unit.text_of(function) if function is not None else ""
    return name in ("min", "max") and all(own.name != name for own in (*unit.functions, *unit.kernels))


def is_invariant(unit: SourceUnit, kernel: KernelDef, node: Node, span: Span) -> bool:
    """Whether an expression of plain variables has one value all through a range of the kernel."""
    flow = flow_of(unit, kernel)
    for entry in walk(node):
        if entry.type in ("call_expression", "argument_list") and _is_of_extremes(unit, entry):
            continue
        if entry.is_named and entry.type not in _SIMPLE and entry.type != "comment":
            return False
        if entry.type != "identifier":
            continue
        declared = flow.resolve(entry)
        if declared is None:
            continue
        if isinstance(declared, VariableDef) and (
            declared.dimensions or (declared.scope.type == "translation_unit" and not declared.is_const)
        ):
            return False
        if isinstance(declared, VariableDef) and span.contains(declared.name_span):
            return False
        writes = flow.writes_to(declared)
        written = any(span.overlaps(span_of(write.node)) or write.operator == "&" for write in writes)
        if written and not (len(writes) == 1 and flow.is_constant(declared)):
            return False
    return True


def entry_condition(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> str:
    """Return C text that tells, before a loop, whether it runs at all; `true` where it certainly does.

    Raises:
        SkillRefused: It can't be told from plain variables.
    """
    if loop.trip_count is not None and loop.trip_count > 0:
        return "true"
    start, bound, declared = loop.start, loop.bound, loop.declared
    inside = isinstance(declared, VariableDef) and loop.span.contains(declared.name_span)
    if start is None or bound is None or not loop.is_counted or not inside or loop.kind.value != "for":
        raise SkillRefused(f"whether the loop on line {loop.line} runs at all can't be told before it")
    for part in (start, bound):
        if not is_invariant(unit, kernel, part, loop.span):
            raise SkillRefused(f"the bounds of the loop on line {loop.line} are more than plain variables")
    assert isinstance(declared, VariableDef)
    first = unit.text_of(start)
    if start.type == "number_literal" and loop.start_value is not None:
        pass  # an integer that is not negative: the same in every integer type
    elif ExpressionTypes(unit, kernel).of(start) != plain_type(declared.base_type):
        first = f"({declared.base_type})({first})"
    elif start.type == "binary_expression":
        first = f"({first})"
    return f"{first} {loop.comparison} {unit.text_of(bound)}"


def is_unconditional(unit: SourceUnit, loop: Loop, node: Node) -> bool:
    """Whether every turn of a loop that is begun evaluates a node."""
    if loop.has_continue or loop.has_break or loop.has_return:
        return False
    child, parent = node, node.parent
    while parent is not None and child != loop.body:
        if parent.type == "conditional_expression" and parent.child_by_field_name("condition") != child:
            return False
        short = parent.type == "binary_expression" and unit.operator(parent) in ("&&", "||")
        if short and parent.child_by_field_name("left") != child:
            return False
        if child.type not in ("expression_statement", "declaration", "compound_statement") and (
            child.type.endswith("_statement") or child.type == "lambda_expression"
        ):
            return False
        child, parent = parent, parent.parent
    return True


def statement_siblings_before(node: Node) -> list[Node]:
    """Return the statements of the same block that come before a statement, nearest first."""
    parent = node.parent
    if parent is None or parent.type != "compound_statement":
        return []
    return [child for child in reversed(named(parent)) if child.end_byte <= node.start_byte]
