"""Kernels on 16-bit types compute the same in pairs, at odd sizes and odd addresses too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.schema.evaluation import Status
from kernelskill.skills.apply import apply_step, find_steps
from kernelskill.skills.transformation import SkillContext
from tests.skills.applying import LIBRARY
from tests.skills.core_bench import CoreBench

KERNEL = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void scaled(const __half* x, __half* y, half a, float g, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half two = __float2half(2.0f * g);
    __half v = x[i] * two, w = __float2half(1.0f);
    w += (v - x[i]) / (a + v * v);
    y[i] = __hfma(a, __hmin(w, v), -y[i]) + (a * two);
}
__global__ void products(const __nv_bfloat16* x, __nv_bfloat16* z, size_t n) {
    size_t i = threadIdx.x + blockDim.x * (size_t)blockIdx.x;
    if (i < n) {
        z[i] += __hmax(x[i], __float2bfloat16(0.0f));
        z[i] = __hmul(z[i], x[i]);
    }
}
extern "C" void f(const __half* x, __half* y, const __nv_bfloat16* b, __nv_bfloat16* z, int n) {
    scaled<<<(n + 127) / 128, 128>>>(x, y, __float2half(1.5f), 1.25f, n);
    products<<<(n + 63) / 64, 64>>>(b + 1, z + n % 2, n - 1);
}
"""
TEST = """\
import ml_dtypes
import numpy as np

CASES = [dict(n=2), dict(n=257), dict(n=1000), dict(n=1001, time=True)]
TOLERANCE = dict(rtol=2e-2, atol=2e-2)
OUTPUTS = ["y", "z"]


def make_inputs(rng, n):
    halves = [rng.standard_normal(n).astype(np.float16) for _ in "xy"]
    brains = [rng.standard_normal(n).astype(ml_dtypes.bfloat16) for _ in "bz"]
    return {"x": halves[0], "y": halves[1], "b": brains[0], "z": brains[1], "n": n}


def reference(x, y, b, z):
    x, y, b, z = (array.astype(np.float64) for array in (x, y, b, z))
    v = x * 2.5
    w = 1 + (v - x) / (1.5 + v * v)
    first, count = len(z) % 2, len(z) - 1
    z[first : first + count] = (z[first : first + count] + np.maximum(b[1:], 0)) * b[1:]
    return {"y": 1.5 * np.minimum(w, v) - y + 3.75, "z": z}
"""


@pytest.mark.slow
def test_pairs_compute_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "halves"
    folder.mkdir()
    (folder / "kernel.cu").write_text(KERNEL)
    (folder / "test.py").write_text(TEST)
    bench = CoreBench(folder, tmp_path)
    try:
        context = SkillContext(task=bench.task)
        found, refusals = find_steps(bench.original, LIBRARY.get("compute/packed_half"), LIBRARY, context)
        assert [entry.site.key for entry in found] == ["scaled", "products"], refusals
        candidate = bench.original
        for entry in found:
            candidate = apply_step(candidate, entry.step, LIBRARY, context).candidate
        evaluation = bench.evaluate(candidate)
        assert evaluation.status is Status.PASSED, evaluation.detail
    finally:
        bench.close()
