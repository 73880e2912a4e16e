"""Inverse roots of what is proved to be no subnormal number, without the test for one.

`rsqrtf` is one instruction of the hardware, which takes subnormal numbers for zero; so it compares, scales the
argument, and scales the result: three instructions more. Of any other value both give the same bits.
"""

from __future__ import annotations

from kernelskill.algorithm.expression import Call, Expression, walk
from kernelskill.algorithm.lower_bounds import is_never_subnormal
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.rewriting import rebuild

_ROOTS = frozenset({"rsqrt", "rsqrtf", "::rsqrtf", "::rsqrt"})
_TEXT = """// 1 / sqrt(x) as rsqrtf gives it, for x that are never subnormal: nothing tests for that.
__device__ __forceinline__ float {name}(float x) {{
#ifdef __CUDA_ARCH__
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#else
    return rsqrtf(x);
#endif
}}
"""


def root_function(name: str) -> str:
    """Return the definition of the short form under a name."""
    return _TEXT.format(name=name)


def with_roots_of_normals(algorithm: Algorithm, names: Names) -> tuple[Algorithm, str]:
    """Return an algorithm that calls the short form where it is proved to do, and the form's definition.

    Args:
        algorithm: What is about to be lowered.
        names: Takes the name of the form.

    Returns:
        The algorithm as it is and an empty text where nothing changes.
    """
    if not any(_is_of_normal(node) for expression in algorithm.expressions for node in walk(expression)):
        return algorithm, ""
    name = names.fresh("rsqrt_of_normal")

    def change(node: Expression) -> Expression | None:
        return Call(name, node.children, "float") if _is_of_normal(node) else None

    return algorithm.mapped(lambda expression: rebuild(expression, change)), root_function(name)


def _is_of_normal(node: Expression) -> bool:
    if not isinstance(node, Call) or node.function not in _ROOTS or node.kind != "float":
        return False
    return len(node.arguments) == 1 and is_never_subnormal(node.arguments[0])
