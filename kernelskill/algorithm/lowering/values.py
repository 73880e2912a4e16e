"""Values at one point: shared sub-expressions get names, the user's own where there are any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from kernelskill.algorithm.lowering.records import records_of
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import cuda_name, is_float, is_integer

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
        self._read_records()
        self._read_first()
        texts = tuple(show(root, self._leaf) for root in self._roots)
        return Values(tuple(self._declarations), texts)

    def _certain_reads(self, nodes: Iterable[Expression]) -> list[Load]:
        return [node for node in nodes if isinstance(node, Load) and node in self._certain]

    def _read_records(self) -> None:
        """Read vectors whole of which several fields are needed in any case."""
        reads = self._certain_reads(node for root in self._roots for node in self._printed(root))
        for record, fields in records_of(self._context, dict.fromkeys(reads)).items():
            name = self._context.names.fresh(f"{record.buffer}_value")
            self._declarations.append(f"const {record.layout.name} {name} = {record.text(self._context)};")
            self._named.update({read: f"{name}.{field}" for read, field in fields.items()})

    def _read_first(self) -> None:
        """Name what is read from memory in any case, where slow operations would keep later reads waiting."""
        nodes = [node for root in self._roots for node in self._printed(root)]
        reads = self._certain_reads(nodes)
        if len(reads) < 2 or not any(is_slow(node) for node in nodes):
            return
        for read in sorted(dict.fromkeys(reads), key=lambda node: node.size):
            if self._leaf(read) is None:
                wrapped = (n for n in self._hints if isinstance(n, Cast | Call) and n.children == (read,))
                held = next((node for node in wrapped if node in self._counts), read)
                self._declare(held, self._hints.get(held) or f"{read.buffer}_value")

    def _printed(self, node: Expression) -> Iterator[Expression]:
        """Yield what the text of a value will hold."""
        if self._context.leaf(node) is not None or isinstance(node, Reduce | Fold):
            return
        yield node
        for child in node.children:
            yield from self._printed(child)

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
        return self._declare(node, self._hints.get(node, "") or "t", known)

    def _declare(self, node: Expression, base: str, known: str | None = None) -> str:
        text = known if known is not None else show(node, lambda n: None if n is node else self._leaf(n))
        name = self._context.names.fresh(base)
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


def is_slow(node: Expression) -> bool:
    """Whether a compiler makes branches or long sequences of an operation: loads behind it wait."""
    return (isinstance(node, Call) or (isinstance(node, Binary) and node.op in ("/", "%"))) and is_float(
        node.type
    )


def _operations(node: Expression) -> int:
    own = isinstance(node, Binary | Unary | Call | Select | Cast | Load)
    return int(own) + sum(_operations(child) for child in node.children)
