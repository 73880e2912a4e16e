"""Turn a kernel's raw metrics into the named figures of `metrics.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from kernelskill.errors import HarnessError
from kernelskill.profiling.expression import Expression
from kernelskill.schema.base import Record
from kernelskill.schema.profile import Metric

_FILE = Path(__file__).with_name("metrics.toml")


class FigureDefinition(Record):
    """One table of `metrics.toml`."""

    name: str
    metric: tuple[str, ...] = ()
    formula: tuple[str, ...] = ()
    traced: float | None = None
    scale: float = 1.0
    unit: str = ""
    adds: bool = False
    """Whether the figures of several kernels make one by addition."""


@lru_cache(maxsize=1)
def definitions() -> dict[str, FigureDefinition]:
    """Return all figures by name.

    Raises:
        HarnessError: The shipped file is damaged.
    """
    try:
        tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
        return {name: FigureDefinition(name=name, **table) for name, table in tables.items()}
    except (OSError, ValueError) as error:
        raise HarnessError(f"{_FILE.name} cannot be read: {error}", remedy="reinstall kernelskill") from error


def figures_of(metrics: Mapping[str, float], *, traced: bool = False) -> dict[str, float]:
    """Return every figure that the metrics allow.

    Args:
        metrics: Metric name to value.
        traced: Whether they are a trace's, in which what did not occur is absent.
    """
    known: dict[str, float] = {}
    table = definitions()
    for name, definition in table.items():
        source = _source(definition, metrics)
        if source is not None:
            known[name] = metrics[source] * definition.scale
        elif traced and definition.traced is not None and not definition.formula:
            known[name] = definition.traced
    pending = {name: _formulas()[name] for name in table if name not in known and table[name].formula}
    while pending:
        found = {
            name: value
            for name, formulas in pending.items()
            if (value := _first(formulas, known, pending)) is not None
        }
        if not found:
            break
        known |= found
        pending = {name: formulas for name, formulas in pending.items() if name not in found}
    return known


def metric_of(name: str, figures: Mapping[str, float], metrics: Mapping[str, float]) -> Metric:
    """Return a known figure with its unit; one that is a single metric keeps the name of that metric."""
    definition = definitions()[name]
    source = _source(definition, metrics)
    shown = source if source is not None and definition.scale == 1.0 else name
    return Metric(name=shown, value=figures[name], unit=definition.unit)


def _source(definition: FigureDefinition, metrics: Mapping[str, float]) -> str | None:
    return next((metric for metric in definition.metric if metric in metrics), None)


@lru_cache(maxsize=1)
def _formulas() -> dict[str, tuple[Expression, ...]]:
    return {
        name: tuple(Expression(text) for text in definition.formula)
        for name, definition in definitions().items()
    }


def _first(
    formulas: tuple[Expression, ...], known: Mapping[str, float], pending: Mapping[str, object]
) -> float | None:
    for formula in formulas:
        if formula.names & pending.keys():
            return None  # a better alternative may still become known
        value = formula.value(known)
        if value is not None:
            return value
    return None
