"""The main job on tasks of the core suite, on the emulated device: each ends right."""

import json
from pathlib import Path

import pytest

from kernelskill.tasks.suite import load_suite
from tests.core_sample import WHOLE_RUN, chosen
from tests.flow.small_task import environment, kernelskill

TASKS = chosen([entry.name for entry in load_suite("core").entries], WHOLE_RUN)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_main_job_ends_right(task: str, tmp_path: Path) -> None:
    env = environment(
        KERNELSKILL_SLATE="1", KERNELSKILL_POINTS="1", KERNELSKILL_TRIALS="1", KERNELSKILL_CONFIRM="false"
    )
    done = kernelskill(
        *("bench", "core", "--only", task, "--device", "emulated"),
        *("--rounds", "1", "--no-learn", "--out", "bench", "--json"),
        cwd=tmp_path,
        env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["outcome"] in ("improved", "no gain")
    assert row["evidence"] == "estimated"
    assert row["cases"]
    folder = tmp_path / "bench" / task
    assert (folder / "report.md").is_file()
    assert list((folder / "result").rglob("*.cu"))
