"""`kernelskill report --pool`: how often what skills predict held, counter by counter, over all runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from kernelskill.resources import data_dir, data_folder

if TYPE_CHECKING:
    from kernelskill.report.predictions import PredictionRow
    from kernelskill.schema.experience import Foretold

_KINDS = ("measured", "estimated")


def show(*, as_json: bool) -> None:
    """Print a row for each prediction of each skill, measured and estimated ones apart.

    Raises:
        ArtifactCorrupt: The pool's file is none.
    """
    from kernelskill.experience.pool import POOL_FILE, ExperiencePool
    from kernelskill.report.predictions import rows_of

    pool = ExperiencePool.open(data_dir() / POOL_FILE, shipped=data_folder("experience_pool"))
    try:
        found = pool.foretold()
    finally:
        pool.close()
    rows = {
        kind: rows_of(one.outcome for one in found if one.evidence == kind)
        for kind in _KINDS
        if any(one.evidence == kind for one in found)
    }
    if as_json:
        typer.echo(json.dumps(_facts(rows, found), indent=1))
    else:
        typer.echo(_text(rows), nl=False)


def _facts(rows: dict[str, tuple[PredictionRow, ...]], found: list[Foretold]) -> dict[str, object]:
    return {
        "kind": "foretold",
        "changes": len(found),
        "tasks": sorted({one.task for one in found}),
        "gpus": sorted({one.gpu for one in found}),
        "rows": [{"evidence": kind, **asdict(row)} for kind, each in rows.items() for row in each],
    }


def _text(rows: dict[str, tuple[PredictionRow, ...]]) -> str:
    if not rows:
        return "No run that learnt has profiled a change that a skill made a prediction for.\n"
    from kernelskill.report.foresight import prediction_table

    parts = []
    for kind, each in rows.items():
        held, observed = sum(row.held for row in each), sum(row.observed for row in each)
        share = (
            f"{held} of {observed} held ({held / observed:.0%})" if observed else "none could be looked at"
        )
        parts.append(f"## Predictions of skills, {kind}: {share}\n\n{prediction_table(each)}")
    return "\n".join(parts)
