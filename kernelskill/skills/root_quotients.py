"""Quotients whose divisor is a product of one value and its square root."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_integer, is_pure
from kernelskill.skills.literal_values import literal_value
from kernelskill.skills.never_negative import is_never_negative
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.skills.value_numbers import ValueNumbers
from kernelskill.source.declarations import Storage, VariableDef
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses, walk

FLOATS = ("float", "double")
_ROOTS = ("sqrt", "sqrtf")
_LARGEST_POWER = 9
_DEPTH = 8


@dataclass(frozen=True)
class Quotient:
    """One `y / d` or `y /= d`, where d is a power of a square root, perhaps times numbers."""

    node: Node
    left: Node
    operator: Node
    right: Node
    kind: str
    """`float` or `double`."""
    value: Node
    """The value under the root."""
    number: int
    """Its value number."""
    root: Node
    """The call that takes the root: in the divisor, or in the definition of a variable."""
    power: int
    """How often the inverse root goes into the quotient."""
    adds_zero: bool
    """Whether the value may be negative zero where the inverse root must be that of zero."""
    constants: tuple[Node, ...]
    via: tuple[VariableDef, ...]
    """The variables through which the divisor was read."""
    is_one: bool
    """Whether it is the inverse itself."""

    @property
    def is_compound(self) -> bool:
        return self.node.type == "assignment_expression"

    @property
    def is_direct(self) -> bool:
        """Whether the root is taken in the divisor itself."""
        return self.right.start_byte <= self.root.start_byte < self.right.end_byte


@dataclass(frozen=True)
class _Factor:
    """One factor of a divisor."""

    node: Node
    number: int
    """The number of its value; for a root, of the value under it."""
    is_root: bool = False


@dataclass(frozen=True)
class RootQuotients:
    """Reads the quotients of one function."""

    types: ExpressionTypes
    context: SkillContext
    numbers: ValueNumbers

    @staticmethod
    def of(types: ExpressionTypes, context: SkillContext) -> RootQuotients:
        """Return a reader for a function."""
        return RootQuotients(types, context, ValueNumbers(types))

    def read(self, node: Node) -> Quotient | None:
        """Return an expression as such a quotient; None where its divisor has no root.

        Raises:
            SkillRefused: It has one, but there is more in the divisor, or its sign would change.
        """
        unit = self.types.unit
        operator = next((child for child in node.children if child.type in ("/", "/=")), None)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if operator is None or left is None or right is None:
            return None
        kind = self.types.of(right)
        compound = node.type == "assignment_expression"
        if kind not in FLOATS or self.types.of(left if compound else node) != kind:
            return None
        roots = [factor for factor, _ in self._factors(right, right, kind, None) if factor.is_root]
        if not roots:
            return None
        where = f"line {unit.line_of(node)}: the divisor {clean_text(unit, right)!r}"
        if not is_pure(unit, right) or (compound and not is_pure(unit, left)):
            raise SkillRefused(f"{where} has side effects or is divided into something that has")
        for number in dict.fromkeys(root.number for root in roots):
            found = list(self._factors(right, right, kind, number))
            others = [f.node for f, _ in found if f.number != number]
            if all(self._is_number(other, node, left) for other in others):
                via = tuple(dict.fromkeys(name for _, names in found for name in names))
                factors = [factor for factor, _ in found if factor.number == number]
                return self._quotient((node, left, operator, right), kind, factors, others, via, where)
        raise SkillRefused(f"{where} has other factors than one value and its square root")

    def _quotient(
        self,
        parts: tuple[Node, Node, Node, Node],
        kind: str,
        factors: list[_Factor],
        constants: list[Node],
        via: tuple[VariableDef, ...],
        where: str,
    ) -> Quotient:
        roots = [factor for factor in factors if factor.is_root]
        values = len(factors) - len(roots)
        power = len(roots) + 2 * values
        if power > _LARGEST_POWER:
            raise SkillRefused(f"{where} is a higher power than is worth writing out")
        direct = [root for root in roots if parts[3].start_byte <= root.node.start_byte < parts[3].end_byte]
        root = (direct or roots)[0].node
        value = _argument(root)
        assert value is not None
        # Of negative zero, the divisor has the sign of all factors, the quotient that of the roots.
        adds_zero = values % 2 == 1 and not is_never_negative(self.types, value, self.context)
        if adds_zero and len(roots) % 2 == 0:
            raise SkillRefused(f"{where} may be negative zero")
        number, is_one = factors[0].number, self._is_one(parts[0], parts[1])
        return Quotient(*parts, kind, value, number, root, power, adds_zero, tuple(constants), via, is_one)

    def _is_one(self, node: Node, left: Node) -> bool:
        return node.type == "binary_expression" and literal_value(self.types.unit, left) == 1

    def _factors(
        self,
        node: Node,
        within: Node,
        kind: str,
        whole: int | None,
        depth: int = 0,
        via: tuple[VariableDef, ...] = (),
    ) -> Iterator[tuple[_Factor, tuple[VariableDef, ...]]]:
        """Yield the factors of a product with the variables through which they were reached.

        Args:
            node: The product.
            within: The whole expression that it is part of.
            kind: The type in which it multiplies.
            whole: Number of the value that is not taken apart.
            depth: How many variables were followed.
            via: Which ones.
        """
        node = strip_parentheses(node)
        number = self.numbers.of(node, within)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        argument = self._under_root(node, kind)
        if number == whole:
            yield _Factor(node, number), via
        elif argument is not None:
            yield _Factor(node, self.numbers.of(argument, within), is_root=True), via
        elif left is not None and right is not None and self._is_product(node, left, right, kind):
            yield from self._factors(left, within, kind, whole, depth, via)
            yield from self._factors(right, within, kind, whole, depth, via)
        elif (defined := self._definition(node, kind)) is not None and depth < _DEPTH:
            variable, value = defined
            yield from self._factors(value, value, kind, whole, depth + 1, (*via, variable))
        else:
            yield _Factor(node, number), via

    def _is_product(self, node: Node, left: Node, right: Node, kind: str) -> bool:
        if node.type != "binary_expression" or self.types.unit.operator(node) != "*":
            return False
        kinds = self.types.of(left), self.types.of(right)
        return kind in kinds and all(entry == kind or is_integer(entry) for entry in kinds)

    def _under_root(self, node: Node, kind: str) -> Node | None:
        """Return what a call takes the square root of; None where it is no such call in one type."""
        if node.type != "call_expression" or called_name(self.types.unit, node) not in _ROOTS:
            return None
        argument = _argument(node)
        if argument is None or self.types.of(node) != kind or self.types.of(argument) != kind:
            return None
        return argument

    def _definition(self, node: Node, kind: str) -> tuple[VariableDef, Node] | None:
        """Return a local variable and the product, root or other variable that it certainly holds."""
        if node.type != "identifier" or self.types.of(node) != kind:
            return None
        flow = flow_of(self.types.unit, self.types.function)
        declared = flow.resolve(node)
        if not isinstance(declared, VariableDef) or declared.storage is not Storage.LOCAL:
            return None
        write = flow.reaching(node, declared)
        value = strip_parentheses(write.value) if write is not None and write.value is not None else None
        static = "static" in self.types.unit.text_of(declared.declaration).split()
        if value is None or self.types.of(value) != kind or declared.is_reference or static:
            return None
        left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
        product = left is not None and right is not None and self._is_product(value, left, right, kind)
        follows = product or value.type in ("identifier", "number_literal")
        follows = follows or self._under_root(value, kind) is not None
        return (declared, value) if follows and is_pure(self.types.unit, value) else None

    def _is_number(self, factor: Node, node: Node, left: Node) -> bool:
        """Whether a factor is a plain number that the dividend can be divided by beforehand."""
        value = literal_value(self.types.unit, factor)
        divides = self.types.of(left) in FLOATS or self._is_one(node, left)
        return value is not None and divides and 2.0**-60 < abs(value) < 2.0**60


def _argument(call: Node) -> Node | None:
    listed = call.child_by_field_name("arguments")
    arguments = named(listed) if listed is not None else []
    return arguments[0] if len(arguments) == 1 else None


def quotients_in(body: Node) -> Iterator[Node]:
    """Yield the divisions below a node."""
    for node in walk(body):
        divides = any(child.type in ("/", "/=") for child in node.children)
        if divides and node.type in ("binary_expression", "assignment_expression"):
            yield node
