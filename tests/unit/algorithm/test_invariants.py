"""What is the same in every step is computed once before the loop, and read only where a step would read it."""

from __future__ import annotations

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.lowering.kernel import LaunchFacts, emit
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit

PARAMETERS = "const float* x, const float* g, float* y, int rows, int n, int m"


def lifted(body: str) -> Algorithm:
    text = (
        f"__global__ void f({PARAMETERS}) {{ int r = blockIdx.x * blockDim.x + threadIdx.x;"
        f" if (r < rows) {{ {body} }} }}\n"
        f'extern "C" void h({PARAMETERS}) {{ f<<<(rows + 63) / 64, 64>>>(x, g, y, rows, n, m); }}\n'
    )
    unit = SourceUnit.parse(text)
    return lift_kernel(unit, unit.kernels[0]).algorithm


def shared(body: str, vector: str = "1") -> str:
    plan = MOVES["share_rows"].apply(
        Plan(lifted(body), Schedule()), {"lanes": "32", "threads": "128", "vector": vector}
    )
    names = {p.name: p.name for p in plan.algorithm.parameters}
    return emit(plan.algorithm, plan.schedule, LaunchFacts(names)).kernel


NORM = """float s = 0.0f; for (int j = 0; j < n; ++j) s += x[r * n + j];
float inv = 1.0f / sqrtf(s / n);
for (int j = 0; j < n; ++j) y[r * n + j] = x[r * n + j] * inv * g[r];"""


def test_what_is_fixed_stands_before_the_loop() -> None:
    before, _, loop = shared(NORM).rpartition("for (")
    assert "sqrtf" not in loop
    assert "sqrtf" in before
    assert "g[" not in loop


def test_elements_are_read_only_where_a_step_reads_them() -> None:
    assert "0 < n ? g[r] : 0.0f" in shared(NORM)
    masked = NORM.replace("y[r * n + j] =", "if (j % 3 > 0) y[r * n + j] =")
    assert "? g[r]" not in shared(masked)


def test_what_changes_stays_inside() -> None:
    loop = shared(NORM.replace("g[r]", "expf(g[j])")).rpartition("for (")[2]
    assert "expf(" in loop


def test_loops_inside_loops_move_in_packs() -> None:
    body = "float s = 0.0f; for (int a = 0; a < m; ++a) for (int j = 0; j < n; ++j) s += x[(a * rows + r) * n + j]; y[r] = s;"
    assert "Pack<float, 4>*>(&x[" in shared(body, "4")


def test_what_is_read_comes_before_slow_operations() -> None:
    body = "float a = x[r], b = g[r]; y[r] = a / (1.0f + expf(-a)) * b;"
    algorithm = lifted(body)
    names = {p.name: p.name for p in algorithm.parameters}
    text = emit(algorithm, Schedule(), LaunchFacts(names, configuration="1, 64")).kernel
    assert text.index("= g[r]") < text.index("expf(")
