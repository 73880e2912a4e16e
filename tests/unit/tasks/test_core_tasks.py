"""What every task of the core suite has; asks no compiler."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from kernelskill.resources import data_folder
from kernelskill.source.signature import find_kernels, find_launchers
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.suite import SuiteEntry, load_suite
from kernelskill.tasks.testfile import TestFile

SUITE = load_suite("core")
README = (data_folder("benchmarks") / "core" / "README.md").read_text()
ROWS = {
    cells[1]: cells
    for line in README.splitlines()
    if len(cells := [cell.strip() for cell in line.split("|")]) > 2 and re.fullmatch(r"\w+", cells[1])
}
NO_LIBRARY = "none: the roof"
L2_BYTES = 60e6
MEMORY_BOUND = 20.0
"""Operations a byte below which memory is the limit of a large GPU in single precision."""


def test_the_table_names_every_task_and_no_other() -> None:
    assert sorted(set(ROWS) - {"task"}) == [entry.name for entry in SUITE.entries]


def test_the_suite_is_as_large_as_it_says() -> None:
    assert len(SUITE.entries) >= 42
    controls = [name for name, cells in ROWS.items() if "a control" in cells[4]]
    assert len(controls) >= 5


@pytest.mark.parametrize("entry", SUITE.entries, ids=lambda entry: entry.name)
def test_a_kernel_is_read_without_problems(entry: SuiteEntry) -> None:
    unit = SourceUnit.parse(Path(entry.kernel).read_text(), entry.kernel)
    assert unit.problems == ()
    assert find_kernels(unit)
    if "def launch(" not in Path(entry.tests).read_text():
        assert len(find_launchers(unit)) == 1


@pytest.mark.parametrize("entry", SUITE.entries, ids=lambda entry: entry.name)
def test_a_test_file_is_complete(entry: SuiteEntry) -> None:
    test = TestFile(Path(entry.tests))
    told = test.describe()
    assert told.warnings == ()
    assert len(told.cases) >= 4
    (timed,) = [case for case in told.cases if case.timed]
    assert all(case.cost is not None and case.cost.bytes for case in told.cases)
    assert any(1 in case.arguments.values() for case in told.cases if not case.timed)
    assert timed.cost is not None
    moved, done = timed.cost.bytes or 0.0, timed.cost.flops or 0.0
    if done < MEMORY_BOUND * moved:
        assert moved >= 2 * L2_BYTES, "the timed case fits the L2 cache"


@pytest.mark.parametrize("entry", SUITE.entries, ids=lambda entry: entry.name)
def test_a_baseline_says_what_it_calls(entry: SuiteEntry) -> None:
    function = TestFile(Path(entry.tests)).names.get("baseline")
    assert (function is None) == (ROWS[entry.name][5] == NO_LIBRARY)
    if function is not None:
        assert (function.__doc__ or "").strip()
        tree = ast.parse(inspect.cleandoc(Path(entry.tests).read_text()))
        at_the_top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert [alias.name for node in at_the_top for alias in node.names] == ["numpy"]


@pytest.mark.parametrize("entry", SUITE.entries, ids=lambda entry: entry.name)
def test_small_cases_have_finite_values_that_follow_the_seed(entry: SuiteEntry) -> None:
    test = TestFile(Path(entry.tests))
    seen: dict[int, list[bytes]] = {1: [], 2: []}
    for case in test.describe().cases:
        for seed in seen if not case.timed else ():
            expected = test.reference(case.index, test.make_inputs(case.index, seed))
            for values in expected.values():
                array = np.asarray(values[0] if isinstance(values, tuple) else values)
                assert np.isfinite(array.astype(np.float64)).all()
                seen[seed].append(array.tobytes())
    assert seen[1] != seen[2]
