"""A model writes the first kernel of an imported task: NumPy stands in for the module, so no PyTorch is needed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kernelskill.config import RunConfig
from kernelskill.errors import AnswersWaiting, ModelUnavailable
from kernelskill.llm.models import open_model
from kernelskill.session.seeding import seed_kernel
from kernelskill.tasks.torch_facts import ModuleFacts, Value
from kernelskill.tasks.torch_task import ImportedTask, write_task

TEST = """\
import numpy as np
CASES = [dict(n=7), dict(n=33, time=True)]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}
def reference(x, n):
    return {"out": 2 * x}
"""
KERNEL = """\
__global__ void k(const float* x, float* out, int n)
{{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = {factor} * x[i]; }}
extern "C" void f_forward({parameters})
{{ if (n > 0) k<<<(n + 255) / 256, 256>>>(x, out, n); }}
"""
RIGHT = "const float* x, float* out, int n"
CONFIG = RunConfig(device="emulated", trials=1)


@pytest.fixture
def task(tmp_path: Path) -> ImportedTask:
    shapes = ((7,), (33,))
    facts = ModuleFacts(
        values=(
            Value(name="x", role="input", dtype="float32", shapes=shapes),
            Value(name="out", role="output", dtype="float32", shapes=shapes),
            Value(name="n", role="size", dtype="int32"),
        ),
        cases=({"n": 7}, {"n": 33}),
    )
    written = write_task(tmp_path / "task", "f_forward", "# 2 * x\n", facts)
    written.tests.write_text(TEST)
    return written


def answer(factor: str = "2.0f", parameters: str = RIGHT) -> dict[str, Any]:
    text = KERNEL.format(factor=factor, parameters=parameters)
    return {
        "role": "seeding",
        "text": f"IDEA: first version\nRATIONALE: plain\n\n<<<<<<< FILE\n{text}>>>>>>> FILE\n",
    }


def seed(task: ImportedTask, tmp_path: Path, *answers: dict[str, Any]):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": answers}))
    model = open_model(f"scripted:{script}")
    assert model is not None
    (tmp_path / "scratch").mkdir()
    return seed_kernel(task, model, CONFIG, tmp_path / "scratch", cheap=True)


@pytest.mark.slow
@pytest.mark.skipif(
    "KERNELSKILL_SEEDING" not in os.environ, reason="KERNELSKILL_SEEDING=1 runs it: half a minute"
)
def test_another_signature_is_mended_once(task: ImportedTask, tmp_path: Path) -> None:
    result = seed(task, tmp_path, answer(parameters="float* x, float* out, int n"), answer())
    assert result.passed
    assert result.attempts == 2
    assert "2.0f * x[i]" in task.kernel.read_text()


def test_what_does_not_compile_and_another_signature_are_refused(task: ImportedTask, tmp_path: Path) -> None:
    stub = task.kernel.read_text()
    result = seed(task, tmp_path, answer(parameters="int n"), answer(factor="nothing"))
    assert not result.passed
    assert "nothing" in result.detail
    assert task.kernel.read_text() == stub


def test_no_answer_and_no_model_have_their_own_ends(task: ImportedTask, tmp_path: Path) -> None:
    mailbox = open_model(f"mailbox:{tmp_path / 'mail'}")
    assert mailbox is not None
    with pytest.raises(AnswersWaiting):
        seed_kernel(task, mailbox, CONFIG, tmp_path)
    (request,) = (tmp_path / "mail").glob("seeding-*.md")
    assert 'extern "C" void f_forward(const float* x, float* out, int n)' in request.read_text()
    with pytest.raises(ModelUnavailable):
        seed(task, tmp_path)
