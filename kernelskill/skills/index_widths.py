"""Which 64-bit integers of a kernel could have 32 bits, and how large they can get in terms of a launch.

Only values that are never negative are bounded: sums, products, quotients and remainders of thread and block
indices, sizes and loop variables that count upwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.device_code import macros_in, words_in
from kernelskill.skills.expression_types import (
    FLOAT_FUNCTIONS,
    ExpressionTypes,
    called_name,
    is_unsigned,
    is_wide,
    plain_type,
)
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.dimensions import local_constants
from kernelskill.source.loops import find_loops
from kernelskill.source.polynomial import Atom, Polynomial
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, Span, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_DEPTH = 16
_COMPUTED = frozenset({"binary_expression", "cast_expression", "conditional_expression", "unary_expression"})
_BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_ADDRESSING = ("__ldg", "__ldcs", "__ldcg", "__ldca")


@dataclass(frozen=True)
class WidePlaces:
    """Where a kernel names a 64-bit integer type for values of its own."""

    types: tuple[Span, ...]
    """The types, as declared or cast to."""
    declared: tuple[Declared, ...]
    is_unsigned: bool
    written: str
    """The type as first written."""


def wide_places(unit: SourceUnit, kernel: KernelDef) -> WidePlaces:
    """Return the 64-bit types of a kernel's parameters, variables and casts.

    Raises:
        SkillRefused: There are none, or signed ones beside unsigned ones.
    """
    types: list[Span] = []
    declared: list[Declared] = []
    for parameter in kernel.parameters:
        kind = parameter.node.child_by_field_name("type")
        if not parameter.pointer_depth and is_wide(plain_type(parameter.pointee_type)) and kind is not None:
            if parameter.is_reference:
                raise SkillRefused(f"{parameter.name!r} is a reference")
            types.append(span_of(kind))
            declared.append(parameter)
    for variable in kernel.locals:
        _refuse_deduced(unit, kernel, variable)
        kind = variable.declaration.child_by_field_name("type")
        if variable.pointer_depth or not is_wide(plain_type(variable.base_type)) or kind is None:
            continue
        if variable.dimensions or variable.is_reference:
            raise SkillRefused(f"{variable.name!r} is an array or a reference")
        types.append(span_of(kind))
        declared.append(variable)
    types += [span_of(kind) for kind in _cast_types(unit, kernel)]
    spans = tuple(sorted(set(types), key=lambda span: span.start))
    texts = [" ".join(unit.text_of(span).split()) for span in spans]
    signs = {is_unsigned(plain_type(text)) for text in texts}
    if not texts:
        raise SkillRefused("it computes no index in 64 bits")
    if len(signs) > 1:
        raise SkillRefused("it computes in signed and in unsigned 64-bit integers")
    return WidePlaces(spans, tuple(declared), signs.pop(), texts[0])


def _refuse_deduced(unit: SourceUnit, kernel: KernelDef, variable: VariableDef) -> None:
    """Decline `auto` for what is, or may be, a 64-bit integer."""
    value = variable.initialiser
    if variable.base_type == "auto" and value is not None and not variable.pointer_depth:
        deduced = ExpressionTypes(unit, kernel).of(value)
        if deduced is None or is_wide(deduced):
            raise SkillRefused(f"the type of {variable.name!r} is deduced")


def _cast_types(unit: SourceUnit, kernel: KernelDef) -> list[Node]:
    found = []
    for node in walk(kernel.body) if kernel.body is not None else ():
        kind = node.child_by_field_name("type") if node.type == "cast_expression" else None
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            text = unit.text_of(function) if function is not None else ""
            if text.startswith("static_cast<"):
                inner = [n for n in walk(function) if n.type == "type_descriptor"] if function else []
                kind = inner[0] if len(inner) == 1 else None
            elif function is not None and is_wide(plain_type(text)):
                kind = function
        if kind is not None and is_wide(plain_type(unit.text_of(kind))):
            found.append(kind)
    return found


@dataclass(frozen=True)
class LaunchBounds:
    """How large the integers of a kernel can get in one launch, as polynomials over host texts."""

    unit: SourceUnit
    kernel: KernelDef
    entry: KernelLaunch
    places: WidePlaces
    context: SkillContext
    arguments: dict[str, Node] = field(default_factory=dict)
    """Arguments of the launch that bounds rest on, by the parameter's name; filled by asking."""

    def all_bounds(self) -> list[Polynomial]:
        """Return a bound for every value that would have fewer bits, smaller ones left out.

        Raises:
            SkillRefused: One can't be bounded, or might be negative.
        """
        found: list[Polynomial] = [self.of_declared(one) for one in self.places.declared]
        types = ExpressionTypes(self.unit, self.kernel)
        for node in walk(self.kernel.body) if self.kernel.body is not None else ():
            if node.type == "call_expression":
                self._check_call(node)
            kind = types.of(node)
            if is_wide(kind) and node.type in _COMPUTED and not self._stays_wide(node, types):
                found.append(self.of(node))
            elif node.type == "sizeof_expression" and self._is_narrowed(node):
                raise SkillRefused(f"line {self.unit.line_of(node)} takes the size of a 64-bit integer")
            elif node.type == "assignment_expression":
                self._check_assignment(node, types)
            elif kind is None and node.type == "binary_expression" and self._is_narrowed(node):
                raise SkillRefused(
                    f"line {self.unit.line_of(node)}: the type of {self.unit.text_of(node)} can't be told"
                )
        kept: list[Polynomial] = []
        for bound in sorted(set(found), key=lambda one: (-len(one.terms), str(one))):
            if not any(_covers(other, bound) for other in kept):
                kept.append(bound)
        return kept

    def _is_narrowed(self, node: Node) -> bool:
        """Whether a value is computed from one that would have fewer bits."""
        flow = flow_of(self.unit, self.kernel)
        casts = self.places.types
        for entry in walk(node):
            if entry.type == "identifier" and flow.resolve(entry) in self.places.declared:
                return True
            if any(span_of(entry) == span for span in casts):
                return True
        return False

    def _check_assignment(self, node: Node, types: ExpressionTypes) -> None:
        """Decline `total += i` on an integer, which adds in 64 bits."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        steps = [loop.step_statement for loop in find_loops(self.unit, self.kernel)]
        if self.unit.operator(node) == "=" or left is None or right is None or node in steps:
            return
        if types.of(left) not in ("float", "double") and self._is_narrowed(right):
            if left.type == "subscript_expression" and not is_wide(types.of(right)):
                return
            raise SkillRefused(f"line {self.unit.line_of(node)} may compute in 64 bits before it stores")

    def _check_call(self, call: Node) -> None:
        """Decline a call that may compute in the type of its arguments."""
        listed = call.child_by_field_name("arguments")
        name = called_name(self.unit, call).split("<")[0]
        if listed is None or not self._is_narrowed(listed) or name in ("static_cast", *_ADDRESSING):
            return
        function = call.child_by_field_name("function")
        target = self.unit.function(name)
        own = target is not None and not target.is_templated and self.unit.macro(name) is None
        is_cast = function is not None and is_wide(plain_type(self.unit.text_of(function)))
        harmless = own or is_cast or name in FLOAT_FUNCTIONS or name.startswith("atomic")
        if not harmless or (function is not None and function.type == "primitive_type" and not is_cast):
            raise SkillRefused(
                f"line {self.unit.line_of(call)}: {name!r} may compute in the type of its arguments"
            )

    def _stays_wide(self, node: Node, types: ExpressionTypes) -> bool:
        """Whether a 64-bit expression would still be computed in 64 bits."""
        node = strip_parentheses(node)
        if node.type == "binary_expression":
            left, right = (node.child_by_field_name(side) for side in ("left", "right"))
            sides = [left] if self.unit.operator(node) in ("<<", ">>") else [left, right]
            return any(side is not None and self._stays_wide(side, types) for side in sides)
        if node.type == "conditional_expression":
            parts = [node.child_by_field_name(name) for name in ("consequence", "alternative")]
            return any(part is not None and self._stays_wide(part, types) for part in parts)
        if node.type == "unary_expression":
            inner = node.child_by_field_name("argument")
            return inner is not None and self._stays_wide(inner, types)
        if node.type == "identifier":
            own = flow_of(self.unit, self.kernel).resolve(node) in self.places.declared
            return not own and is_wide(types.of(node))
        if node.type == "cast_expression" or (node.type == "call_expression" and self._cast_value(node)):
            return False
        return is_wide(types.of(node))

    def of(self, node: Node, depth: int = 0) -> Polynomial:
        """Return what an integer expression is at most; it is never negative.

        Raises:
            SkillRefused: That can't be told.
        """
        node = strip_parentheses(node)
        constants = local_constants(self.kernel, self.unit.syntax)
        value = self.unit.constants.value(node, constants)
        if value is not None and value >= 0:
            return Polynomial.constant(value)
        if depth < _DEPTH:
            if node.type == "identifier":
                declared = flow_of(self.unit, self.kernel).resolve(node)
                if declared is not None:
                    return self.of_declared(declared, depth + 1)
            if node.type == "field_expression":
                return self._builtin(node)
            if node.type == "binary_expression":
                return self._binary(node, depth + 1)
            if node.type == "cast_expression":
                return self._cast(node, depth + 1)
            if node.type == "call_expression" and self._cast_value(node) is not None:
                return self.of(self._cast_value(node) or node, depth + 1)
        raise self._refusal(node)

    def _refusal(self, place: Node | Span) -> SkillRefused:
        text = " ".join(self.unit.text_of(place).split())
        return SkillRefused(f"line {self.unit.line_of(place)}: how large {text} can get can't be told")

    def _cast(self, node: Node, depth: int) -> Polynomial:
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        text = plain_type(self.unit.text_of(kind)) if kind is not None else ""
        if value is None or not (is_wide(text) or text in ("int", "unsigned")):
            raise self._refusal(node)
        return self.of(value, depth)

    def _cast_value(self, call: Node) -> Node | None:
        listed, name = call.child_by_field_name("arguments"), called_name(self.unit, call)
        target = name.removeprefix("static_cast<").removesuffix(">").strip()
        whole = is_wide(plain_type(target)) or plain_type(target) in ("int", "unsigned")
        inner = named(listed) if listed is not None else []
        return inner[0] if whole and len(inner) == 1 and self.unit.function(target) is None else None

    def _builtin(self, node: Node) -> Polynomial:
        base, _, axis = "".join(self.unit.text_of(node).split()).partition(".")
        launch = self.entry.launch
        shape = launch.block if base in ("threadIdx", "blockDim") else launch.grid
        if base not in _BUILTINS or axis not in ("x", "y", "z") or shape.components is None:
            raise self._refusal(node)
        part = shape.components["xyz".index(axis)]
        if part.value is not None and part.value >= 0:
            return Polynomial.constant(part.value)
        text = f"{shape.variable.name}.{axis}" if shape.variable is not None else part.text
        return Polynomial.of(Atom.named(text))

    def _binary(self, node: Node, depth: int) -> Polynomial:
        left_node, right_node = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        if left_node is None or right_node is None or operator not in ("+", "*", "/", "%", ">>", "<<", "&"):
            raise self._refusal(node)
        left, right = self.of(left_node, depth), self.of(right_node, depth)
        if operator == "+":
            return left + right
        if operator == "*":
            return left * right
        if operator == "<<":
            shift = right.value
            if shift is None or shift > 30:
                raise self._refusal(node)
            return left * Polynomial.constant(1 << shift)
        return right if operator == "%" and right.value is not None else left

    def of_declared(self, declared: Declared, depth: int = 0) -> Polynomial:
        """Return what a parameter or variable is at most.

        Raises:
            SkillRefused: That can't be told.
        """
        flow = flow_of(self.unit, self.kernel)
        changes = [write for write in flow.writes_to(declared) if write.operator != "init"]
        if isinstance(declared, ParameterDef):
            kind = plain_type(declared.pointee_type)
            position = self.kernel.parameters.index(declared)
            given = self.entry.launch.arguments
            known = kind in ("int", "unsigned") or is_wide(kind)
            if declared.pointer_depth or changes or position >= len(given) or not known:
                raise self._refusal(declared.name_span)
            self.arguments[declared.name] = given[position].node
            return Polynomial.of(Atom.named(f"param {declared.name}"))
        if not changes and declared.initialiser is not None and not declared.pointer_depth:
            return self.of(declared.initialiser, depth + 1)
        return self._loop_variable(declared, depth)

    def _loop_variable(self, declared: VariableDef, depth: int) -> Polynomial:
        for loop in find_loops(self.unit, self.kernel):
            own = loop.declared is declared and loop.span.contains(declared.name_span)
            if own and loop.is_counted and loop.step_operator == "+" and loop.comparison in ("<", "<="):
                if loop.start is None or loop.bound is None:
                    break
                step = self.of(loop.step, depth + 1) if loop.step is not None else Polynomial.constant(1)
                return self.of(loop.start, depth + 1) + self.of(loop.bound, depth + 1) + step
        raise self._refusal(declared.name_span)


def _covers(larger: Polynomial, smaller: Polynomial) -> bool:
    """Whether one bound is at least another, term by term."""
    known = dict(larger.terms)
    return all(known.get(monomial, 0) >= factor for monomial, factor in smaller.terms)


def hides_widths(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> str:
    """Return the name of a macro with arguments that the kernel uses; empty where there is none."""
    for macro in macros_in(unit, words_in(unit, kernel.span), context):
        if macro.is_function_like:
            return macro.name
    return ""
