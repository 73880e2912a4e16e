"""A job folder: one plan carried out once by a command, for tools that watch a process."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from kernelskill.schema.build import Build
from kernelskill.schema.launch_plan import LaunchPlan

POISON = 0xA5


def write_job(
    folder: Path,
    build: Build,
    plan: LaunchPlan,
    contents: Mapping[str, Path],
    *,
    device: int,
    core: Path,
    guard_bytes: int,
) -> list[str]:
    """Write a job and return the command that carries it out."""
    job = {
        "device": device,
        "core": str(core),
        "guard_bytes": guard_bytes,
        "poison": POISON,
        "build": build.model_dump(mode="json"),
        "plan": plan.model_dump(mode="json"),
        "contents": {name: str(path.resolve()) for name, path in contents.items()},
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return [sys.executable, "-P", "-m", "kernelskill.backends.cuda.worker", "--job", str(folder)]
