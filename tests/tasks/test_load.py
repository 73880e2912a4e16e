"""Loading with the real compiler: what works, and what each mistake says."""

import time
from pathlib import Path

import pytest

from kernelskill.errors import TaskError
from kernelskill.schema.task import Allowance, Promise, Role, Tolerance
from kernelskill.tasks.load import load_task

KERNEL = """
#define REAL float
__global__ void k(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" void saxpy(const REAL* x, float* y, float a, int n) { k<<<(n + 255) / 256, 256>>>(x, y, a, n); }
"""
TEST = """
import numpy as np
CASES = [dict(n=1), dict(n=100), dict(n=1 << 20, time=True)]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "y": rng.standard_normal(n, dtype=np.float32),
            "a": 2.0, "n": n}
def reference(x, y, a):
    return {"y": a * x + y}
"""
BARE = KERNEL.split("extern")[0]
LAUNCH = "def launch(n): return dict(grid=(n + 255) // 256, block=256)\n"


@pytest.fixture
def load(tmp_path: Path):
    def load(kernel: str = KERNEL, test: str = TEST, **options):
        (tmp_path / "saxpy.cu").write_text(kernel)
        (tmp_path / "test.py").write_text(test)
        return load_task(tmp_path / "saxpy.cu", tmp_path / "test.py", **options)

    return load


def test_a_task_is_described_in_full(load):
    loaded = load(test=TEST + 'PROMISE = {"aligned16"}\n', promise=("no_alias",), allow=("fast_math",))
    task = loaded.task
    assert (task.name, task.signature.symbol) == ("saxpy", "saxpy")
    assert [p.declared for p in task.signature.parameters] == ["const float *", "float *", "float", "int"]
    assert task.roles == {"x": Role.INPUT, "y": Role.INOUT}
    assert task.tolerances == {"y": Tolerance(rtol=1e-4, atol=1e-5, scaled=True)}
    assert task.allow == {Allowance.REORDER, Allowance.FAST_MATH}
    assert task.promise == {Promise.ALIGNED16, Promise.NO_ALIAS}
    assert loaded.original.digest == task.original
    assert not task.generated_launcher


INTEGERS = (
    'extern "C" void f(const int *x, int *y, int n) {}',
    """
import numpy as np
CASES = [dict(n=4, time=True)]
def make_inputs(rng, n):
    return {"x": rng.integers(0, 9, n, dtype=np.int32), "n": n}
def reference(x):
    return {"y": x}
""",
)


def test_a_tolerance_that_loosens_nothing_is_told(load):
    kernel, test = INTEGERS
    told = load(kernel, test + "TOLERANCE = dict(atol=1)\n")
    assert told.task.tolerances["y"].atol == 0
    (warning,) = told.warnings
    assert warning.startswith("TOLERANCE has no effect: all outputs ('y') are integers")
    assert "TOLERANCE = {'y': dict(rtol=0, atol=1)}" in warning
    named = load(kernel, test + "TOLERANCE = {'y': dict(atol=1)}\n")
    assert (named.task.tolerances["y"].atol, named.warnings) == (1, ())
    assert load(kernel, test + "TOLERANCE = dict(rtol=0)\n").warnings == ()
    mixed = kernel.replace("int n", "float *z, int n")
    both = test.replace('{"y": x}', '{"y": x, "z": x.astype(np.float32)}')
    assert load(mixed, both + "TOLERANCE = dict(atol=1)\n").warnings == ()


def test_keep_exact_takes_reordering_back(load):
    assert load(keep_exact=True).task.allow == frozenset()


def test_loading_again_asks_no_compiler(load):
    first = load()
    started = time.monotonic()
    assert load() == first
    assert time.monotonic() - started < 5


def test_a_bare_kernel_gets_a_launcher_with_formulas(load):
    loaded = load(BARE, TEST + LAUNCH)
    assert loaded.task.signature.symbol == "k_launch"
    assert loaded.task.generated_launcher
    assert "const dim3 grid((n + 255) / 256);" in loaded.generated
    assert loaded.original.source.startswith(BARE)
    assert loaded.assumptions == ()


def test_sizes_that_are_no_formula_need_the_promise(load):
    launch = "def launch(n): return dict(grid=1 if n < 50 else n, block=64)\n"
    with pytest.raises(TaskError, match="no formula in the integer parameters") as caught:
        load(BARE, TEST + launch)
    assert "fixed_shapes" in caught.value.remedy
    loaded = load(BARE, TEST + launch + 'PROMISE = {"fixed_shapes"}\n')
    assert "if (n == 1) {" in loaded.generated
    assert loaded.assumptions == ("the generated launcher knows only the sizes in CASES (fixed_shapes)",)


def test_template_arguments_are_named_in_the_test(load):
    kernel = BARE.replace("__global__ void k", "template <typename T> __global__ void k").replace(
        "const float* x", "const T* x"
    )
    loaded = load(kernel, TEST + LAUNCH + 'KERNEL = "k<float>"\n')
    assert "k<float><<<grid, block>>>(x, y, a, n);" in loaded.generated
    assert loaded.task.signature.parameter("x").declared == "const float *"
    with pytest.raises(TaskError, match=r"template parameters 'T', and KERNEL gives 0"):
        load(kernel, TEST + LAUNCH)


@pytest.mark.parametrize(
    ("kernel", "test", "message"),
    [
        (BARE, TEST, "no launcher, only the kernel 'k'"),
        (BARE + "int main() { k<<<1, 1>>>(0, 0, 1.f, 1); }", TEST, r"only its own main\(\)"),
        ("int x;", TEST, "neither a launcher nor a kernel"),
        (KERNEL, TEST + "KERNEL = 'saxpi'", "KERNEL names 'saxpi', which .*did you mean 'saxpy'"),
        (KERNEL, TEST + "KERNEL = 'k'", r"k is a bare kernel, and test.py has no launch\(\)"),
        (
            KERNEL + KERNEL.split("\n")[-2].replace("saxpy", "other"),
            TEST,
            "several launchers: 'saxpy', 'other'",
        ),
        (KERNEL.replace("int n) { k", "int) { k"), TEST, "parameter 4 of saxpy has no name"),
        (KERNEL.replace("if (i < n)", "if (i < m)"), TEST, "saxpy.cu"),
        (KERNEL, TEST.replace("float32", "float64"), "x is float64, but the launcher's x is const float"),
        (KERNEL, TEST.replace('"a": 2.0,', ""), "does not return 'a'"),
        (KERNEL, TEST.replace('"a": 2.0', '"alpha": 2.0'), "returns 'alpha'"),
        (KERNEL, TEST.replace('"a": 2.0', '"a": 1e39'), "a = 1e.39 is outside the range"),
        (KERNEL, TEST.replace('{"y": a * x + y}', '{"z": x}'), "returns 'z'.*did you mean 'y'|returns 'z'"),
        (KERNEL, TEST.replace("a * x + y", "x[:0]"), "1 elements in make_inputs and 0 in reference"),
        (KERNEL, TEST + "TOLERANCE = {'x': dict(rtol=1)}", "TOLERANCE names 'x', which is no output"),
        (KERNEL, TEST + "FLAGS = ['-arch=sm_80']", "chooses an architecture"),
        (KERNEL, TEST + "def (", r"test.py:\d+: invalid syntax"),
    ],
)
def test_every_mistake_is_one_line_with_exit_code_2(load, kernel, test, message):
    with pytest.raises(TaskError, match=message) as caught:
        load(kernel, test)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message


def test_wrong_paths_and_names(load, tmp_path):
    load()
    with pytest.raises(TaskError, match="no kernel file"):
        load_task(tmp_path / "saxpi.cu", tmp_path / "test.py")
    with pytest.raises(TaskError, match=r"give the|no CUDA file"):
        load_task(tmp_path / "test.py", tmp_path / "saxpy.cu")
    with pytest.raises(TaskError, match="--allow holds 'fastmath'; did you mean 'fast_math'"):
        load(allow=("fastmath",))
    with pytest.raises(TaskError, match="KERNEL names 'nothing'"):
        load(only_kernel="nothing")


def test_launch_and_make_inputs_must_agree(load):
    with pytest.raises(TaskError, match="gives n = 1, but make_inputs returns 2"):
        load(BARE, TEST.replace('"n": n', '"n": n + 1') + LAUNCH)
