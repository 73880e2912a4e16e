"""Call the functions of the bases two and ten where `pow` or a quotient of logarithms stands for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import editable_functions, units_of
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_integer
from kernelskill.skills.float_flow import FloatFlow, FloatTypes
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.literal_values import literal_value
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, Span, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_FLOATS = ("float", "double")
_POWERS = ("pow", "powf")
_LOGARITHMS = ("log", "logf")
_BASES: dict[float, tuple[str, float]] = {
    2.0: ("exp2", 1.0),
    4.0: ("exp2", 2.0),
    16.0: ("exp2", 4.0),
    256.0: ("exp2", 8.0),
    0.5: ("exp2", -1.0),
    0.25: ("exp2", -2.0),
    10.0: ("exp10", 1.0),
}
"""The function for each base, and by what the exponent is multiplied, which rounds nothing."""
_NATURAL = {2.0: 0.693147180559945309, 10.0: 2.302585092994045684}
"""The natural logarithm of each base that has a logarithm of its own."""
_CONSTANTS = {"M_LN2": 2.0, "M_LN10": 10.0}
_TOLERANCE = {"float": 2.0**-23, "double": 2.0**-51}
_BARE = frozenset(
    {"identifier", "number_literal", "call_expression", "subscript_expression", "field_expression"}
)


@dataclass(frozen=True)
class _Call:
    """One call of `pow` or `log` with what it becomes."""

    node: Node
    """The call."""
    name: str
    exponent: Node | None
    """Of a power."""
    scale: float
    quotient: Node | None
    """The division by the logarithm of the base, which goes."""


@dataclass(frozen=True)
class _Reader:
    """Reads the calls of one function."""

    types: ExpressionTypes
    flow: FloatFlow

    @property
    def unit(self) -> SourceUnit:
        return self.types.unit

    def power(self, node: Node) -> _Call | None:
        """Return a call as a power of two or ten.

        Raises:
            SkillRefused: It is one, of an exponent of unknown type or of an integer.
        """
        name, listed = called_name(self.unit, node), node.child_by_field_name("arguments")
        arguments = named(listed) if listed is not None else []
        if name not in _POWERS or len(arguments) != 2:
            return None
        base = literal_value(self.unit, arguments[0])
        if base not in _BASES or literal_value(self.unit, arguments[1]) is not None:
            return None
        kind, where = self.types.of(arguments[1]), f"line {self.unit.line_of(node)}: the exponent of {name}"
        if is_integer(kind):
            raise SkillRefused(f"{where} is an integer: the power may be meant to be exact")
        if kind not in _FLOATS:
            raise SkillRefused(f"{where} has no known type")
        single = name == "powf" or self.types.of(node) == "float"
        single = single or (kind == "float" and self.flow.accepts(node))
        function, scale = _BASES[base]
        return _Call(node, f"{function}{'f' if single else ''}", arguments[1], scale, None)

    def quotient(self, node: Node) -> _Call | None:
        """Return a division as a logarithm to the base two or ten."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if (
            node.type != "binary_expression"
            or self.unit.operator(node) != "/"
            or left is None
            or right is None
        ):
            return None
        call = self._logarithm(left)
        kind = self.types.of(call)
        if call is None or kind not in _FLOATS or self.types.of(left) != kind:
            return None
        base = self._base(right, kind)
        fits = self.types.of(right) == kind or kind == "double" or self.flow.accepts(node)
        if base is None or not fits:
            return None
        return _Call(call, f"log{base:.0f}{'f' if kind == 'float' else ''}", None, 1.0, node)

    def _logarithm(self, node: Node) -> Node | None:
        """Return the logarithm that is a factor of a product."""
        node = strip_parentheses(node)
        if node.type == "call_expression":
            argument = _argument(node)
            known = argument is not None and literal_value(self.unit, argument) is None
            return node if known and called_name(self.unit, node) in _LOGARITHMS else None
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node) if node.type == "binary_expression" else ""
        if operator not in ("*", "/") or left is None or right is None:
            return None
        found = self._logarithm(right) if operator == "*" else None
        return found or self._logarithm(left)

    def _base(self, node: Node, kind: str) -> float | None:
        """Return the base whose natural logarithm an expression is."""
        node = strip_parentheses(node)
        text = self.unit.text_of(node)
        if text in _CONSTANTS and self.unit.macro(text) is None:
            return _CONSTANTS[text]
        argument = _argument(node) if node.type == "call_expression" else None
        if argument is not None and called_name(self.unit, node) in _LOGARITHMS:
            value = literal_value(self.unit, argument)
            return value if value in _NATURAL else None
        value = literal_value(self.unit, node)
        close = [b for b, ln in _NATURAL.items() if value and abs(value / ln - 1) < _TOLERANCE[kind]]
        return close[0] if close else None


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the calls of a kernel, and of the device functions that it reaches, together."""
    refusals: list[str] = []
    count = len(_calls(unit, kernel, context, refusals))
    if count == 0:
        raise SkillRefused(refusals[0] if refusals else "it takes no power of, or logarithm to, two or ten")
    reason = (
        f"{count} power{'s' if count > 1 else ''} of, or logarithm{'s' if count > 1 else ''} to, two or ten"
    )
    return [Site(key=f"{kernel.name}/bases", kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the calls."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    edits = EditSet(unit)
    for call in _calls(unit, kernel, context, []):
        if call.exponent is not None:
            edits.replace(call.node, f"{call.name}({_scaled(unit, call)})")
            continue
        function = call.node.child_by_field_name("function")
        left = call.quotient.child_by_field_name("left") if call.quotient is not None else None
        assert function is not None
        assert call.quotient is not None
        assert left is not None
        edits.replace(function, call.name)
        edits.delete(Span(left.end_byte, call.quotient.end_byte))
    return Rewrite(edits=edits.edits)


def _scaled(unit: SourceUnit, call: _Call) -> str:
    assert call.exponent is not None
    text = unit.text_of(call.exponent)
    if call.scale == 1:
        return text
    text = text if call.exponent.type in _BARE else f"({text})"
    factor = f"{call.scale:.1f}{'f' if call.name.endswith('f') else ''}"
    return f"-{text}" if call.scale == -1 else f"{factor} * {text}"


def _calls(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Call]:
    names = [f"{name}{end}" for name in ("pow", "log", "exp2", "exp10", "log2", "log10") for end in ("", "f")]
    if any(u.function(name) or u.macro(name) for u in units_of(unit, context) for name in names):
        raise SkillRefused("a power or logarithm is defined in the source")
    found: list[_Call] = []
    for function in editable_functions(unit, kernel, context):
        bindings = template_bindings(unit, kernel, context) if function is kernel else {}
        types, wide = ExpressionTypes(unit, function, bindings), FloatTypes(unit, function, bindings)
        found += _read(_Reader(types, FloatFlow(wide, exact=False)), refusals)
    # Inner powers first: an outer one can be asked for again afterwards.
    spans = [span_of(call.quotient or call.node) for call in found]
    return [
        call
        for call in found
        if not any(span_of(call.node).contains(span) and span != span_of(call.node) for span in spans)
    ]


def _read(reader: _Reader, refusals: list[str]) -> Iterator[_Call]:
    body = reader.types.function.body
    for node in walk(body) if body is not None else ():
        if reader.unit.is_locked(node):
            continue
        try:
            call = reader.power(node) if node.type == "call_expression" else reader.quotient(node)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        if call is not None:
            yield call


def _argument(call: Node) -> Node | None:
    listed = call.child_by_field_name("arguments")
    arguments = named(listed) if listed is not None else []
    return arguments[0] if len(arguments) == 1 else None
