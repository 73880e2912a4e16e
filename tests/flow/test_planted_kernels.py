"""Real kernels on the emulated device: the honest one passes, each planted fault gets its name."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kernelskill.evaluation.baseline import establish_baseline
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.protocol import CheckRules
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Request, Status
from kernelskill.tasks.load import load_task

pytestmark = pytest.mark.slow
DEVICES = ["emulated", pytest.param("cuda:0", marks=pytest.mark.gpu)]

TESTS = """
import numpy as np
CASES = [dict(n=1), dict(n=1000), dict(n=1 << 15, time=True)]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}
def reference(x, n):
    return {"y": 2 * x + 1}
TOLERANCE = dict(rtol=1e-5, atol=1e-6)
"""
LAUNCH = "scale_k<<<(n + 255) / 256, 256>>>(x, y, n);"


def kernel(body, *, launch=LAUNCH, before="", includes=""):
    return f"""{includes}
{before}
__global__ void scale_k(const float* x, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {body}
}}
extern "C" void scale(const float* x, float* y, int n) {{ {launch} }}
"""


RIGHT = kernel("if (i < n) y[i] = 2.0f * x[i] + 1.0f;")
VECTOR = """
__global__ void vector_k(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { float4 v = x[i]; y[i] = make_float4(2 * v.x + 1, 2 * v.y + 1, 2 * v.z + 1, 2 * v.w + 1); }
}"""
SHARED = """
__shared__ float tile[256];
tile[threadIdx.x] = i < n ? x[i] : 0.0f;
%s
int other = threadIdx.x ^ 32;
float value = tile[other];
int j = blockIdx.x * blockDim.x + other;
if (j < n) y[j] = 2.0f * value + 1.0f;
"""
PLANTED = {
    "another spelling": (kernel("if (i < n) y[i] = fmaf(2.0f, x[i], 1.0f);"), Status.PASSED, ""),
    "synchronised tile": (kernel(SHARED % "__syncthreads();"), Status.PASSED, ""),
    "guarded vector access": (
        kernel(
            "if (i < n) y[i] = 2.0f * x[i] + 1.0f;",
            before=VECTOR,
            launch="if (((size_t)x | (size_t)y) % 16 == 0 && n % 4 == 0)"
            f" vector_k<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4); else {LAUNCH}",
        ),
        Status.PASSED,
        "",
    ),
    "no output": (kernel("if (i < 0) y[i] = x[i];"), Status.INCORRECT, "case n=1: y[0] was never written"),
    "missing tail": (
        kernel("if (i < (n < 256 ? n : n - n % 256)) y[i] = 2.0f * x[i] + 1.0f;"),
        Status.INCORRECT,
        "(232 of 1000 elements wrong: the tail)",
    ),
    "input modified": (
        kernel("if (i < n) { y[i] = 2.0f * x[i] + 1.0f; ((float*)x)[i] = 0.0f; }"),
        Status.INPUT_MODIFIED,
        "the input x was changed at element 0",
    ),
    "one past the end": (
        kernel(
            "if (i <= n) y[i] = i < n ? 2.0f * x[i] + 1.0f : 0.0f;",
            launch=LAUNCH.replace("n + 255", "n + 256"),
        ),
        Status.OUT_OF_BOUNDS,
        "y",
    ),
    "not a number": (
        kernel("if (i < n) y[i] = i % 2 ? 2.0f * x[i] + 1.0f : 0.0f / (x[i] - x[i]);"),
        Status.INCORRECT_NAN,
        "nan",
    ),
    "aligned only": (
        kernel(
            "if (i < n) y[i] = 2.0f * x[i] + 1.0f;",
            before=VECTOR,
            launch=f"if (n % 4 == 0) vector_k<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4);"
            f" else {LAUNCH}",
        ),
        Status.RUNTIME_ERROR,
        "one element past an aligned address",
    ),
    "no aliasing": (
        kernel("if (i < n) { y[i] = 1.0f; y[i] += 2.0f * x[i]; }"),
        Status.INCORRECT,
        "with x and y in one buffer",
    ),
    "race": (kernel(SHARED % ""), Status.SANITIZER_ERROR, "race:"),
    "endless": (
        # The loop reads memory that nobody writes, through a volatile pointer: no compiler may drop it.
        kernel(
            "volatile const float *seen = x; if (n == 1000) while (seen[0] == seen[0]) {}"
            " if (i < n) y[i] = 2.0f * x[i] + 1.0f;"
        ),
        Status.TIMEOUT,
        "case n=1000",
    ),
    "answer kept on the device": (
        kernel(
            "if (i >= n) return; if (!kept_n) kept[i] = 2.0f * x[i] + 1.0f; y[i] = kept[i];",
            before="__device__ float kept[1 << 15]; __device__ int kept_n;\n__global__ void mark() { kept_n = 1; }",
            launch=f"{LAUNCH} mark<<<1, 1>>>();",
        ),
        Status.INCORRECT,
        "second call, other inputs, nothing reset",
    ),
    "exit in a constructor": (
        kernel(
            "if (i < n) y[i] = 2.0f * x[i] + 1.0f;",
            includes="#include <cstdlib>",
            before="struct Leave { Leave() { exit(0); } } leave;",
        ),
        Status.RUNTIME_ERROR,
        "",
    ),
    "does not compile": (
        kernel("if (i < n) y[i] = 2.0f * z[i];"),
        Status.COMPILE_ERROR,
        'identifier "z" is undefined',
    ),
    "bad launch": (
        kernel(
            "if (i < n) y[i] = 2.0f * x[i] + 1.0f;", launch="scale_k<<<(n + 2047) / 2048, 2048>>>(x, y, n);"
        ),
        Status.LAUNCH_ERROR,
        "",
    ),
    "answer by the host": (
        kernel(
            "if (i < n) y[i] = 2.0f * x[i] + 1.0f;",
            launch="float v; cudaMemcpy(&v, x, 4, cudaMemcpyDeviceToHost); if (v != 0) " + LAUNCH,
        ),
        Status.UNSUPPORTED,
        "",
    ),
}


class Bank:
    """One task with its evaluator on the emulated device."""

    def __init__(self, folder: Path, device: str) -> None:
        sources = folder / "sources"
        sources.mkdir()
        (sources / "kernel.cu").write_text(RIGHT)
        (sources / "test.py").write_text(TESTS)
        self.loaded = load_task(sources / "kernel.cu", sources / "test.py")
        self.seeds = SeedFile(folder / "seeds.json", random.Random(5))
        self.pool = self.seeds.pool(size=2)
        self.evaluator = open_evaluator(
            device, self.loaded, run_folder=folder / "run", seeds=self.seeds, clock=SystemClock()
        )
        self.evaluator._check_rules = CheckRules(least_timeout_s=3.0)

    def check(self, source, **changes):
        request = {
            "task": self.loaded.task.content_digest(),
            "candidate": self.loaded.original.with_text(self.loaded.original.main, source),
            "stage": "check",
            "device": self.evaluator.device,
            "seed_pool": self.pool.digest,
        }
        return self.evaluator.evaluate(Request(**(request | changes)))


@pytest.fixture(scope="module", params=DEVICES)
def bank(request, tmp_path_factory):
    bank = Bank(tmp_path_factory.mktemp("bank"), request.param)
    yield bank
    bank.evaluator.close()


def test_the_original_is_a_baseline(bank):
    report = establish_baseline(
        bank.evaluator, bank.loaded.task, bank.loaded.original, seed_pool=bank.pool.digest
    )
    found = report.evaluation
    assert found.passed
    assert {c.layout for c in found.checks} == {"plain", "repeat", "moved", "offset", "aliased"}
    assert found.timings[0].evidence == bank.evaluator.evidence
    assert abs(found.paired[0].median - 1.0) < 0.02
    assert len(found.paired[0].ratios) in ((1,) if bank.evaluator.evidence == "estimated" else (30, 60))
    assert (found.launches, found.execution) == (1, "replayed")


@pytest.mark.parametrize("name", PLANTED)
def test_planted(bank, name):
    source, status, detail = PLANTED[name]
    real = bank.evaluator.evidence == "measured"
    if real and name == "answer by the host":
        # A real GPU lets such a launcher run itself, with a label.
        status, detail = Status.PASSED, ""
    # A race on a real GPU may show in the values; else the sanitizer sees it, which runs at the confirmation.
    found = bank.check(source, fresh=int(real and name == "race"))
    if real and name == "race":
        assert found.status in (Status.SANITIZER_ERROR, Status.INCORRECT, Status.NONDETERMINISTIC)
        return
    assert (found.status, detail in found.detail) == (status, True), f"{found.status}: {found.detail}"
