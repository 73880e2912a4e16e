"""Two rewrites of one launcher in one file: what is shared, what is copied, and what is declined."""

from __future__ import annotations

import re

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.size_dispatch import SizeCondition, dispatch_on_size
from kernelskill.skills.transformation import SkillRefused

GENERAL = """\
#include <cuda_runtime.h>
#define BLOCK 256
typedef float real;
static const int ROWS = 4;
__constant__ float table[4];

struct Shape { int rows; int k; };

// Common to both.
__device__ __forceinline__ real twice(real v) { return 2 * v; }

__device__ real first(const real *x, int i) { return x[i]; }

__global__ void __launch_bounds__(BLOCK) k(const real *x, real *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = twice(first(x, i));
}

static int blocks(int n) { return (n + BLOCK - 1) / BLOCK; }

extern "C" void scale(const float *x, float *y, int n)
{
    k<<<blocks(n), BLOCK>>>(x, y, n);
}
"""
SMALL = SizeCondition("n", "small", 4096)
LARGE = SizeCondition("n", "large", 65536)


def candidate(text: str, **headers: str) -> Candidate:
    files = {f"{name}.cuh": content for name, content in headers.items()}
    return Candidate.of("kernel.cu", {"kernel.cu": text, **files})


def changed(*pairs: tuple[str, str], text: str = GENERAL) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def joined(special: str, general: str = GENERAL, condition: SizeCondition = SMALL) -> str:
    return dispatch_on_size(candidate(general), candidate(special), "scale", condition).source


def count(text: str, name: str) -> int:
    return len(re.findall(rf"\b{name}\b", text))


STRIDED = changed(("if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)"))


def test_the_launcher_keeps_its_name_and_the_general_way_is_the_default() -> None:
    text = joined(STRIDED)
    assert text.startswith(GENERAL.split("extern")[0])
    assert text.count('extern "C"') == 1
    assert text.index("static void scale_general(") < text.index("static void scale_small(")
    tail = text[text.index('extern "C" void scale(const float *x, float *y, int n)') :]
    assert re.search(
        r"if \(n <= 4096\)\s+scale_small\(x, y, n\);\s+else\s+scale_general\(x, y, n\);\s+}\s*$", tail
    )
    assert "k_small<<<blocks(n), BLOCK>>>(x, y, n)" in text
    for shared in ("twice", "first", "table", "ROWS", "Shape"):
        assert count(text, f"{shared}_small") == 0
    large = joined(STRIDED, condition=LARGE)
    assert "if (n >= 65536)" in large
    assert "scale_large" in large


def test_what_a_changed_name_reaches_is_copied_with_it() -> None:
    text = joined(changed(("BLOCK 256", "BLOCK 64")))
    assert "#define BLOCK_SMALL 64" in text
    assert "static int blocks_small(int n) { return (n + BLOCK_SMALL - 1) / BLOCK_SMALL; }" in text
    assert "__launch_bounds__(BLOCK_SMALL) k_small" in text
    assert "k_small<<<blocks_small(n), BLOCK_SMALL>>>" in text
    deep = joined(changed(("{ return 2 * v; }", "{ return v + v; }")))
    assert "y[i] = twice_small(first(x, i));" in deep
    assert count(deep, "first_small") == 0


def test_types_constants_and_new_things_come_along() -> None:
    special = changed(
        ("#define BLOCK 256", "#include <cuda_fp16.h>\n#define BLOCK 256\n#define WIDE 4"),
        ("typedef float real;", "typedef const float real_in;\ntypedef float real;"),
        ("int rows; int k; };", "int rows; int wide; };"),
        (
            "const real *x, real *y, int n)\n{\n",
            "real_in *x, real *y, int n)\n{\n    Shape s = {WIDE, 2};\n",
        ),
        ("y[i] = twice", "y[i] = s.wide - 2 + twice"),
    )
    text = joined(special, changed(("{ int rows; int k; }", "{ int rows; }"), text=GENERAL))
    assert text.count("#include <cuda_fp16.h>") == 1
    assert "typedef const float real_in;" in text
    assert "struct Shape_small { int rows; int wide; };" in text
    assert "Shape_small s = {WIDE, 2};" in text


def test_returned_status_templates_streams_and_blocks_of_c_linkage() -> None:
    general = """\
template <int B> __global__ void k(float *y, long long n) { if (threadIdx.x < n) y[threadIdx.x] = B; }
extern "C" {
int scale(float *y, long long n, cudaStream_t s)
{
    k<128><<<1, 128, 0, s>>>(y, n);
    return cudaGetLastError();
}
}
"""
    special = general.replace("k<128><<<1, 128", "k<32><<<4, 32").replace("= B;", "= B + 0;")
    text = joined(special, general)
    assert 'extern "C" {\nstatic int scale_general(' in text
    assert "static int scale_small(" in text
    assert "k_small<32><<<4, 32, 0, s>>>" in text
    assert "        return scale_small(y, n, s);" in text
    assert 'extern "C" int scale(float *y, long long n, cudaStream_t s)' in text


def test_a_joined_candidate_is_joined_again() -> None:
    once = joined(STRIDED)
    text = joined(changed(("BLOCK 256", "BLOCK 1024")), once, LARGE)
    assert "if (n <= 4096)\n        scale_small(x, y, n);" in text
    assert (
        "if (n >= 65536)\n        scale_large(x, y, n);\n    else\n        scale_general_2(x, y, n);" in text
    )


def test_names_that_are_taken_are_not_given_again() -> None:
    general = changed(("static const int ROWS", "static const int k_small"))
    text = joined(STRIDED.replace("static const int ROWS", "static const int k_small"), general)
    assert "k_small_2<<<" in text


def test_other_line_ends_and_letters_stay() -> None:
    def windows(text: str) -> str:
        return text.replace("// Common", "// Gr\u00f6\u00dfe, common").replace("\n", "\r\n")

    text = joined(windows(STRIDED), windows(GENERAL))
    assert "\n" not in text.replace("\r\n", "")
    assert "\u00f6\u00df" in text


def test_comments_and_strings_are_not_renamed() -> None:
    special = STRIDED.replace("    k<<<", '    const char *name = "k"; (void)name; // k of k\n    k<<<')
    text = joined(special)
    assert '"k"; (void)name; // k of k' in text


@pytest.mark.parametrize(
    ("special", "general", "reason"),
    [
        (STRIDED.replace("int n)\n{\n    k", "long n)\n{\n    k"), GENERAL, "different signatures"),
        (STRIDED, GENERAL.replace("scale(const", "other(const"), "0 functions are named 'scale'"),
        (
            STRIDED + "\nvoid again(float *y) { scale(y, y, 1); }\n",
            GENERAL + "\nvoid again(float *y) { scale(y, y, 1); }\n",
            "other code of kernel.cu names 'scale'",
        ),
        (STRIDED + "\n#ifdef X\nint z;\n#endif\n", GENERAL, "differ in a namespace, a conditional"),
        (
            "#define GLUE(a, b) a##b\n" + STRIDED,
            "#define GLUE(a, b) a##b\n" + GENERAL,
            "pastes names together",
        ),
        (
            STRIDED + "\n#ifdef X\nvoid f(float *y) { k<<<1, 1>>>(y, y, 1); }\n#endif\n",
            GENERAL + "\n#ifdef X\nvoid f(float *y) { k<<<1, 1>>>(y, y, 1); }\n#endif\n",
            "'k' is named where the parser does not follow",
        ),
        ("#define HEADERS 2\n" + STRIDED, GENERAL, "macro 'HEADERS' differs and nothing visible uses it"),
        (
            STRIDED.replace("        y[i] = twice(first(x, i));", "    { int k = 2; y[i] = k * first(x, i); }"),
            GENERAL,
            "'k' has two meanings",
        ),
        (
            STRIDED.replace("        y[i] =", "    { Shape s = {}; y[i] = s.k; }\n        y[i] ="),
            GENERAL,
            "'k' has two meanings",
        ),
        ("// kernelskill: off\n" + STRIDED, "// kernelskill: off\n" + GENERAL, "kernelskill: off"),
        (
            STRIDED.replace("static const int ROWS = 4;", "__device__ int ticket[2];").replace(
                "        y[i] =", "        ticket[0] = 0, y[i] ="
            ),
            GENERAL.replace("static const int ROWS = 4;", "__device__ int ticket;").replace(
                "        y[i] =", "        ticket = 0, y[i] ="
            ),
            "'ticket' lasts between calls",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_separated_is_declined(special: str, general: str, reason: str) -> None:
    with pytest.raises(SkillRefused, match=re.escape(reason)):
        joined(special, general)


def test_a_static_that_guards_a_shared_variable_is_declined() -> None:
    state = ("static const int ROWS = 4;", "__device__ int seen;")
    use = ("        y[i] =", "        atomicAdd(&seen, 1), y[i] =")
    once = ("    k<<<", "    static bool ready = false;\n    ready = true;\n    k<<<")
    general = changed(state, use, once)
    special = changed(("blocks(n), BLOCK", "blocks(n), 128"), text=general)
    with pytest.raises(SkillRefused, match="'ready' and a variable of the file last between calls"):
        joined(special, general)
    assert "scale_small" in joined(changed(once, ("BLOCK 256", "BLOCK 64")), changed(once))


def test_variants_differ_in_their_main_file_only() -> None:
    one = candidate(GENERAL, common="int a;\n")
    other = candidate(STRIDED, common="int b;\n")
    with pytest.raises(SkillRefused, match="more than the main file"):
        dispatch_on_size(one, other, "scale", SMALL)
    declared = 'extern "C" void scale(const float *, float *, int);\n'
    main = '#include "common.cuh"\n'
    found = dispatch_on_size(
        candidate(main + GENERAL, common=declared), candidate(main + STRIDED, common=declared), "scale", SMALL
    )
    assert found.text_of("common.cuh") == declared
    calling = declared + "inline void twice_over(float *y) { scale(y, y, 1); }\n"
    with pytest.raises(SkillRefused, match=r"other code of common\.cuh names 'scale'"):
        dispatch_on_size(
            candidate(main + GENERAL, common=calling),
            candidate(main + STRIDED, common=calling),
            "scale",
            SMALL,
        )


def test_the_size_must_be_one_of_the_launcher() -> None:
    for name in ("m", "x"):
        with pytest.raises(SkillRefused, match=f"no size {name!r}"):
            joined(STRIDED, condition=SizeCondition(name, "small", 1))
