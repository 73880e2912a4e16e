"""Products that moves put on tensor cores: tiles on their way while fragments are multiplied, at ragged sizes."""

import re

import numpy as np
import pytest
from direct import run_kernel

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit
from tests.algorithm.emission import emitted_text

PRODUCT = """#include <cuda_fp16.h>
__global__ void product(const half* a, const half* b, float* c, int m, int n, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    for (int q = 0; q < d; ++q) s += __half2float(a[i * d + q]) * __half2float(b[%s]);
    c[i * n + j] = s;
}
extern "C" void f(const half* a, const half* b, float* c, int m, int n, int d) {
    product<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, d);
}
"""
SIDE, TRANSPOSED = 32, "j * d + q"


def scheduled(index, depth):
    unit = SourceUnit.parse(PRODUCT % index)
    plan = Plan(lift_kernel(unit, unit.kernels[0]).algorithm, Schedule())
    values = {"tile": f"{SIDE}x{SIDE}", "warps": "1x2", "depth": str(depth)}
    plan = MOVES["use_tensor_cores"].apply(plan, values)
    return emitted_text(MOVES["overlap_copies"].apply(plan, {"copy": "async"}))


def instance(text, *, aligned):
    """Return the kernel as a plain one, for rows that may be moved by wide accesses or for others."""
    text = re.sub(r"template <bool kAligned>\n__global__", 'extern "C" __global__', text)
    text = text.partition('extern "C" void f(')[0]
    return f"constexpr bool kAligned = {str(aligned).lower()};\n{text}"


ALIGNED, RAGGED = ((40, 72, 104), (3, 8, 8)), ((33, 67, 29),)


@pytest.mark.slow
@pytest.mark.parametrize(("index", "depth", "sizes"), [(TRANSPOSED, 64, ALIGNED), ("q * n + j", 32, RAGGED)])
def test_products_agree(index, depth, sizes):
    text, rng = scheduled(index, depth), np.random.default_rng(1)
    assert "load_step" in text
    for m, n, d in sizes:
        a, b = rng.integers(-4, 5, (m, d)).astype(np.float16), rng.integers(-4, 5, (d, n)).astype(np.float16)
        given = np.ascontiguousarray(b.T) if index == TRANSPOSED else b
        outcome, after = run_kernel(
            instance(text, aligned=sizes == ALIGNED),
            "product",
            dict(a=a, b=given, c=np.full((m, n), 7, np.float32)),
            ["a", "b", "c", m, n, d],
            grid=(-(-m // SIDE) * -(-n // SIDE),),
            block=(64,),
        )
        assert outcome.status == "passed", outcome
        assert np.array_equal(after["c"], a.astype(np.float32) @ b.astype(np.float32)), (m, n, d)
