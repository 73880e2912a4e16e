"""Fields of one vector are read by one access; what is not aligned to its own size is left in pieces."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.schedule import plain_schedule
from tests.algorithm.emission import emitted_text
from tests.unit.algorithm.lifting_samples import lifted

SOURCE = """
__global__ void near(const TYPE *bodies, const float *a, float *c, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (int k = 0; k < m; ++k) sum += (bodies[k + 1].x - a[i]) * bodies[k + 1].FIELD;
        c[i] = sum;
    }
}
extern "C" void run(const TYPE *bodies, const float *a, float *c, int n, int m)
{
    near<<<(n + 63) / 64, 64>>>(bodies, a, c, n, m);
}
"""


def _text(kind: str, field: str) -> str:
    algorithm = lifted(SOURCE.replace("TYPE", kind).replace("FIELD", field)).algorithm
    return emitted_text(Plan(algorithm, plain_schedule(algorithm, 64)))


@pytest.mark.parametrize(("kind", "field"), [("float4", "w"), ("float2", "y"), ("int4", "z")])
def test_fields_of_a_vector_are_read_together(kind: str, field: str) -> None:
    text = _text(kind, field)
    assert text.count(f"reinterpret_cast<const {kind}*>(bodies)[") == 1
    assert f".{field}" in text


@pytest.mark.parametrize(("kind", "field"), [("float3", "z"), ("double4", "w"), ("float4", "x")])
def test_other_fields_are_read_one_by_one(kind: str, field: str) -> None:
    """Vectors of three and of over 16 bytes are no one access, and one field alone needs none."""
    assert f"reinterpret_cast<const {kind}*>(bodies)[" not in _text(kind, field)
