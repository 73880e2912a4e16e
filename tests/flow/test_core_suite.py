"""Tasks of the packaged suite load, pass the gate, compile and pass their own test in the small cases."""

from pathlib import Path

import pytest

from kernelskill.resources import data_folder
from kernelskill.schema.evaluation import Status
from kernelskill.tasks.gate import run_gate
from kernelskill.tasks.load import load_task
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.suite import load_suite
from tests.core_sample import CHECKED, chosen
from tests.skills.core_bench import CoreBench

ENTRIES = {entry.name: entry for entry in load_suite("core").entries}


@pytest.mark.slow
@pytest.mark.parametrize("name", chosen(list(ENTRIES), CHECKED))
def test_a_task_is_sound(name: str, tmp_path: Path) -> None:
    entry = ENTRIES[name]
    loaded = load_task(Path(entry.kernel), Path(entry.tests))
    assert loaded.warnings == ()
    with TestProcess.start(loaded.tests) as process:
        report = run_gate(loaded.task, process, tmp_path)
    assert report.weak == ()
    assert report.depends_on_seed
    bench = CoreBench(data_folder("benchmarks") / "core" / name, tmp_path)
    try:
        evaluation = bench.evaluate(bench.original)
    finally:
        bench.close()
    assert evaluation.status is Status.PASSED, evaluation.detail
