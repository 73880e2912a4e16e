"""The library calls of the core suite do the job of its kernels."""

from pathlib import Path

import pytest

from kernelskill.tasks.load import load_task
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.suite import SuiteEntry, load_suite

ENTRIES = [entry for entry in load_suite("core").entries if "def baseline(" in Path(entry.tests).read_text()]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_baseline_agrees_and_can_be_timed(entry: SuiteEntry) -> None:
    loaded = load_task(Path(entry.kernel), Path(entry.tests))
    with TestProcess.start(loaded.tests, gpu=True) as process:
        timing = process.baseline(loaded.task.timed_cases[0].index, 1)
    assert timing.disagreement == ""
    assert timing.call
    assert 0 < timing.median_ms < 1000
