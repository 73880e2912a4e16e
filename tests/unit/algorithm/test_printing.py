"""Expressions as text: what is printed can be read again."""

from __future__ import annotations

import pytest

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Cast, Sym
from kernelskill.algorithm.printing import show
from kernelskill.source.unit import SourceUnit


@pytest.mark.parametrize(
    "kind", ["unsigned", "short", "unsigned char", "long long", "unsigned long long", "int", "float", "half"]
)
def test_casts_are_read_again_wherever_they_stand(kind: str) -> None:
    cast = Cast(kind, integers.add(Sym("i"), integers.constant(1)))
    product = Binary("*", cast, Sym("j", kind), kind)
    for text in (
        show(cast),
        show(product),
        f"({show(cast)})",
        f"({show(product)}) * 2",
        f"f(({show(cast)}))",
    ):
        unit = SourceUnit.parse(f"__global__ void k(int i, int j, int *x) {{ x[0] = {text}; }}")
        assert not unit.problems, text
