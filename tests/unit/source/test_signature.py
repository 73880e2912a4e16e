from kernelskill.source.signature import restricted_parameters
from kernelskill.source.unit import SourceUnit

RESTRICTED = """
__global__ void add(const float *__restrict__ a, const float *b, float *c, int n) { c[n] = a[n] + b[n]; }
namespace ours {
void run(const float *x, const float *y, float *__restrict out, float *tmp, int n)
{
    add<<<1, 1>>>(x, y, tmp, n);
    add<<<1, 1>>>(y + 1, x, out, n);
}
}
"""


def test_what_no_other_pointer_may_overlap_with() -> None:
    unit = SourceUnit.parse(RESTRICTED)
    assert restricted_parameters(unit, "ours::run") == {"x", "out"}
    assert restricted_parameters(unit, "other") == frozenset()
