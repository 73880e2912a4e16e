"""The gate refuses tests that a wrong kernel would pass."""

from pathlib import Path

import pytest

from kernelskill.errors import TaskError
from kernelskill.schema.task import Case, Role, Task, Tolerance
from kernelskill.tasks.gate import run_gate
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.testsource import read_test_source
from kernelskill.tasks.tolerance import default_tolerance
from tests.unit.tasks.test_values import SAXPY

TEST = """
import numpy as np
CASES = [dict(n=1), dict(n=300), dict(n=5000, time=True)]
SCRATCH = {"tmp": 1}
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}
def reference(x):
    return {"y": VALUES}
"""


@pytest.fixture
def gate(tmp_path: Path):
    def gate(values: str, *, extra: str = "", tolerance: Tolerance | None = None, **options):
        (tmp_path / "test.py").write_text(TEST.replace("VALUES", values) + extra)
        tests = read_test_source(tmp_path / "test.py")
        task = Task(
            name="t",
            signature=SAXPY,
            cases=tuple(
                Case(index=i, arguments={"n": n}, timed=i == 2) for i, n in enumerate((1, 300, 5000))
            ),
            roles={"x": Role.INPUT, "y": Role.OUTPUT, "tmp": Role.SCRATCH},
            tolerances={} if "check" in extra else {"y": tolerance or default_tolerance("float32")},
            custom_check="check" in extra,
            insensitive="INSENSITIVE" in extra,
            original="",
            tests=tests.digest,
        )
        (tmp_path / "bundles").mkdir(exist_ok=True)
        with TestProcess.start(tests) as process:
            return run_gate(task, process, tmp_path / "bundles", **options)

    return gate


def test_a_good_test_passes_without_its_timed_case(gate):
    report = gate("2 * x + 1")
    assert (report.cases, report.depends_on_seed, report.weak) == ((0, 1), True, ())
    assert len(report.probes) == 7
    assert all(result.caught_in is not None for result in report.probes)


@pytest.mark.parametrize(
    ("values", "probe"),
    [
        ("1e-7 * x", "zeros"),
        ("x + np.float32(1e-5)", "a copy of input x"),
        ("5 + 1e-4 * x", "the mean everywhere"),
        ("np.where(np.arange(x.size) < x.size - 3, x, 1e-6).astype(np.float32)", "the last|last elements"),
    ],
)
def test_a_weak_test_is_refused_by_the_probe_that_passes(gate, values, probe):
    loose = Tolerance(rtol=1e-3, atol=1e-3)
    extra = "CASES = CASES[1:2] * 3\n"
    with pytest.raises(TaskError, match=rf"too weak: .*{probe}.* as y passes in CASES\[\d\] \(n=\d+\)"):
        gate(values, tolerance=loose, extra=extra)
    report = gate(values, tolerance=loose, extra=extra, accept_weak=True)
    assert report.weak


def test_a_probe_that_is_the_reference_itself_is_skipped(gate):
    report = gate("x.copy()")
    copied = next(result for result in report.probes if result.probe == "a copy of input x")
    assert (copied.caught_in, copied.passed_in, copied.is_weak) == (None, (), False)


def test_a_reference_must_not_be_random(gate):
    with pytest.raises(TaskError, match="y of reference differs between two runs with the same seed"):
        gate("x + np.random.rand(x.size).astype(np.float32)")


def test_inputs_must_not_be_random(gate):
    with pytest.raises(TaskError, match="x of make_inputs differs between two runs"):
        gate("2 * x", extra="def make_inputs(rng, n): return {'x': np.random.rand(n).astype('f4'), 'n': n}\n")


def test_a_reference_must_depend_on_the_seed_unless_it_says_otherwise(gate):
    with pytest.raises(TaskError, match="same values for two seeds"):
        gate("np.arange(1, x.size + 1, dtype=np.float32)")
    report = gate("np.arange(1, x.size + 1, dtype=np.float32)", extra="INSENSITIVE = True\n")
    assert not report.depends_on_seed


def test_nan_must_be_masked(gate):
    with pytest.raises(TaskError, match=r"reference gives nan at y\[0\] in CASES\[0\]"):
        gate("np.where(np.arange(x.size) == 0, np.nan, x)")
    assert gate("(np.where(np.arange(x.size) == 0, np.nan, x), np.arange(x.size) > 0)").weak == ()


def test_a_tolerance_that_refuses_the_reference_is_told(gate):
    with pytest.raises(TaskError, match="TOLERANCE refuses the reference's own y as float32"):
        gate("x / np.float64(3)", tolerance=Tolerance(rtol=0, atol=0))


def test_a_check_of_the_users_own_is_gated_too(gate):
    good = "def check(outputs, expected, case): return None if np.allclose(outputs['y'], expected['y']) else 'no'\n"
    assert gate("2 * x + 1", extra=good).weak == ()
    with pytest.raises(TaskError, match="too weak: zeros as y"):
        gate("2 * x + 1", extra="def check(outputs, expected, case): return None\n")
    with pytest.raises(TaskError, match="check refuses the reference's own y"):
        gate("2 * x + 1", extra="def check(outputs, expected, case): return 'no'\n")


def test_every_case_returns_the_same_names(gate):
    with pytest.raises(TaskError, match=r"CASES\[1\].*other names than the first case|is in neither"):
        gate(
            "x + 1",
            extra="SCRATCH = {'tmp': 1}\n_made = make_inputs\n"
            "def make_inputs(rng, n):\n    made = _made(rng, n)\n"
            "    return made if n == 1 else made | {'y': np.ones(n, np.float32)}\n",
        )
