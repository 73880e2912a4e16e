"""Half-precision work of one element a thread, written for two neighbouring elements in one register."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.approximations import is_defined
from kernelskill.skills.element_loop import read_elements
from kernelskill.skills.expression_types import ExpressionTypes, called_name
from kernelskill.skills.global_index import Guard, read_guarded
from kernelskill.skills.loop_statements import expression_of
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class HalfType:
    """A 16-bit floating type and what two of them are called."""

    pair: str
    broadcast: str
    """Makes a pair of one value."""
    makers: frozenset[str]
    """Calls that give one value of the type."""


_HALF = HalfType(
    "__half2",
    "__half2half2",
    frozenset(
        {"__float2half", "__float2half_rn", "__int2half_rn", "__double2half", "__half", "half", "hexp"}
    ),
)
_BFLOAT = HalfType(
    "__nv_bfloat162",
    "__bfloat162bfloat162",
    frozenset(
        {"__float2bfloat16", "__float2bfloat16_rn", "__double2bfloat16", "__nv_bfloat16", "nv_bfloat16"}
    ),
)
TYPES = {"__half": _HALF, "half": _HALF, "__nv_bfloat16": _BFLOAT, "nv_bfloat16": _BFLOAT}
_FUNCTIONS = {
    "__hadd": "__hadd2",
    "__hsub": "__hsub2",
    "__hmul": "__hmul2",
    "__hfma": "__hfma2",
    "__hdiv": "__h2div",
    "__hneg": "__hneg2",
    "__habs": "__habs2",
    "__hmax": "__hmax2",
    "__hmin": "__hmin2",
    "hexp": "h2exp",
    "hexp2": "h2exp2",
    "hlog": "h2log",
    "hlog2": "h2log2",
    "hsqrt": "h2sqrt",
    "hrsqrt": "h2rsqrt",
    "hrcp": "h2rcp",
    "hfloor": "h2floor",
    "hceil": "h2ceil",
    "htrunc": "h2trunc",
    "hrint": "h2rint",
}
"""Function of one value to that of two, lane by lane."""
_OPERATORS = frozenset({"+", "-", "*", "/"})


@dataclass(frozen=True)
class PackedBody:
    """What a thread does with two elements."""

    guard: Guard
    kind: HalfType
    lines: tuple[str, ...]
    pointers: tuple[str, ...]
    """Pointers whose elements are taken in pairs."""


@dataclass
class _Writer:
    """Writes the statements of one kernel for pairs."""

    unit: SourceUnit
    kernel: KernelDef
    guard: Guard
    pair: str
    context: SkillContext
    kind: HalfType | None = None
    packed: set[int] = field(default_factory=set)
    pointers: dict[str, None] = field(default_factory=dict)
    stores: int = 0

    def statement(self, node: Node) -> list[str]:
        """Return the lines for one statement.

        Raises:
            SkillRefused: It can't be written for pairs.
        """
        if node.type == "declaration":
            return self._declaration(node)
        expression = expression_of(node)
        if expression is None or expression.type != "assignment_expression":
            raise SkillRefused(f"line {self.unit.line_of(node)} does more than half arithmetic")
        left, right = expression.child_by_field_name("left"), expression.child_by_field_name("right")
        operator = self.unit.operator(expression)
        assert left is not None
        assert right is not None
        if operator not in ("=", "+=", "-=", "*=", "/="):
            raise SkillRefused(f"line {self.unit.line_of(node)} does more than half arithmetic")
        element = self._element(left)
        if element:
            self.stores += 1
            return [f"{element} {operator} {self._as_pair(right)};"]
        declared = self._declared(left)
        if declared is None or id(declared) not in self.packed:
            raise SkillRefused(f"line {self.unit.line_of(node)} changes {clean_text(self.unit, left)!r}")
        return [f"{declared.name} {operator} {self._as_pair(right)};"]

    def _declaration(self, node: Node) -> list[str]:
        own = [variable for variable in self.kernel.locals if variable.declaration == node]
        lines = []
        for variable in own:
            value = variable.initialiser
            plain = not variable.pointer_depth and not variable.dimensions and not variable.is_reference
            if value is None or not plain or value.type == "initializer_list":
                raise SkillRefused(
                    f"line {self.unit.line_of(node)} declares {variable.name!r} without a value"
                )
            lines.append(self._variable(variable, value))
        return lines

    def _variable(self, variable: VariableDef, value: Node) -> str:
        const = "const " if variable.is_const else ""
        kind = TYPES.get(variable.base_type)
        if self._is_uniform(value):
            if kind is not None and not flow_of(self.unit, self.kernel).is_constant(variable):
                self.packed.add(id(variable))
                return f"{const}{self._of(kind).pair} {variable.name} = {self._as_pair(value)};"
            text = clean_text(self.unit, value)
            return f"{const}{variable.base_type} {variable.name} = {text};"
        if kind is None and variable.base_type != "auto":
            raise SkillRefused(f"{variable.name!r} of type {variable.base_type} depends on the element")
        text = self._as_pair(value)
        self.packed.add(id(variable))
        assert self.kind is not None
        return f"{const}{self.kind.pair} {variable.name} = {text};"

    def _of(self, kind: HalfType) -> HalfType:
        if self.kind not in (None, kind):
            raise SkillRefused("it mixes two 16-bit types")
        self.kind = kind
        return kind

    def _as_pair(self, node: Node) -> str:
        """Return an expression as a pair; one value stands for both elements."""
        text = self._packed(node)
        if text is not None:
            return text
        kind = self._uniform_kind(node)
        if kind is None:
            raise SkillRefused(f"{clean_text(self.unit, node)!r} is not of a 16-bit type")
        return f"{self._of(kind).broadcast}({clean_text(self.unit, node)})"

    def _packed(self, node: Node) -> str | None:
        """Return an expression that differs between elements as a pair; None where it doesn't differ."""
        if node.type == "parenthesized_expression" and len(named(node)) == 1:
            inner = self._packed(named(node)[0])
            return f"({inner})" if inner is not None else None
        element = self._element(node)
        if element:
            return element
        declared = self._declared(node)
        if declared is not None and id(declared) in self.packed:
            return declared.name
        if self._is_uniform(node):
            return None
        operator = self.unit.operator(node)
        if node.type == "binary_expression" and operator in _OPERATORS:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            assert left is not None
            assert right is not None
            return f"{self._as_pair(left)} {operator} {self._as_pair(right)}"
        argument = node.child_by_field_name("argument")
        if node.type == "unary_expression" and operator == "-" and argument is not None:
            return f"-{self._as_pair(argument)}"
        return self._call(node)

    def _call(self, node: Node) -> str:
        listed = node.child_by_field_name("arguments")
        name = called_name(self.unit, node) if node.type == "call_expression" else ""
        if listed is None or name not in _FUNCTIONS or is_defined(self.unit, name, self.context):
            line, text = self.unit.line_of(node), clean_text(self.unit, node)
            raise SkillRefused(f"line {line}: {text!r} has no form for two halves")
        return f"{_FUNCTIONS[name]}({', '.join(self._as_pair(argument) for argument in named(listed))})"

    def _element(self, node: Node) -> str:
        """Return the pair for `p[i]`; empty for another expression."""
        argument, listed = node.child_by_field_name("argument"), node.child_by_field_name("indices")
        if node.type != "subscript_expression" or argument is None or listed is None:
            return ""
        index = named(listed)
        pointer = self._declared(argument)
        if len(index) != 1 or self._declared(index[0]) is not self.guard.variable:
            return ""
        if not isinstance(pointer, ParameterDef) or pointer.pointer_depth != 1:
            raise SkillRefused(f"{clean_text(self.unit, node)} is no element of a parameter")
        kind = TYPES.get(pointer.pointee_type)
        if kind is None or flow_of(self.unit, self.kernel).writes_to(pointer):
            raise SkillRefused(f"{clean_text(self.unit, node)} is not of a 16-bit type")
        self.pointers[pointer.name] = None
        const = "const " if pointer.is_const else ""
        return f"(({const}{self._of(kind).pair}*){pointer.name})[{self.pair}]"

    def _declared(self, node: Node) -> Declared | None:
        node = strip_parentheses(node)
        return flow_of(self.unit, self.kernel).resolve(node) if node.type == "identifier" else None

    def _is_uniform(self, node: Node) -> bool:
        """Whether an expression is the same for both elements: parameters, constants and what is made of them."""
        for entry in walk(node):
            if entry.type in ("subscript_expression", "pointer_expression", "lambda_expression"):
                return False
            if entry.type in ("assignment_expression", "update_expression"):
                raise SkillRefused(f"line {self.unit.line_of(node)} changes a variable inside an expression")
            declared = self._declared(entry) if entry.type == "identifier" else None
            if declared is self.guard.variable or (declared is not None and id(declared) in self.packed):
                return False
            if entry.type == "identifier" and self.unit.text_of(entry) in ("threadIdx", "blockIdx"):
                return False
        return True

    def _uniform_kind(self, node: Node) -> HalfType | None:
        node = strip_parentheses(node)
        kind = ExpressionTypes(self.unit, self.kernel).of(node)
        if kind is not None:
            return TYPES.get(kind)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type == "binary_expression" and self.unit.operator(node) in _OPERATORS and left and right:
            sides = self._uniform_kind(left), self._uniform_kind(right)
            return sides[0] if sides[0] is sides[1] else None
        name = called_name(self.unit, node) if node.type == "call_expression" else ""
        return next((entry for entry in (_HALF, _BFLOAT) if name in entry.makers), None)


def read_packed(unit: SourceUnit, kernel: KernelDef, pair: str, context: SkillContext) -> PackedBody:
    """Return what a thread does with two neighbouring elements.

    Args:
        unit: The file.
        kernel: The kernel.
        pair: Name for the index of the pair.
        context: The task.

    Raises:
        SkillRefused: The kernel is no elementwise one in a 16-bit type, or does something that has no such form.
    """
    _, _, guard = read_elements(unit, kernel, context)
    guarded = read_guarded(unit, kernel)
    others = [
        entry
        for entry in guarded.prologue
        if entry.type == "declaration" and entry != guard.variable.declaration
    ]
    if others or len(guard.variable.declaration.children_by_field_name("declarator")) != 1:
        raise SkillRefused("it declares more than its index before it tests it")
    writer = _Writer(unit, kernel, guard, pair, context)
    lines = [line for statement in guarded.work for line in writer.statement(statement)]
    if writer.kind is None or not writer.stores:
        raise SkillRefused("it stores no element of a 16-bit type")
    return PackedBody(guard, writer.kind, tuple(lines), tuple(writer.pointers))
