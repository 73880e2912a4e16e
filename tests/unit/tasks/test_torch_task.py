"""Tasks from PyTorch modules: names, signatures and files; what runs the module needs PyTorch."""

import importlib.util
from pathlib import Path

import pytest

from kernelskill.errors import KernelSkillError, TaskError, ToolchainError, UsageError
from kernelskill.source.signature import find_launchers
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.c_names import free_name, function_name, is_usable
from kernelskill.tasks.torch_facts import ModuleFacts, Value, described_shape, launcher_signature
from kernelskill.tasks.torch_problem import read_problem
from kernelskill.tasks.torch_task import parameter_lines, write_task

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")

FACTS = ModuleFacts(
    values=(
        Value(name="x", role="input", dtype="bfloat16", shapes=((7, 5, 3), (8, 6, 3))),
        Value(name="alpha", role="number", dtype="float32"),
        Value(name="net_weight", role="weight", dtype="float32", shapes=((9,), (8,)), origin="net.weight"),
        Value(name="out", role="output", dtype="int64", shapes=((7, 10),)),
        Value(name="M", role="size", dtype="int32"),
        Value(name="N", role="size", dtype="int64"),
        Value(name="net_weight_size0", role="size", dtype="int32"),
    ),
    cases=({"M": 7, "N": 5}, {"M": 8, "N": 6}),
    derived=({}, {}),
    extents={"net_weight_size0": ("net_weight", 0)},
)
SIGNATURE = (
    'extern "C" void f_forward(const __nv_bfloat16* x, float alpha, const float* net_weight, long long* out, '
    "int M, long long N, int net_weight_size0)"
)

MODULE = """\
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, 2 * size)
        self.shift = torch.randn(2 * size)
    def forward(self, x, double):
        return self.linear(x) + double * self.shift, x.sum(1)
rows = 64
size = 32 * 2
def get_inputs():
    return [torch.rand(rows, size), 0.5]
def get_init_inputs():
    return [size]
"""
SIMPLE = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return {}\n"


def test_names_are_fit_for_c_and_python() -> None:
    taken: set[str] = set()
    assert [free_name(name, taken) for name in ("a.b", "a_b", "double", "3x", "lambda", "_", "größe")] == [
        "a_b", "a_b_", "double_", "v3x", "lambda_", "value", "value_"
    ]  # fmt: skip
    assert function_name("1_Square-matrix (v2)") == "square_matrix_v2_forward"
    assert function_name("42") == "forward"
    assert is_usable("N")
    assert not is_usable("_N")
    assert not is_usable("register")


def test_the_signature_is_c_and_says_every_shape() -> None:
    assert launcher_signature("f_forward", FACTS) == SIGNATURE
    (launcher,) = find_launchers(SourceUnit.parse(SIGNATURE + " {}"))
    assert launcher.parameter_names == tuple(value.name for value in FACTS.values)
    assert [described_shape(value, FACTS) for value in FACTS.values[:4]] == [
        "[M, N, 3]", "", "[net_weight_size0]", "[7, 10]"
    ]  # fmt: skip
    assert "const float* net_weight[net_weight_size0] (weight net.weight)" in parameter_lines(FACTS)


def test_a_type_that_no_launcher_takes_is_refused() -> None:
    facts = ModuleFacts(values=(Value(name="z", role="input", dtype="complex64"),), cases=({},))
    with pytest.raises(TaskError, match="input 'z' has type complex64") as caught:
        launcher_signature("f", facts)
    assert "float32" in caught.value.remedy


def test_the_folder_holds_a_stub_that_is_clearly_none(tmp_path: Path) -> None:
    task = write_task(tmp_path / "t", "f_forward", MODULE, FACTS)
    stub = task.kernel.read_text()
    assert stub.startswith("// TO BE WRITTEN")
    assert "#error" in stub
    assert "#include <cuda_bf16.h>" in stub
    assert f"{SIGNATURE};" in stub
    assert SIGNATURE in (tmp_path / "t" / "README.md").read_text()
    tests = task.tests.read_text()
    compile(tests, "test.py", "exec")
    assert "dict(M=7, N=5),\n    dict(M=8, N=6, time=True)," in tests
    assert write_task(tmp_path / "t", "f_forward", MODULE, FACTS) == task
    task.kernel.write_text("// mine\n")
    with pytest.raises(UsageError, match=r"kernel\.cu' exists and holds something else"):
        write_task(tmp_path / "t", "f_forward", MODULE, FACTS)
    assert task.kernel.read_text() == "// mine\n"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"none\.py"):
        read_problem(tmp_path / "none.py")


@pytest.mark.skipif(HAS_TORCH, reason="PyTorch is installed")
def test_without_pytorch_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(MODULE)
    with pytest.raises(ToolchainError) as caught:
        read_problem(tmp_path / "p.py")
    assert "kernelskill[torch]" in caught.value.remedy


@needs_torch
def test_a_module_becomes_inputs_weights_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(MODULE)
    facts = read_problem(tmp_path / "p.py")
    assert facts.cases == ({"rows": 7, "size": 5}, {"rows": 33, "size": 21}, {"rows": 64, "size": 64})
    assert [(value.name, value.role) for value in facts.values] == [
        ("x", "input"), ("double_", "number"), ("linear_weight", "weight"), ("linear_bias", "weight"),
        ("shift", "weight"), ("out0", "output"), ("out1", "output"), ("rows", "size"), ("size", "size"),
        ("linear_weight_size0", "size"),
    ]  # fmt: skip


@needs_torch
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no Model"),
        ("def f(:\n", "p.py:1"),
        (SIMPLE.format("x") + "def get_inputs(): raise ValueError('no\\ndata')\n", "get_inputs raised ValueError: no"),
        (SIMPLE.format("x") + "def get_inputs(): return [[1]]\n", "'x' of get_inputs is list"),
        (SIMPLE.format("{'a': x}") + "def get_inputs(): return [torch.rand(3)]\n", "forward returns dict"),
        (SIMPLE.format("x * torch.rand(3)") + "def get_inputs(): return [torch.rand(3)]\n", "gives other values"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_task_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.py").write_text(text)
    with pytest.raises(KernelSkillError) as caught:
        read_problem(tmp_path / "p.py")
    assert message in caught.value.message
    assert "\n" not in caught.value.message
