"""Kernels whose threads store what they choose one behind the other: read with the places left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.algorithm.lifting import Lifted, lift
from kernelskill.algorithm.model import CannotLift
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.launch_pairs import statement_of
from kernelskill.skills.parsed_files import parsed
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import LaunchSite
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.scopes import LOOPS, flow_of
from kernelskill.source.syntax import Node, Span, ancestors, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True, eq=False)
class PackedStore:
    """A store like `kept[to++] = v;` in a loop, or `kept[to] = v; ++to;`."""

    target: Node = field(repr=False)
    buffer: ParameterDef
    place: VariableDef
    """The variable that says where to."""
    update: Node = field(repr=False)
    """What moves it on: a part of the target, or the statement behind the store."""
    loop: Loop = field(repr=False)


def read_packed_store(unit: SourceUnit, kernel: KernelDef) -> PackedStore:
    """Return the one packed store of a kernel.

    Raises:
        SkillRefused: It has none, or several, or uses the place for more.
    """
    flow, loops = flow_of(unit, kernel), find_loops(unit, kernel)
    found = []
    for node in walk(kernel.node):
        if node.type == "assignment_expression" and unit.operator(node) == "=":
            parts = _parts(unit, node)
            buffer = flow.resolve(parts[0]) if parts is not None else None
            place = flow.resolve(parts[1]) if parts is not None else None
            if parts is None or not isinstance(buffer, ParameterDef) or not isinstance(place, VariableDef):
                continue
            inside = [loop for loop in loops if loop.body_span.contains(span_of(node))]
            if len(inside) == 1 and place.storage is Storage.LOCAL:
                left = node.child_by_field_name("left")
                assert left is not None
                found.append(PackedStore(left, buffer, place, parts[2], inside[0]))
    if len(found) != 1:
        raise SkillRefused("it has no store, or several, to places that are taken one by one")
    _check_uses(unit, kernel, found[0])
    return found[0]


def _parts(unit: SourceUnit, node: Node) -> tuple[Node, Node, Node] | None:
    """Return the array, the place's variable and its update, of a statement that is nothing but a packed store."""
    left, statement = node.child_by_field_name("left"), node.parent
    if left is None or left.type != "subscript_expression" or statement is None:
        return None
    base, indices = left.child_by_field_name("argument"), left.child_by_field_name("indices")
    listed = named(indices) if indices is not None else []
    if (
        statement.type != "expression_statement"
        or base is None
        or base.type != "identifier"
        or len(listed) != 1
    ):
        return None
    index = strip_parentheses(listed[0])
    if index.type == "update_expression":
        variable = _incremented(unit, index)
        is_behind = variable is not None and variable.start_byte == index.start_byte
        return (base, variable, index) if is_behind and variable is not None else None
    following = statement.next_named_sibling
    if index.type != "identifier" or following is None or following.type != "expression_statement":
        return None
    variable = _incremented(unit, named(following)[0]) if named(following) else None
    same = variable is not None and unit.text_of(variable) == unit.text_of(index)
    return (base, index, following) if same else None


def _incremented(unit: SourceUnit, node: Node) -> Node | None:
    """Return the variable to which an expression adds one."""
    operator, left = unit.operator(node), node.child_by_field_name("left")
    if node.type == "update_expression" and operator == "++":
        argument = node.child_by_field_name("argument")
        return argument if argument is not None and argument.type == "identifier" else None
    right = node.child_by_field_name("right")
    is_one = right is not None and unit.text_of(right).rstrip("uUlL") == "1"
    is_sum = node.type == "assignment_expression" and operator == "+=" and is_one
    return left if is_sum and left is not None and left.type == "identifier" else None


def _check_uses(unit: SourceUnit, kernel: KernelDef, store: PackedStore) -> None:
    flow, place = flow_of(unit, kernel), store.place
    if (
        place.dimensions
        or place.pointer_depth
        or place.is_reference
        or any(node.type in LOOPS for node in ancestors(store.loop.node))
    ):
        raise SkillRefused(f"{place.name!r} is no plain variable, or its loop stands in another one")
    own = [span_of(store.target), span_of(store.update)]
    start = store.loop.node.start_byte
    for node in walk(kernel.node):
        if node.type != "identifier" or node.start_byte < start or unit.text_of(node) != place.name:
            continue
        if flow.resolve(node) is place and not any(span.contains(span_of(node)) for span in own):
            raise SkillRefused(f"line {unit.line_of(node)} uses {place.name!r} for more than a place")
    if not store.loop.is_counted or store.loop.signed_step != 1:
        raise SkillRefused(f"the loop on line {store.loop.line} does not count up by one")
    if store.loop.span.contains(place.name_span):
        raise SkillRefused(f"{place.name!r} begins anew in every turn")


class PackedKernel:
    """A launch of a kernel with a packed store, read as if each turn stored to a place of its own."""

    def __init__(self, unit: SourceUnit, launch: LaunchSite, context: SkillContext) -> None:
        """Read it.

        Raises:
            SkillRefused: It can't be followed.
        """
        kernel, statement = unit.kernel(launch.kernel), statement_of(launch)
        if kernel is None or kernel.body is None or not kernel.parameters:
            raise SkillRefused(f"{launch.kernel} is not defined in this file, or has no parameters")
        if statement is None or statement.start_byte < kernel.span.end:
            raise SkillRefused(f"the launch on line {launch.line} is part of another statement")
        self.store = read_packed_store(unit, kernel)
        self.values = fresh_name(unit, context, "values")
        """The buffer to which a turn stores what it chooses, at the number of its element."""
        self.firsts = fresh_name(unit, context, "firsts")
        """The buffer to which a thread stores its first place, at its own number."""
        name = fresh_name(unit, context, "packed")
        flags = context.task.flags if context.task is not None else ()
        text = self._text(unit, kernel, launch, statement, name)
        found = {other.kernel: other for other in parsed(text, unit.path, flags).launches}
        try:
            self.lifted: Lifted = lift(parsed(text, unit.path, flags), found[name])
        except (CannotLift, KeyError) as refused:
            reason = refused.reason if isinstance(refused, CannotLift) else "its launch is not found again"
            raise SkillRefused(f"{launch.kernel}: {reason}") from refused

    def _text(
        self, unit: SourceUnit, kernel: KernelDef, launch: LaunchSite, statement: Node, name: str
    ) -> str:
        store, data = self.store, unit.data
        loop = store.loop.node
        if loop.parent is None or loop.parent.type != "compound_statement" or not store.loop.variable:
            raise SkillRefused("its loop is of an unusual form")
        kinds = [_plain_pointee(store.buffer), store.place.base_type]
        more = f", {kinds[0]}* {self.values}, {kinds[1]}* {self.firsts}"
        first = f"{self.firsts}[blockIdx.x * blockDim.x + threadIdx.x] = {store.place.name};\n"
        last = kernel.parameters[-1].span.end
        pragma = store.loop.pragma_span
        above = pragma.start if pragma is not None else loop.start_byte
        patches = [
            (kernel.name_span, name),
            (Span(last, last), more),
            (Span(above, above), first),
            (span_of(store.target), f"{self.values}[{_own_place(store.loop)}]"),
        ]
        if not span_of(store.target).contains(span_of(store.update)):
            patches.append((span_of(store.update), ";"))
        start = kernel.span.start
        copy = data[start : kernel.span.end]
        for span, new in sorted(patches, key=lambda patch: -patch[0].start):
            copy = copy[: span.start - start] + new.encode() + copy[span.end - start :]
        declared = f"{kinds[0]}* {self.values} = nullptr;\n{kinds[1]}* {self.firsts} = nullptr;\n"
        callee = unit.text_of(launch.name_span).replace(launch.kernel, name, 1)
        given = ", ".join([*(argument.text for argument in launch.arguments), self.values, self.firsts])
        call = f"{callee}{unit.text_of(launch.configuration_span)}({given});\n"
        end, at = kernel.span.end, statement.start_byte
        parts = (data[:end], b"\n", copy, b"\n", data[end:at], declared.encode(), call.encode(), data[at:])
        return b"".join(parts).decode()


def _own_place(loop: Loop) -> str:
    """Return C text of a place that is that of one turn of one thread, for stretches of neighbouring elements."""
    if loop.start_value != 0 or loop.bound_value is None or loop.comparison != "<":
        return loop.variable
    return f"(blockIdx.x * blockDim.x + threadIdx.x) * {loop.bound_value} + {loop.variable}"


def _plain_pointee(parameter: ParameterDef) -> str:
    if parameter.pointer_depth != 1:
        raise SkillRefused(f"{parameter.name!r} is no plain array")
    return parameter.pointee_type
