"""Parts of the Markdown report that say where the time goes and whether skills foresaw what they did."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.report import figures
from kernelskill.report.predictions import PredictionRow
from kernelskill.report.tables import table
from kernelskill.report.view import RunView


def hot_kernels(view: RunView) -> str:
    """Return what could be won in each kernel, where a launcher has several."""
    parts = []
    for title, diagnosis in (("original", view.before), ("result", view.after)):
        if diagnosis is None or len(diagnosis.hot) < 2 or (title == "result" and view.after is view.before):
            continue
        rows = [
            (
                hot.kernel,
                str(hot.launches),
                figures.percent(hot.time_share),
                f"{'' if hot.known else 'at most '}{figures.percent(hot.winnable)}",
                f"{hot.speedup:.2f}x",
                f"{hot.speedup_together:.2f}x",
            )
            for hot in diagnosis.hot
        ]
        header = ("kernel", "launches", "of the time", "could be won in it", "alone", "with the hotter ones")
        parts.append(f"**{title}**\n\n" + table(header, rows))
        if view.best.candidate.digest == view.original.candidate.digest:
            break
    return "## Where the time goes\n\n" + "\n\n".join(parts) if parts else ""


def predictions(view: RunView) -> str:
    """Return how often what skills predict of metrics held, metric by metric."""
    return "## What skills predicted\n\n" + prediction_table(view.predictions) if view.predictions else ""


def prediction_table(found: Sequence[PredictionRow]) -> str:
    """Return a row for each prediction of each skill."""
    rows = [
        (
            row.skill,
            row.metric,
            row.direction,
            f"{row.held} of {row.observed}" if row.observed else "not observed",
            "-" if row.before is None or row.after is None else f"{row.before:.4g} -> {row.after:.4g}",
        )
        for row in found
    ]
    return table(("skill", "metric", "predicted", "held", "the first time"), rows)


def ceilings(view: RunView) -> str:
    """Return where the ceilings of the rooflines come from."""
    kinds = {row.roof_original.ceilings for row in view.cases if row.roof_original is not None}
    return ", ".join(sorted(kinds))
