"""A real child process holds a real test.py."""

import signal
from pathlib import Path

import numpy as np
import pytest

from kernelskill.errors import TaskError
from kernelskill.schema.task import Allowance, Promise, Role, Tolerance
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.testfile import TestFile
from kernelskill.tasks.testsource import read_test_source
from tests.unit.tasks.test_values import SAXPY

GOOD = """
import numpy as np
CASES = [dict(n=1), dict(n=1000, time=True, weight=2)]
SCRATCH = {"tmp": lambda n: 2 * n}
def make_inputs(rng, n):
    print("noise")
    return {"x": rng.standard_normal(n, dtype=np.float32), "y": np.ones(n, np.float32), "n": n}
def reference(x, y):
    y += x
    return {"y": (y, x < 10)}
"""


@pytest.fixture
def start(tmp_path):
    started = []

    def start(text, **options):
        path = tmp_path / "test.py"
        path.write_text(text)
        process = TestProcess.start(read_test_source(path), **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.close()


def test_describe_reads_every_constant(start):
    test = start(
        GOOD
        + """
KERNEL = "saxpy"
TOLERANCE = {"rtol": 1e-3, "y": {"atol": 1}}
FLAGS = ["-std=c++17", "-Iinclude"]
ALLOW = {"fast_math"}
PROMISE = ["aligned16"]
INSENSITIVE = True
def cost(n): return dict(bytes=12 * n)
"""
    ).describe()
    assert test.kernel == "saxpy"
    assert [case.arguments for case in test.cases] == [{"n": 1}, {"n": 1000}]
    assert [(case.timed, case.weight) for case in test.cases] == [(False, 1.0), (True, 2.0)]
    assert test.cases[1].cost is not None
    assert test.cases[1].cost.bytes == 12000
    assert test.tolerance == Tolerance(rtol=1e-3, atol=0)
    assert test.output_tolerances == {"y": Tolerance(rtol=0, atol=1)}
    assert test.flags == ("-std=c++17", "-Iinclude")
    assert test.allow == {Allowance.FAST_MATH}
    assert test.promise == {Promise.ALIGNED16}
    assert test.insensitive
    assert test.functions == ("make_inputs", "reference", "cost")


def test_the_last_case_is_timed_by_default_and_near_names_are_warned_about(start):
    test = start(GOOD.replace("time=True, weight=2", "") + "TOLERENCE = 1\nBLOCK = 2\n").describe()
    assert [case.timed for case in test.cases] == [False, True]
    assert test.warnings == ("test.py: TOLERENCE means nothing to kernelskill; did you mean TOLERANCE?",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("CASES = []", "CASES is empty"),
        ("CASES = 5", "CASES is not a list of dicts"),
        ("CASES = [dict(n=np.zeros(3))]", "n is ndarray, not a plain value"),
        ("CASES = [dict(n=1, weight=-1)]", "weight is -1, not a positive number"),
        ("del CASES", "test.py defines no CASES"),
        ("del CASES; CASE = []", "no CASES; did you mean 'CASE'"),
        ("del reference", "test.py defines no reference"),
        ("referense = reference; del reference", "no reference; did you mean 'referense'"),
        ("del make_inputs", "test.py defines no make_inputs"),
        ("reference = 5", "reference is int, not a function"),
        ("KERNEL = 5", "KERNEL is 5, not a name"),
        ("TOLERANCE = 1e-3", "TOLERANCE is 0.001"),
        ("TOLERANCE = dict(rtoll=1)", "has 'rtoll'; did you mean 'rtol'"),
        ("TOLERANCE = dict(rtol=-1)", "rtol is -1, not a number"),
        ("ALLOW = {'fastmath'}", "ALLOW holds 'fastmath'; did you mean 'fast_math'"),
        ("PROMISE = {'noalias'}", "PROMISE holds 'noalias'; did you mean 'no_alias'"),
        ("FLAGS = [5]", "FLAGS holds 5, not a string"),
        ("def cost(n): return dict(byte=1)", "cost returned 'byte'; did you mean 'bytes'"),
        ("def cost(m): return dict(bytes=1)", "gives 'n', but cost takes 'm'"),
    ],
)
def test_unusable_declarations_are_named(tmp_path, line, message):
    (tmp_path / "test.py").write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(TaskError, match=message) as caught:
        TestFile(tmp_path / "test.py").describe()
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message


def test_bundle_writes_inputs_expected_values_masks_and_sizes(start, tmp_path):
    bundle = start(GOOD).bundle(1, 7, tmp_path / "bundles", SAXPY)
    rng = np.random.default_rng(7)
    x = rng.standard_normal(1000, dtype=np.float32)
    np.testing.assert_array_equal(bundle.load(bundle.inputs["x"]), x)
    np.testing.assert_array_equal(bundle.load(bundle.inputs["y"]), np.ones(1000))
    np.testing.assert_array_equal(bundle.load(bundle.expected["y"].values), x + 1)
    assert bundle.expected["y"].mask is not None
    assert bundle.roles == {"x": Role.INPUT, "y": Role.INOUT, "tmp": Role.SCRATCH}
    assert bundle.buffers == {"x": 4000, "y": 4000, "tmp": 8000}
    assert bundle.scalars == {"n": 1000}


def test_a_finished_bundle_is_used_again_and_a_damaged_one_is_not(start, tmp_path):
    process = start(GOOD)
    first = process.bundle(1, 2**100, tmp_path / "bundles", SAXPY)
    made = (Path(first.folder) / "bundle.json").stat().st_ino
    assert process.bundle(1, 2**100, tmp_path / "bundles", SAXPY) == first
    assert (Path(first.folder) / "bundle.json").stat().st_ino == made
    (Path(first.folder) / "in_x.bin").write_bytes(b"short")
    assert process.bundle(1, 2**100, tmp_path / "bundles", SAXPY) == first
    assert (Path(first.folder) / "in_x.bin").stat().st_size == 4000
    assert [path.name for path in (tmp_path / "bundles").iterdir()] == [Path(first.folder).name]


def test_an_exception_in_cost_names_its_line(start):
    with pytest.raises(
        TaskError, match=r"test.py:1\d: cost in CASES\[0\] raised ZeroDivisionError"
    ) as caught:
        start(GOOD + "def cost(n):\n    return 1 / 0\n").describe()
    assert caught.value.remedy == "see: return 1 / 0"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return {'y': y}[0]", r"test.py:\d+: reference in CASES\[0\] raised KeyError: 0"),
        ("raise SystemExit(3)", r"test.py:\d+: reference in CASES\[0\] left the program \(SystemExit: 3\)"),
        ("import sys; sys.exit()", r"left the program"),
        ("return np.zeros(1 << 50)", r"test.py:\d+: reference in CASES\[0\] ran out of memory"),
        ("return None", "reference returned NoneType, not a dict"),
        ("return {'y': None}", "y is None"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
        ("import signal, os; os.kill(os.getpid(), signal.SIGKILL)", "the process died while"),
    ],
)
def test_what_the_reference_does_wrong_is_told_in_one_line(start, tmp_path, body, message):
    text = GOOD.split("def reference")[0] + f"def reference(x, y):\n    {body}\n"
    with pytest.raises(TaskError, match=message) as caught:
        start(text).bundle(0, 1, tmp_path / "bundles", SAXPY)
    assert "test.py" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_reference_with_unknown_arguments_is_refused(start, tmp_path):
    text = GOOD.replace("def reference(x, y)", "def reference(xs, y)")
    with pytest.raises(TaskError, match="reference takes 'xs', which make_inputs does not return; did you"):
        start(text).bundle(0, 1, tmp_path / "bundles", SAXPY)


def test_a_hang_is_stopped_and_its_line_named(start, tmp_path):
    text = GOOD.split("def reference")[0] + "def reference(x, y):\n    while True:\n        pass\n"
    with pytest.raises(TaskError, match=r"test.py:9: reference in CASES\[0\] did not finish within 0.5 s"):
        start(text, timeout_s=0.5).bundle(0, 1, tmp_path / "bundles", SAXPY)


@pytest.mark.slow
def test_a_hang_that_cannot_be_interrupted_is_killed(start, tmp_path):
    text = GOOD.split("def reference")[0] + (
        "import signal, time\ndef reference(x, y):\n    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
        "    time.sleep(100)\n"
    )
    with pytest.raises(TaskError, match=r"did not finish within 0.5 s"):
        start(text, timeout_s=0.5).bundle(0, 1, tmp_path / "bundles", SAXPY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", r"^test.py:1: '\(' was never closed"),
        ("import numpy\n\nraise ValueError('no')\n", r"^test.py:3: loading test.py raised ValueError: no"),
        ("import nowhere_to_be_found\n", r"^test.py:1: loading test.py raised ModuleNotFoundError"),
        ("while True: pass\n", r"^test.py:1: loading test.py did not finish"),
        ("raise SystemExit\n", r"^test.py:1: loading test.py left the program"),
    ],
)
def test_a_file_that_does_not_load_is_told_with_its_line(start, text, message):
    with pytest.raises(TaskError, match=message):
        start(text, timeout_s=1)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "test.py").write_bytes(b"# \xff\xfe\n")
    with pytest.raises(TaskError, match="not UTF-8"):
        TestProcess.start(read_test_source(tmp_path / "test.py"))


def test_the_folder_of_the_test_is_its_working_folder_and_first_on_its_path(start, tmp_path):
    (tmp_path / "sizes.py").write_text("LARGE = 77\n")
    (tmp_path / "table.txt").write_text("5")
    text = GOOD + "import sizes\nCASES = [dict(n=sizes.LARGE), dict(n=int(open('table.txt').read()))]\n"
    test = start(text).describe()
    assert [case.arguments["n"] for case in test.cases] == [77, 5]
    assert not (tmp_path / "__pycache__").exists()


def test_the_user_of_the_process_sees_no_secrets(start, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    text = GOOD + "import os\nCASES = [dict(n=int('SOME_API_KEY' in os.environ))]\n"
    assert start(text).describe().cases[0].arguments == {"n": 0}


def test_a_changed_test_is_refused(tmp_path):
    path = tmp_path / "test.py"
    path.write_text(GOOD)
    source = read_test_source(path)
    path.write_text(GOOD + "# changed\n")
    with pytest.raises(TaskError, match="changed since the task was loaded"):
        TestProcess.start(source)


def test_custom_check(start, tmp_path):
    process = start(
        GOOD
        + """
def check(outputs, expected, case):
    assert case == {"n": 1000}
    if outputs["y"].sum() == 0: return False
    np.testing.assert_allclose(outputs["y"], expected["y"], rtol=1e-6)
    if outputs["y"][0] == 5: return "five"
"""
    )
    bundle = process.bundle(1, 1, tmp_path / "bundles", SAXPY)
    good = np.array(bundle.load(bundle.expected["y"].values))
    out = tmp_path / "y.bin"
    answers = []
    for values in (good, good + 1, np.zeros_like(good)):
        values.tofile(out)
        answers.append(process.check(bundle, {"y": out}))
    assert answers[0] == ""
    assert "Not equal to tolerance" in answers[1]
    assert answers[2] == "check returned False"


def test_launch_is_checked(start):
    process = start(GOOD + "def launch(n): return dict(grid=n / 3, block=(8, 8))\n")
    with pytest.raises(TaskError, match=r"grid = 0.333.*not a whole number"):
        process.launch(0)
    process = start(GOOD + "def launch(n): return dict(grid=(n, 2), block=(8, 8), shared=16)\n")
    assert process.launch(1).model_dump() == {"grid": (1000, 2, 1), "block": (8, 8, 1), "shared": 16}


def test_a_baseline_without_its_library_is_told(start, tmp_path):
    process = start(GOOD + "def baseline(x): import cupy; return x\n", gpu=True)
    with pytest.raises(TaskError, match="baseline needs"):
        process.baseline(0, 1)


def test_sigalrm_of_the_parent_is_untouched(start):
    before = signal.getsignal(signal.SIGALRM)
    start(GOOD).describe()
    assert signal.getsignal(signal.SIGALRM) is before
