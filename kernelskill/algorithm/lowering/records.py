"""Records in memory: fields of one vector, such as a `float4`, that are read together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernelskill.algorithm.expression import Expression, Load, Poly
from kernelskill.algorithm.integers import poly, terms_of
from kernelskill.algorithm.lifting.types import VECTORS
from kernelskill.algorithm.lifting.values import Layout
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.types import WIDEST_BYTES, size_of


@dataclass(frozen=True)
class Record:
    """One vector in memory."""

    buffer: str
    layout: Layout
    place: Expression
    """Index in vectors."""

    def text(self, context: Context) -> str:
        """Return the text that reads it; a pointer to vectors is aligned to them, or the user's own code is wrong."""
        cast = f"reinterpret_cast<const {self.layout.name}*>({self.buffer})"
        return f"{cast}[{context.show(self.place)}]"


def records_of(context: Context, reads: Iterable[Load]) -> dict[Record, dict[Load, str]]:
    """Return the records of which several fields are read, each with the names of these fields."""
    found: dict[Record, dict[Load, str]] = {}
    for read in reads:
        layout = _vector(context, read.buffer)
        if layout is None or layout.kind != read.kind:
            continue
        width = len(layout.fields)
        terms = dict(terms_of(read.index))
        field = terms.get((), 0) % width
        terms[()] = terms.get((), 0) - field
        if any(factor % width for factor in terms.values()):
            continue
        kind = read.index.kind if isinstance(read.index, Poly) else read.index.type
        place = poly({monomial: factor // width for monomial, factor in terms.items() if factor}, kind)
        record = Record(read.buffer, layout, place)
        found.setdefault(record, {})[read] = layout.fields[field]
    return {record: fields for record, fields in found.items() if len(set(fields.values())) > 1}


def _vector(context: Context, buffer: str) -> Layout | None:
    """Return the vector type that a buffer was declared with, if one access moves it: larger ones are not aligned to their size."""
    view = next((p.view for p in context.algorithm.parameters if p.name == buffer), "")
    layout = VECTORS.get(view)
    if layout is None or len(layout.fields) == 3:
        return None
    return layout if size_of(layout.kind) * len(layout.fields) <= WIDEST_BYTES else None
