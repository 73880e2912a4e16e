"""What a rewrite declares in definitions of its own has no name that a macro of the file would replace."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Edit, Replacement, Scheduled
from kernelskill.skills.macro_names import respelled, without_macro_names
from kernelskill.skills.transformation import Rewrite
from kernelskill.source.unit import SourceUnit

PACK = "template <typename T, int V>\nstruct Pack { T at[V]; };\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PACK, "template <typename T_2, int V>\nstruct Pack { T_2 at[V]; };\n"),
        ("__device__ int f(int T) { return T; } // T\n", "__device__ int f(int T_2) { return T_2; } // T\n"),
        (
            "__device__ void f(int *T, int &T_2) { *T = T_2; }",
            "__device__ void f(int *T_3, int &T_2) { *T_3 = T_2; }",
        ),
        (
            "__device__ int f() { int a[4], T = 3; return T; }",
            "__device__ int f() { int a[4], T_2 = 3; return T_2; }",
        ),
        (
            "namespace n {\n__device__ void f() { for (int T = 0; T < 3; ++T) {} }\n}",
            "namespace n {\n__device__ void f() { for (int T_2 = 0; T_2 < 3; ++T_2) {} }\n}",
        ),
        ("__device__ int f() { auto g = [](int T) { return T; }; return g(1); }",) * 2,
    ],
)
def test_what_a_definition_declares_is_renamed_in_it(text: str, expected: str) -> None:
    if text == expected:
        expected = text.replace("int T", "int T_2").replace("return T;", "return T_2;")
    assert respelled(text, {"T"}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__device__ T f(T x) { return x * T(2); }",
        "__global__ void k(float *p) { p[T] = T; }",
        "int i = T;\n",
        "x += T",
        "#pragma unroll T",
        '__device__ void f() { puts("int T"); }',
    ],
)
def test_the_users_macros_are_used_as_before(text: str) -> None:
    assert respelled(text, {"T"}) == text


def test_equal_definitions_become_equal_wherever_they_stand() -> None:
    assert respelled(PACK, {"T"}) in respelled(f"constexpr int kN = 3;\n{PACK}int T_2;\n", {"T"})


def test_the_new_name_is_no_macro_either() -> None:
    assert respelled("__device__ void f(int T) {}", {"T", "T_2"}) == "__device__ void f(int T_3) {}"


def test_edits_and_the_record_of_an_emission_agree() -> None:
    unit = SourceUnit.parse("#define T float\n__global__ void k(T *p) { p[0] = 1; }\n", "kernel.cu")
    scheduled = Scheduled(
        path="kernel.cu", kernel="k", moves=(), replacements=(Replacement(original="", emitted=PACK),)
    )
    made = without_macro_names(
        Rewrite((Edit(path="kernel.cu", start=0, end=0, text=PACK),), scheduled=scheduled), [unit]
    )
    assert made.scheduled is not None
    assert made.edits[0].text == made.scheduled.replacements[0].emitted != PACK


def test_a_name_that_the_file_declares_through_its_macro_stays() -> None:
    unit = SourceUnit.parse("#define T own\n__global__ void k(int T) { T++; }\n", "kernel.cu")
    rewrite = Rewrite((Edit(path="kernel.cu", start=16, end=16, text="__device__ void g(int T) {}\n"),))
    assert without_macro_names(rewrite, [unit]) is rewrite
