"""Tell whether a kernel writes through a pointer, and whether a variable is a loop's accumulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernelskill.source.accesses import AccessMode, find_accesses, intrinsic_mode
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.dependence import Answer, no, unknown, yes
from kernelskill.source.expressions import static_type
from kernelskill.source.influence import influences
from kernelskill.source.loops import Loop
from kernelskill.source.pointers import pointer_reader
from kernelskill.source.purity import called_name, is_pure_call
from kernelskill.source.scopes import Declared, Write, flow_of
from kernelskill.source.syntax import ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_DEPTH = 8
_KEEPING = frozenset(
    {"subscript_expression", "pointer_expression", "binary_expression", "parenthesized_expression"}
    | {"cast_expression", "init_declarator", "conditional_expression", "field_expression", "argument_list"}
    | {
        "condition_clause",
        "unary_expression",
        "subscript_argument_list",
        "declaration",
        "assignment_expression",
    }
)
_EXTREMES = {
    **dict.fromkeys(("fmaxf", "fmax", "max", "umax"), "max"),
    **dict.fromkeys(("fminf", "fmin", "min", "umin"), "min"),
}


def is_pointer_written(unit: SourceUnit, function: FunctionDef, name: str, depth: int = 0) -> Answer:
    """Whether a function writes to what one of its pointers or arrays names."""
    declared: Declared | None = function.parameter(name) or function.local(name)
    declared = declared or next((v for v in unit.globals if v.name == name), None)
    if declared is None or function.body is None or depth > _DEPTH:
        return unknown(f"{name!r} is not declared in {function.name!r}")
    if function.is_opaque:
        return unknown(function.opaque_reason)
    doubts: list[str] = []
    for answer in _use_answers(unit, function, declared, depth):
        if answer.is_yes:
            return answer
        if answer.is_unknown:
            doubts.append(answer.reason)
    return unknown(doubts[0]) if doubts else no("nothing is written through it")


def _use_answers(unit: SourceUnit, function: FunctionDef, declared: Declared, depth: int) -> Iterator[Answer]:
    """Yield what each access, call and other use says."""
    for access in find_accesses(unit, function):
        if access.root is declared and access.mode.writes:
            yield yes(f"line {access.line} writes {unit.text_of(access.node)!r}")
        elif (
            access.root is None
            and access.mode.writes
            and declared.name in _reaches(unit, function, access.node)
        ):
            yield unknown(f"line {access.line} writes through {access.base!r}, which may point at it")
    for node in walk(function.body) if function.body is not None else ():
        if node.type == "call_expression":
            yield _call_writes(unit, function, node, declared, depth)
        elif node.type == "identifier" and unit.text_of(node) == declared.name and _escapes(unit, node):
            yield unknown(f"line {unit.line_of(node)} passes it on in {unit.text_of(_outer(node))!r}")


def _reaches(unit: SourceUnit, function: FunctionDef, node: Node) -> frozenset[str]:
    return influences(flow_of(unit, function), node, unit.syntax, node)


def _outer(node: Node) -> Node:
    return node.parent if node.parent is not None else node


def _escapes(unit: SourceUnit, name: Node) -> bool:
    """Whether a pointer goes where it can't be followed: a struct, assembly, a lambda, a return value."""
    below = name
    for parent in ancestors(name):
        if parent.type == "subscript_expression" or parent.type.endswith("_statement"):
            return parent.type == "return_statement"
        if parent.type == "call_expression":
            return False
        if parent.type == "pointer_expression" and unit.operator(parent) == "*":
            return False
        if parent.type == "assignment_expression":
            target = parent.child_by_field_name("left")
            return target != below and target is not None and target.type != "identifier"
        if parent.type not in _KEEPING:
            return True
        below = parent
    return False


def _call_writes(
    unit: SourceUnit, function: FunctionDef, call: Node, declared: Declared, depth: int
) -> Answer:
    listed = call.child_by_field_name("arguments")
    name = called_name(unit, call)
    if listed is None or intrinsic_mode(name) is not None:
        return no("intrinsics count as accesses")
    reader = pointer_reader(unit, function)
    for position, argument in enumerate(named(listed)):
        if not _mentions(unit, function, argument, declared):
            continue
        found = reader.read(argument)
        if found.root is not declared and _is_value(unit, function, argument):
            continue
        answer = _argument_written(unit, function, call, name, position, depth)
        if not answer.is_no:
            return answer
    return no("no call takes it to write")


def _mentions(unit: SourceUnit, function: FunctionDef, argument: Node, declared: Declared) -> bool:
    return declared.name in _reaches(unit, function, argument)


def _is_value(unit: SourceUnit, function: FunctionDef, argument: Node) -> bool:
    """Whether an argument is certainly a value, so that no pointer is passed."""
    kind = static_type(unit, function, argument)
    return bool(kind) and not kind.endswith("*")


def _argument_written(
    unit: SourceUnit, function: FunctionDef, call: Node, name: str, position: int, depth: int
) -> Answer:
    parent = call.parent
    if unit.macro(name) is not None:
        assigned = parent is not None and parent.type == "assignment_expression"
        target = parent.child_by_field_name("left") if parent is not None and assigned else None
        if target == call or (parent is not None and parent.type == "update_expression"):
            return yes(f"line {unit.line_of(call)} writes {unit.text_of(call)!r}")
        return no("the macro only reads") if is_pure_call(unit, call) else unknown(f"macro {name!r} takes it")
    if is_pure_call(unit, call):
        return no(f"{name!r} writes nothing")
    target_function = unit.function(name)
    if target_function is None or position >= len(target_function.parameters):
        return unknown(f"line {unit.line_of(call)} passes it to {name!r}")
    parameter = target_function.parameters[position]
    if not parameter.is_pointer or target_function is function:
        return (
            unknown(f"line {unit.line_of(call)} passes it to {name!r}")
            if parameter.is_reference
            else no("a value")
        )
    return is_pointer_written(unit, target_function, parameter.name, depth + 1)


@dataclass(frozen=True)
class Reduction:
    """Whether a loop only accumulates into a variable, and how."""

    answer: Answer
    operator: str
    """`+`, `*`, `max`, `min`, `&`, `|`, `^`; empty unless the answer is yes."""
    update: Node | None


def is_reduction(unit: SourceUnit, function: FunctionDef, loop: Loop, accumulator: str) -> Reduction:
    """Whether a loop does nothing to a variable but `acc = acc op value` in each iteration or some."""
    flow = flow_of(unit, function)
    declared: Declared | None = function.parameter(accumulator)
    candidates = [w.declared for w in flow.writes if w.declared.name == accumulator]
    inside = [
        w for w in flow.writes if w.declared.name == accumulator and loop.span.contains(span_of(w.node))
    ]
    if not inside:
        return Reduction(no(f"{accumulator!r} is not written in the loop"), "", None)
    declared = inside[0].declared
    if len(inside) != 1 or any(other is not declared for other in candidates if _declared_in(other, loop)):
        return Reduction(unknown(f"{accumulator!r} is written {len(inside)} times in the loop"), "", None)
    if _declared_in(declared, loop):
        return Reduction(no(f"{accumulator!r} is declared in the loop"), "", None)
    operator, own_reads = _accumulation(unit, inside[0], declared)
    if not operator:
        text = unit.text_of(inside[0].node)
        return Reduction(unknown(f"{text!r} is no accumulation"), "", None)
    reads = [
        node
        for node in walk(loop.node)
        if node.type == "identifier" and unit.text_of(node) == accumulator and flow.resolve(node) is declared
    ]
    if len(reads) != own_reads:
        return Reduction(unknown(f"the loop also reads {accumulator!r}"), "", None)
    return Reduction(yes(f"the loop accumulates with {operator!r}"), operator, inside[0].node)


def _declared_in(declared: Declared, loop: Loop) -> bool:
    return not isinstance(declared, ParameterDef) and loop.span.contains(declared.name_span)


def _accumulation(unit: SourceUnit, write: Write, declared: Declared) -> tuple[str, int]:
    """Return the operator and how often the accumulation itself names the variable."""
    node = write.node
    operator = unit.operator(node)
    if operator in ("+=", "-=", "*=", "&=", "|=", "^=", "++", "--"):
        return ("+" if operator[0] in "+-" else operator[0]), 1
    value = strip_parentheses(write.value) if write.value is not None and write.is_plain else None
    if value is None:
        return "", 0
    if value.type == "binary_expression":
        return _binary_accumulation(unit, value, declared)
    if value.type == "call_expression":
        listed = value.child_by_field_name("arguments")
        sides = named(listed) if listed is not None else []
        if called_name(unit, value) in ("fmaf", "fma", "__fmaf_rn"):
            return ("+", 2) if _names(unit, sides[-1], declared) else ("", 0)
        kind = _EXTREMES.get(called_name(unit, value), "")
        return (kind, 2) if any(_names(unit, side, declared) for side in sides) else ("", 0)
    return _guarded_extreme(unit, node, value, declared)


def _binary_accumulation(unit: SourceUnit, value: Node, declared: Declared) -> tuple[str, int]:
    left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
    operator = unit.operator(value)
    if left is None or right is None or operator not in ("+", "-", "*", "&", "|", "^"):
        return "", 0
    sides = [left] if operator == "-" else [left, right]
    if any(_names(unit, side, declared) for side in sides):
        return ("+" if operator == "-" else operator), 2
    return "", 0


def _names(unit: SourceUnit, node: Node, declared: Declared) -> bool:
    node = strip_parentheses(node)
    return node.type == "identifier" and unit.text_of(node) == declared.name


def _guarded_extreme(unit: SourceUnit, node: Node, value: Node, declared: Declared) -> tuple[str, int]:
    """Read `if (v > acc) acc = v;`."""
    statement = node.parent.parent if node.parent is not None else None
    while statement is not None and statement.type == "compound_statement" and len(named(statement)) == 1:
        statement = statement.parent
    if statement is None or statement.type != "if_statement" or statement.child_by_field_name("alternative"):
        return "", 0
    condition = statement.child_by_field_name("condition")
    test = strip_parentheses(condition) if condition is not None else statement
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    operator = unit.operator(test)
    if test.type != "binary_expression" or left is None or right is None or operator[0] not in "<>":
        return "", 0
    text = unit.text_of(value)
    if unit.text_of(strip_parentheses(left)) == text and _names(unit, right, declared):
        return ("max" if operator[0] == ">" else "min"), 2
    if unit.text_of(strip_parentheses(right)) == text and _names(unit, left, declared):
        return ("min" if operator[0] == ">" else "max"), 2
    return "", 0


def written_pointers(unit: SourceUnit, function: FunctionDef) -> dict[str, Answer]:
    """Return for each pointer parameter whether the function writes through it."""
    return {p.name: is_pointer_written(unit, function, p.name) for p in function.parameters if p.is_pointer}


def is_only_read(unit: SourceUnit, function: FunctionDef, name: str) -> bool:
    """Whether a pointer is read and certainly never written through."""
    reads = any(
        a.root_name == name and a.root is not None and a.mode is AccessMode.READ
        for a in find_accesses(unit, function)
    )
    return reads and is_pointer_written(unit, function, name).is_no
