"""Baselines are compared with the reference; arrays of NumPy stand in for those of a GPU."""

from pathlib import Path

import pytest

from kernelskill.errors import TaskError
from kernelskill.tasks.agreement import disagreement
from kernelskill.tasks.gpu_baseline import _wanted
from kernelskill.tasks.testfile import TestFile

TEST = """
import numpy as np
CASES = [dict(n=1), dict(n=100), dict(n=1 << 40, time=True)]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}
def reference(x):
    kept = x[x > 0]
    y = np.zeros_like(x)
    y[: kept.size] = kept
    return {"y": (y, np.arange(x.size) < kept.size), "count": np.array([kept.size], np.int32)}
"""


def told(tmp_path: Path, baseline: str) -> str:
    (tmp_path / "test.py").write_text(TEST + baseline)
    return disagreement(TestFile(tmp_path / "test.py"), dict)


@pytest.mark.parametrize(
    "result",
    [
        "x[x > 0]",
        "reference(x)['y'][0]",
        "{'y': x[x > 0], 'count': np.array([(x > 0).sum()], np.int64)}",
        "None",
    ],
)
def test_right_answers_in_any_form_agree(tmp_path: Path, result: str) -> None:
    assert told(tmp_path, f"def baseline(x): return {result}\n") == ""


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("2 * x[x > 0]", "y is "),
        ("x[1:]", "y is "),
        ("{'count': np.array([x.size + 1])}", "count is "),
        ("{'z': x}", "z is no output of reference"),
    ],
)
def test_a_wrong_answer_is_told_with_its_place(tmp_path: Path, result: str, said: str) -> None:
    answer = told(tmp_path, f"def baseline(x): return {result}\n")
    assert answer.startswith("CASES[")
    assert said in answer


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="not an array"):
        told(tmp_path, "def baseline(x): return 'fast'\n")


@pytest.mark.parametrize(
    ("body", "library"),
    [
        ("import torch; return torch.relu(x)", "torch"),
        ("import torch.nn.functional as F; return F.relu(x)", "torch"),
        ("from torch.nn import functional; return functional.relu(x)", "torch"),
        ("import cupy; return cupy.maximum(x, 0)", "cupy"),
        ("import cupyx.scipy.ndimage as n; return n.correlate(x, x)", "cupy"),
        ("return x + 1", "cupy"),
    ],
)
def test_the_library_is_the_one_that_is_named(body: str, library: str) -> None:
    names: dict[str, object] = {}
    exec(f"def baseline(x): {body}\n", names)
    assert _wanted(names["baseline"]) == library  # type: ignore[arg-type]
