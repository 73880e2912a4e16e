"""Macros that the compiler's flags define have no known value."""

from __future__ import annotations

import pytest

from kernelskill.source.affine import index_polynomial
from kernelskill.source.preprocessor import given_macros
from kernelskill.source.syntax import walk
from kernelskill.source.unit import SourceUnit


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (("-O3", "-lineinfo"), {}),
        (("-DX",), {"X": ""}),
        (("-DX=1", "-D", "Y=2"), {"X": "1", "Y": "2"}),
        (("--define-macro=Z=3", "--define-macro", "W"), {"Z": "3", "W": ""}),
        (("-DA=1,B=2",), {"A": "1", "B": "2"}),
        (("-U", "Q", "-UR"), {"Q": "", "R": ""}),
        (("-Xcompiler", "-DP=4"), {"P": "4"}),
        (("-D", "F(x)=x[i]"), {"F": "x[i] ()"}),
        (("-DT=std::pair<int,int>",), {"T": "std::pair<int,int>"}),
    ],
)
def test_flags(flags: tuple[str, ...], found: dict[str, str]) -> None:
    assert given_macros(flags) == found


def test_constants_that_depend_on_a_given_macro_are_unknown() -> None:
    text = "#define B 32\n#define C 8\nconst int D = B * 2;\nconst int E = C * 2;\nint d[D], e[E], f[G];\n"
    unit = SourceUnit.parse(text, given=given_macros(("-DB=64", "-DG=7")))
    arrays = {v.name: unit.constants.value(v.dimensions[0]) for v in unit.globals if v.dimensions}
    assert arrays == {"d": None, "e": 16, "f": None}
    plain = SourceUnit.parse(text)
    assert [plain.constants.value(v.dimensions[0]) for v in plain.globals if v.dimensions] == [64, 16, None]


def test_a_given_number_is_one_unknown_value() -> None:
    text = "#define N 4\n__global__ void k(float* x) { x[N * threadIdx.x] = x[threadIdx.x * N]; }"
    unit = SourceUnit.parse(text, given={"N": "8"})
    kernel = unit.kernels[0]
    left, right = (
        index_polynomial(unit, kernel, node) for node in walk(kernel.node) if node.type == "binary_expression"
    )
    assert left == right
    assert str(left) == "N*threadIdx.x"
