"""Values at one point: shared sub-expressions get names, the user's own where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Cast,
    Expression,
    Fold,
    Load,
    Num,
    Poly,
    Reduce,
    Select,
    Sym,
    Unary,
    loads,
)
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import cuda_name, is_integer

_SMALL = 3
"""Operations from which a value used twice gets a name."""


@dataclass(frozen=True)
class Values:
    """Declarations of shared values, and the texts of what was asked for."""

    declarations: tuple[str, ...]
    texts: tuple[str, ...]


def print_values(context: Context, roots: Sequence[Expression]) -> Values:
    """Return the texts of values; what occurs twice and costs something is computed once.

    A value made only under conditions stays there when it reads memory.
    """
    return _Printer(context, roots).run()


class _Printer:
    def __init__(self, context: Context, roots: Sequence[Expression]) -> None:
        self._context, self._roots = context, roots
        self._counts: dict[Expression, int] = {}
        self._named: dict[Expression, str] = {}
        self._declarations: list[str] = []
        self._hints = dict(context.algorithm.names)
        self._certain = frozenset().union(*(certain_loads(root) for root in roots))

    def run(self) -> Values:
        for root in self._roots:
            self._count(root)
        texts = tuple(show(root, self._leaf) for root in self._roots)
        return Values(tuple(self._declarations), texts)

    def _count(self, node: Expression) -> None:
        if self._context.leaf(node) is not None and not isinstance(node, Load):
            return
        self._counts[node] = self._counts.get(node, 0) + 1
        if self._counts[node] == 1:
            for child in node.children:
                self._count(child)

    def _leaf(self, node: Expression) -> str | None:
        known = self._named.get(node) or self._context.leaf(node)
        if known is not None and not (isinstance(node, Load) and self._is_shared(node)):
            return known
        if node in self._named:
            return self._named[node]
        if not self._is_shared(node):
            return known
        text = known if known is not None else show(node, lambda n: None if n is node else self._leaf(n))
        hint = self._hints.get(node, "")
        name = self._context.names.fresh(hint or "t")
        kind = self._context.index_type if isinstance(node, Poly) else cuda_name(node.type)
        self._declarations.append(f"const {kind} {name} = {text};")
        self._named[node] = name
        return name

    def _is_shared(self, node: Expression) -> bool:
        if self._counts.get(node, 0) < 2 or isinstance(node, Sym | Num | Reduce | Fold):
            return False
        if node in self._context.values:
            return False
        if node.type == "bool" or any(load not in self._certain for load in loads(node)):
            return False
        if isinstance(node, Load | Call):
            return True
        if is_integer(node.type) and isinstance(node, Poly) and not loads(node):
            return False
        return _operations(node) >= (1 if node in self._hints else _SMALL)


def _operations(node: Expression) -> int:
    own = isinstance(node, Binary | Unary | Call | Select | Cast | Load)
    return int(own) + sum(_operations(child) for child in node.children)
