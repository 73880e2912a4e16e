"""Fields of one vector are read by one access; what is not aligned to its own size is left in pieces."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule, plain_schedule
from tests.algorithm.emission import emitted_text
from tests.unit.algorithm.lifting_samples import body, lifted

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


def test_rows_that_share_elements_may_be_taken_together() -> None:
    algorithm = lifted(SOURCE.replace("TYPE", "float4").replace("FIELD", "w")).algorithm
    options = {each.name: each.values for each in MOVES["share_rows"].options(Plan(algorithm, Schedule()))}
    assert options["points"] == ("1", "2", "4", "8")
    values = {"lanes": "32", "threads": "128", "vector": "1", "points": "4"}
    plan = MOVES["share_rows"].apply(Plan(algorithm, Schedule()), values)
    assert emitted_text(plan).count("reinterpret_cast<const float4*>(bodies)[") == 1
    with pytest.raises(IllegalMove, match="takes several rows together"):
        MOVES["keep_rows"].apply(plan, {"chunks": "4"})


def test_rows_with_elements_of_their_own_are_taken_one_by_one() -> None:
    algorithm = body("float s = 0.f; for (int k = 0; k < m; ++k) s += a[i * m + k]; c[i] = s;")
    names = [each.name for each in MOVES["share_rows"].options(Plan(algorithm, Schedule()))]
    assert "points" not in names
