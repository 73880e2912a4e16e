"""Short ways to lift kernels in tests."""

from __future__ import annotations

from kernelskill.algorithm.lifting import Lifted, lift, lift_kernel
from kernelskill.algorithm.model import Algorithm, CannotLift
from kernelskill.algorithm.printing import show
from kernelskill.source.unit import SourceUnit

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
LAUNCH = 'extern "C" void f(const float* a, const float* b, float* c, int n, int m) { k<<<(n + 127) / 128, 128>>>(a, b, c, n, m); }'


def lifted(source: str) -> Lifted:
    """Lift the first kernel of a source."""
    unit = SourceUnit.parse(source)
    return lift_kernel(unit, unit.kernels[0])


def body(statements: str) -> Algorithm:
    """Lift a kernel over `i < n` with the given statements."""
    return lifted(f"{kernel(statements)}\n{LAUNCH}").algorithm


def kernel(statements: str) -> str:
    """Return a kernel over `i < n` with the given statements."""
    parameters = "const float* a, const float* b, float* c, int n, int m"
    return f"__global__ void k({parameters}) {{ {INDEX} if (i >= n) return; {statements} }}"


def stores(algorithm: Algorithm) -> list[str]:
    """Return the stores as text, with their loops and guards."""
    found = []
    for store in algorithm.stores:
        loops = "".join(f" for {x.name} in {show(x.lower)}..{show(x.upper)}" for x in store.loops)
        guard = "".join(f" if {show(test)}" for test in store.guard)
        found.append(f"{store.buffer}[{show(store.index)}] {store.mode} {show(store.value)}{loops}{guard}")
    return found


def axes(algorithm: Algorithm) -> list[str]:
    """Return the axes as text."""
    return [f"{axis.name} in {show(axis.lower)}..{show(axis.upper)}" for axis in algorithm.axes]


def refusal(source: str) -> str:
    """Return why a source is refused."""
    unit = SourceUnit.parse(source)
    try:
        for launch in unit.launches:
            lift(unit, launch)
    except CannotLift as reason:
        return reason.reason
    return "lifted"
