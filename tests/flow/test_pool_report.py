"""`kernelskill report --pool` over what runs have learnt."""

from __future__ import annotations

import json
from pathlib import Path

from kernelskill.experience.pool import POOL_FILE, ExperiencePool
from kernelskill.schema.experience import Foretold
from kernelskill.schema.proposal import MetricOutcome
from tests.flow.small_task import environment, kernelskill


def recorded(folder: Path) -> None:
    pool = ExperiencePool.open(folder / "kernelskill" / POOL_FILE)
    held = {"memory/x": (True, True, False), "memory/y": (None,)}
    pool.record_foretold(
        Foretold(
            id=f"{skill} {number}",
            task="sums",
            gpu="H200",
            evidence="estimated",
            outcome=MetricOutcome(
                metric="sectors", direction="down", skill=skill, before=4, after=2, held=each
            ),
        )
        for skill, outcomes in held.items()
        for number, each in enumerate(outcomes)
    )
    pool.close()


def test_predictions_of_all_runs_are_counted_skill_by_skill(tmp_path: Path) -> None:
    env = environment(XDG_DATA_HOME=str(tmp_path))
    empty = kernelskill("report", "--pool", cwd=tmp_path, env=env)
    assert (empty.returncode, empty.stdout.count("\n")) == (0, 1)
    recorded(tmp_path)
    shown = kernelskill("report", "--pool", cwd=tmp_path, env=env)
    assert shown.returncode == 0, shown.stderr
    assert "Predictions of skills, estimated: 2 of 3 held (67%)" in shown.stdout
    assert "| memory/x | sectors | down | 2 of 3 | 4 -> 2 |" in shown.stdout
    assert "| memory/y | sectors | down | not observed | - |" in shown.stdout
    facts = json.loads(kernelskill("report", "--pool", "--json", cwd=tmp_path, env=env).stdout)
    assert [(row["skill"], row["held"], row["observed"], row["unobserved"]) for row in facts["rows"]] == [
        ("memory/x", 2, 3, 0), ("memory/y", 0, 0, 1),
    ]  # fmt: skip
    for wrong in (["report"], ["report", "run", "--pool"]):
        refused = kernelskill(*wrong, cwd=tmp_path, env=env)
        assert refused.returncode == 2
        assert "give either a run folder or --pool" in refused.stderr
