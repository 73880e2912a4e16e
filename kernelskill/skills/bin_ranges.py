"""How many bins a data-dependent index may take: proven by types and arithmetic, or suggested by its tests."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.expression_types import ExpressionTypes, called_name
from kernelskill.skills.value_ranges import Range, ValueRanges
from kernelskill.source.definitions import KernelDef
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_TYPES = {
    "unsigned char": (0, 255),
    "char": (-128, 127),
    "signed char": (-128, 127),
    "unsigned short": (0, 65535),
    "short": (-32768, 32767),
    "bool": (0, 1),
}
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True)
class DataRanges(ValueRanges):
    """Ranges that also take a loaded value of a narrow type for what its type can hold."""

    def of(self, node: Node, depth: int = 0) -> Range | None:
        """Return the range of an expression; None where it can't be told."""
        found = super().of(node, depth)
        if found is not None:
            return found
        inner = strip_parentheses(node)
        name = called_name(self.unit, inner) if inner.type == "call_expression" else ""
        if name in ("min", "max") and self.unit.function(name) is None and self.unit.macro(name) is None:
            return self._extreme(inner, name, depth + 1)
        kind = ExpressionTypes(self.unit, self.kernel, self.bindings).of(inner)
        return _TYPES.get(kind or "")

    def _extreme(self, call: Node, name: str, depth: int) -> Range | None:
        listed = call.child_by_field_name("arguments")
        found = [self.of(argument, depth) for argument in named(listed)] if listed is not None else []
        known = [one for one in found if one is not None]
        wraps = any(self._is_unsigned(one) for one in (named(listed) if listed is not None else []))
        if len(found) != 2 or not known or (wraps and any(low < 0 for low, _ in known)):
            return None
        if len(known) == 2:
            pick = min if name == "min" else max
            return (pick(known[0][0], known[1][0]), pick(known[0][1], known[1][1]))
        only = known[0]
        largest = (1 << 31) - 1
        return (-largest, only[1]) if name == "min" else (only[0], largest)


@dataclass(frozen=True)
class BinCount:
    """How many bins there are."""

    count: int | None
    """None where only a run-time value tells."""
    is_proven: bool
    """Whether no index can be outside."""


def read_bin_count(unit: SourceUnit, kernel: KernelDef, index: Node, ranges: DataRanges) -> BinCount | None:
    """Return the number of bins that an index may name; None where nothing bounds it."""
    found = ranges.of(index)
    if found is not None and found[0] >= 0 and found[1] < 1 << 20:
        return BinCount(found[1] + 1, True)
    if found is not None and 0 < found[1] < 1 << 16:
        return BinCount(found[1] + 1, False)
    return _tested(unit, kernel, index, ranges)


def _tested(unit: SourceUnit, kernel: KernelDef, index: Node, ranges: DataRanges) -> BinCount | None:
    """Return what the tests of an index variable in the kernel suggest."""
    inner = strip_parentheses(index)
    flow = flow_of(unit, kernel)
    declared = flow.resolve(inner) if inner.type == "identifier" else None
    if declared is None or kernel.body is None:
        return None
    sizes: list[int] = []
    is_tested = False
    for node in walk(kernel.body):
        if node.type != "binary_expression" or unit.operator(node) not in _COMPARISONS:
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sides = [strip_parentheses(side) for side in (left, right) if side is not None]
        own = [side for side in sides if side.type == "identifier" and flow.resolve(side) is declared]
        others = [side for side in sides if side not in own]
        if len(own) == 1 and len(others) == 1:
            value = ranges.constant(others[0])
            is_tested = is_tested or value is None
            if value is not None and value > 1:
                operator = unit.operator(node)
                below = operator in ("<", ">=") if own[0] == sides[0] else operator in (">", "<=")
                sizes.append(value if below else value + 1)
    if sizes:
        return BinCount(max(sizes), False)
    return BinCount(None, False) if is_tested else None
