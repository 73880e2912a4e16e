"""Every task of the packaged suite loads, passes the gate and compiles."""

from pathlib import Path

import pytest

from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.schema.build import Build
from kernelskill.tasks.gate import run_gate
from kernelskill.tasks.load import load_task
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.suite import SuiteEntry, load_suite

ENTRIES = load_suite("core").entries


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_task_loads_and_passes_the_gate(entry: SuiteEntry, tmp_path: Path):
    loaded = load_task(Path(entry.kernel), Path(entry.tests))
    assert loaded.warnings == ()
    assert all(case.cost is not None for case in loaded.task.cases)
    with TestProcess.start(loaded.tests) as process:
        report = run_gate(loaded.task, process, tmp_path)
    assert report.weak == ()
    assert report.depends_on_seed


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_task_compiles(entry: SuiteEntry, tmp_path: Path):
    loaded = load_task(Path(entry.kernel), Path(entry.tests))
    built = compile_candidate(
        loaded.original,
        loaded.task.signature,
        flags=loaded.task.flags,
        architecture="sm_90a",
        toolchain=Toolchain.find(),
        cache=BuildCache(tmp_path),
    )
    assert isinstance(built, Build), built
