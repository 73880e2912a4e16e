"""Scans over a shared array by shuffles: what is written, and what is declined."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.proposal import Exactness
from kernelskill.skills.apply import find_steps
from kernelskill.skills.transformation import SkillContext
from tests.skills.applying import LIBRARY, changed_lines, refusals

SKILL, FLOATS = "parallelism/warp_scan", "parallelism/warp_scan_of_floats"
FILL = "s[t] = i < n ? in[i] : 0;\n__syncthreads();\n"
STEP = "int v = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += v; __syncthreads();"
LOOP = f"for (int d = 1; d < 128; d *= 2) {{ {STEP} }}\n"
STORE = "if (i < n) out[i] = s[t];\n"


def source(
    body: str, *, launch: str = "k<<<(n + 127) / 128, 128>>>(in, out, n);", head: str = "", kind: str = "int"
) -> str:
    parameters = f"const {kind}* in, {kind}* out, int n"
    return (
        f"{head}\n__global__ void k({parameters}) {{\n__shared__ {kind} s[128];\n"
        f"int t = threadIdx.x, i = blockIdx.x * 128 + t;\n{body}}}\n"
        f'extern "C" void f({parameters}) {{\n{launch}\n}}\n'
    )


def added(text: str, skill: str = SKILL, **parameters: str) -> str:
    return "\n".join(line[2:] for line in changed_lines(skill, text, **parameters) if line.startswith("+"))


def test_a_scan_becomes_a_call() -> None:
    made = added(source(FILL + LOOP + STORE), items="1")
    assert "int s_scanned = i < n ? in[i] : 0;" in made
    assert "s_scanned = block_scan_sum(s_scanned);" in made
    assert "if (i < n) out[i] = s_scanned;" in made
    assert made.count("__syncthreads();") == 1
    assert "__shared__ int of_warp[4];" in made


def test_several_elements_a_thread_keep_the_block_and_the_grid() -> None:
    made = added(source(FILL + LOOP + STORE), items="4")
    assert "k<<<(n + 127) / 128, 32>>>(in, out, n);" in made
    assert "constexpr int s_items = 4;" in made
    assert (
        "in_is_wide = i + (s_items - 1) < n && reinterpret_cast<unsigned long long>(&in[i]) % 16 == 0;"
        in made
    )
    assert "load_neighbours(&in[i], in_taken);" in made
    assert "store_neighbours(&out[i] - (s_items - 1), out_new);" in made


@pytest.mark.parametrize(
    ("step", "operator", "word"),
    [
        ("int v = t >= d ? s[t - d] : 1; __syncthreads(); s[t] *= v; __syncthreads();", "*=", "product"),
        ("int v = s[t]; if (t >= d) v |= s[t - d]; __syncthreads(); s[t] = v; __syncthreads();", "|=", "or"),
        ("int v = t >= d ? s[t - d] : -1; __syncthreads(); s[t] = v & s[t]; __syncthreads();", "&=", "and"),
        (
            "int a = s[t]; if (t >= d) { int b = s[t - d]; a = a < b ? b : a; } __syncthreads(); s[t] = a;"
            " __syncthreads();",
            "= other > sum ? other : sum",
            "max",
        ),
        (
            "int a = t >= d ? min(s[t - d], s[t]) : s[t]; __syncthreads(); s[t] = a; __syncthreads();",
            "= min(sum, other)",
            "min",
        ),
    ],
)
def test_operators(step: str, operator: str, word: str) -> None:
    made = added(source(FILL + f"for (int d = 1; d < 128; d *= 2) {{ {step} }}\n" + STORE), items="1")
    assert f"block_scan_{word}(s_scanned)" in made
    assert f"sum {operator}" in made


def test_elements_that_others_read_go_back_into_the_array() -> None:
    made = added(source(FILL + LOOP + "if (i < n) out[i] = s[127 - t];\n"), items="1")
    assert "s[threadIdx.x] = s_scanned;" in made


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (STORE, "no loop of it has a barrier"),
        (FILL + LOOP.replace("d < 128", "d < 64") + STORE, "takes no running result"),
        (FILL + LOOP.replace("d *= 2", "d *= 4") + STORE, "takes no running result"),
        (FILL + LOOP.replace("d = 1", "d = 2") + STORE, "takes no running result"),
        (FILL + LOOP.replace("d < 128", "d < n") + STORE, "when the loop ends can't be told"),
        (FILL + LOOP.replace("s[t] += v", "s[t] -= v") + STORE, "no part of a scan"),
        (FILL + LOOP.replace("s[t] += v", "s[t] += 2 * v") + STORE, "combine"),
        (FILL + LOOP.replace(": 0; __sync", ": 1; __sync") + STORE, "no part of a scan"),
        (FILL + LOOP.replace("t >= d", "t > d") + STORE, "takes no running result"),
        (FILL + LOOP.replace("t >= d", "in[t] > d") + STORE, "is read"),
        (
            FILL + LOOP.replace("__syncthreads(); s[t] += v;", "s[t] += v;") + STORE,
            "several threads touch one element",
        ),
        (FILL + LOOP.replace("s[t] += v; __syncthreads();", "s[t] += v;") + STORE, "without a barrier"),
        (FILL.replace("__syncthreads();\n", "") + LOOP + STORE, "without a barrier"),
        ("if (i >= n) return;\n" + FILL + LOOP + STORE, "leaves the kernel before the scan"),
        (FILL + LOOP.replace("s[t] += v;", "s[t] += v; out[i] = v;") + STORE, "within the scan"),
        (FILL + LOOP.replace("s[t] += v;", "s[t] = g(s[t], v);") + STORE, "'g' is called"),
        (
            FILL
            + "int last = 0;\n"
            + LOOP.replace("s[t] += v;", "s[t] += v; last = v;")
            + "out[i] = last;\n",
            "'last' is used after",
        ),
        (FILL + "if (n > 3) {\n" + LOOP + "}\n" + STORE, "some threads may not take"),
        (FILL + "int* p = s;\n" + LOOP + STORE, "more than an array"),
        (FILL + LOOP + 'asm volatile("");\n' + STORE, "asm"),
    ],
)
def test_what_is_declined(body: str, why: str) -> None:
    head = "__device__ int g(int a, int b) { return a + b; }"
    assert why in refusals(SKILL, source(body, head=head))[0]


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        ("k<<<(n + 127) / 128, n>>>(in, out, n);", "no constant"),
        ("k<<<1, 100>>>(in, out, n);", "no whole warps"),
        ("k<<<1, dim3(64, 2)>>>(in, out, n);", "along x alone"),
        ("k<<<1, 128>>>(in, out, n);\nk<<<1, 64>>>(in, out, n);", "different sizes"),
    ],
)
def test_blocks_that_are_declined(launch: str, why: str) -> None:
    assert why in refusals(SKILL, source(FILL + LOOP + STORE, launch=launch))[0]


@pytest.mark.parametrize(
    "body",
    [
        FILL + LOOP + "if (i < n) out[i] = s[t];\n__syncthreads();\nif (t == 0) out[0] = 1;\n",
        FILL + LOOP + "if (i < n) out[i] = s[t] + __shfl_sync(0xffffffffu, t, 0);\n",
        FILL + LOOP + "__shared__ int z;\nif (t == 0) z = s[127];\nif (i < n) out[i] = s[t];\n",
        FILL + LOOP + "if (i < n) out[i] = s[t] + LANE;\n",
        "n -= 1;\n" + FILL + LOOP + STORE,
        FILL + LOOP + "out[s[127 - t]] = t;\n",
    ],
)
def test_some_kernels_keep_one_element_a_thread(body: str) -> None:
    text = source(body, head="#define LANE (threadIdx.x % 32)")
    found, _ = find_steps(Candidate.of("k.cu", {"k.cu": text}), LIBRARY.get(SKILL), LIBRARY, SkillContext())
    assert [dict(entry.step.parameters) for entry in found] == [{"items": "1"}]


def test_floats_and_integers_are_skills_of_their_own() -> None:
    """So that `--keep-exact` allows the one and rules the other out."""
    assert LIBRARY.get(SKILL).exactness is Exactness.EXACT
    assert LIBRARY.get(FLOATS).exactness is Exactness.REORDERS
    floats = source(FILL + LOOP.replace("int v", "float v") + STORE, kind="float")
    assert "hold float" in refusals(SKILL, floats)[0]
    assert "block_scan_sum" in added(floats, FLOATS, items="1")
    assert "hold int" in refusals(FLOATS, source(FILL + LOOP + STORE))[0]
