"""Short ways to lift kernels in tests."""

from __future__ import annotations

from kernelskill.algorithm.expression import Expression, Load, Poly, Reduce, Sym
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


def box(statements: str, launch: str) -> Algorithm:
    """Lift a kernel over a box of `d` planes, `h` rows and `w` columns, launched with `launch` between `<<<` and `>>>`."""
    parameters = "const float* x, float* y, int d, int h, int w"
    launcher = f'extern "C" void f({parameters}) {{ k<<<{launch}>>>(x, y, d, h, w); }}'
    return lifted(f"__global__ void k({parameters}) {{ {statements} }}\n{launcher}").algorithm


def kernel(statements: str) -> str:
    """Return a kernel over `i < n` with the given statements."""
    parameters = "const float* a, const float* b, float* c, int n, int m"
    return f"__global__ void k({parameters}) {{ {INDEX} if (i >= n) return; {statements} }}"


def text(expression: Expression) -> str:
    """Return the text of an expression with products and sums in alphabetical order."""

    def leaf(node: Expression) -> str | None:
        if isinstance(node, Reduce):
            ranges = ", ".join(f"{x.name} in {text(x.lower)}..{text(x.upper)}" for x in node.loops)
            start = text(node.initial)
            lead = "" if start in ("0", "0.0f", "0.f") else f"{start} {node.op} "
            return f"{lead}reduce[{node.op}; {ranges}]({text(node.body)})"
        if not isinstance(node, Poly) or not node.terms:
            return None
        terms = []
        for monomial, factor in node.terms:
            factors = sorted(
                text(atom) if isinstance(atom, Sym | Load) else f"({text(atom)})" for atom in monomial
            )
            terms.append("*".join([*([str(factor)] if factor != 1 or not factors else []), *factors]))
        return " + ".join(sorted(terms, key=lambda term: (-term.count("*"), term)))

    return show(expression, leaf)


def stores(algorithm: Algorithm) -> list[str]:
    """Return the stores as text, with their loops and guards."""
    found = []
    for store in algorithm.stores:
        loops = "".join(f" for {x.name} in {text(x.lower)}..{text(x.upper)}" for x in store.loops)
        guard = "".join(f" if {text(test)}" for test in store.guard)
        found.append(f"{store.buffer}[{text(store.index)}] {store.mode} {text(store.value)}{loops}{guard}")
    return found


def axes(algorithm: Algorithm) -> list[str]:
    """Return the axes as text."""
    return [f"{axis.name} in {text(axis.lower)}..{text(axis.upper)}" for axis in algorithm.axes]


def refusal(source: str) -> str:
    """Return why a source is refused."""
    unit = SourceUnit.parse(source)
    try:
        for launch in unit.launches:
            lift(unit, launch)
    except CannotLift as reason:
        return reason.reason
    return "lifted"
