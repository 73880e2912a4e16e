"""Moves on a lifted kernel as skills: they compose, can be taken up later, and close when text changes."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Candidate, Step
from kernelskill.skills.apply import apply_step, combine, find_steps
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused
from tests.skills.applying import LIBRARY

PRODUCT = """\
#include <cuda_runtime.h>

// Each thread computes one element.
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
        c[row * n + col] = sum;
    }
}

__global__ void scale(float* c, float f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = c[i] * f;
}

extern "C" void run(const float* a, const float* b, float* c, int m, int n, int k, float f)
{
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    product<<<grid, block>>>(a, b, c, m, n, k);
    scale<<<(m * n + 255) / 256, 256>>>(c, f, m * n);
}
"""
TILE = Step(skill="memory/shared_tile", site="product", parameters=(("tile", "16"),))
BLOCK = Step(
    skill="compute/register_blocking",
    site="product",
    parameters=(("depth", "16"), ("points", "4x4"), ("threads", "16x16")),
)
WIDE = Step(skill="memory/wide_tile_access", site="product", parameters=(("vector", "4"),))
COPY = Step(skill="memory/overlap_copies", site="product", parameters=(("copy", "double"),))
FLAT = Step(skill="memory/vector_points", site="scale", parameters=(("threads", "256"), ("vector", "4")))
CONTEXT = SkillContext()


def candidate(text: str = PRODUCT) -> Candidate:
    return Candidate.of("kernel.cu", {"kernel.cu": text})


@pytest.fixture(scope="module")
def library() -> SkillLibrary:
    return LIBRARY


def test_a_ladder_composes_and_remembers_its_moves(library: SkillLibrary) -> None:
    made = combine(candidate(), [TILE, BLOCK, WIDE, COPY], library, CONTEXT).candidate
    (scheduled,) = made.scheduled
    assert [move.move for move in scheduled.moves] == [
        "share_tiles",
        "block_points",
        "wide_access",
        "overlap_copies",
    ]
    assert "kRowPoints = 4" in made.source
    assert "// Each thread computes one element." in made.source
    assert made.source.count("__global__") == 2
    assert "scale<<<(m * n + 255) / 256, 256>>>(c, f, m * n);" in made.source


def test_the_order_of_other_kernels_steps_does_not_matter(library: SkillLibrary) -> None:
    first = combine(candidate(), [TILE, FLAT, BLOCK], library, CONTEXT).candidate
    second = combine(candidate(), [TILE, BLOCK, FLAT], library, CONTEXT).candidate
    assert len(first.scheduled) == 2
    assert first.source.split("extern")[0].count("__shared__") == 2
    assert sorted(first.source.split()) == sorted(second.source.split())


def test_a_candidate_read_back_can_be_scheduled_further(library: SkillLibrary) -> None:
    tiled = apply_step(candidate(), TILE, library, CONTEXT).candidate
    again = Candidate.model_validate_json(tiled.model_dump_json())
    assert again == tiled
    assert again.digest == tiled.digest
    assert (
        apply_step(again, BLOCK, library, CONTEXT).candidate
        == apply_step(tiled, BLOCK, library, CONTEXT).candidate
    )


def test_a_schedule_does_not_change_what_a_candidate_is(library: SkillLibrary) -> None:
    tiled = apply_step(candidate(), TILE, library, CONTEXT).candidate
    assert candidate(tiled.source).digest == tiled.digest


def test_an_edited_kernel_closes_its_schedule(library: SkillLibrary) -> None:
    tiled = apply_step(candidate(), TILE, library, CONTEXT).candidate
    edited = tiled.with_text("kernel.cu", tiled.source.replace("__syncthreads();", "__syncthreads() ;", 1))
    with pytest.raises(SkillRefused, match="edited after it was scheduled"):
        apply_step(edited, BLOCK, library, CONTEXT)


def test_edits_elsewhere_leave_a_schedule_open(library: SkillLibrary) -> None:
    tiled = apply_step(candidate(), TILE, library, CONTEXT).candidate
    edited = tiled.with_text("kernel.cu", tiled.source.replace("c[i] = c[i] * f", "c[i] *= f"))
    blocked = apply_step(edited, BLOCK, library, CONTEXT).candidate
    assert "c[i] *= f" in blocked.source
    assert "kRowPoints = 4" in blocked.source


def test_a_move_is_made_once(library: SkillLibrary) -> None:
    tiled = apply_step(candidate(), TILE, library, CONTEXT).candidate
    with pytest.raises(SkillRefused, match="was made already"):
        apply_step(tiled, TILE, library, CONTEXT)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (BLOCK, "not staged yet"),
        (WIDE, "not staged yet"),
        (Step(skill="memory/transpose_tile", site="product"), "accumulate over loops"),
        (Step(skill="memory/vector_points", site="product"), "accumulate over loops"),
        (Step(skill="compute/tensor_cores", site="product"), "not half or bfloat16"),
        (Step(skill="parallelism/row_lanes", site="scale"), "no loop accumulates"),
        (Step(skill="parallelism/sum_in_blocks", site="scale"), "not every store is an atomic update"),
    ],
)
def test_moves_that_do_not_apply_say_why(library: SkillLibrary, step: Step, reason: str) -> None:
    skill = library.get(step.skill)
    steps, refusals = find_steps(candidate(), skill, library, CONTEXT, only_kernels=(step.site,))
    assert not steps
    assert reason in refusals[0].reason


def test_large_tiles_go_to_dynamic_shared_memory(library: SkillLibrary) -> None:
    tiled = apply_step(candidate(), TILE, library, CONTEXT).candidate
    parameters = (("depth", "32"), ("points", "8x8"), ("threads", "16x16"))
    blocked = apply_step(tiled, BLOCK.model_copy(update={"parameters": parameters}), library, CONTEXT)
    text = apply_step(blocked.candidate, COPY, library, CONTEXT).candidate.files[0].text
    assert "extern __shared__" in text
    asked = text.index(
        "cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes)"
    )
    assert asked < text.index("product<<<")
    assert "kThreads, kSharedBytes" in text[asked:]


def test_a_kernel_whose_attributes_are_set_does_not_become_a_template(library: SkillLibrary) -> None:
    line = "    cudaFuncSetAttribute(product, cudaFuncAttributePreferredSharedMemoryCarveout, 50);\n    product<<<"
    tiled = apply_step(candidate(PRODUCT.replace("    product<<<", line)), TILE, library, CONTEXT).candidate
    blocked = apply_step(tiled, BLOCK, library, CONTEXT).candidate
    with pytest.raises(SkillRefused, match="named in other places"):
        apply_step(
            blocked,
            Step(skill="memory/wide_tile_access", site="product", parameters=(("vector", "4"),)),
            library,
            CONTEXT,
        )


def test_a_locked_kernel_is_left_alone(library: SkillLibrary) -> None:
    text = PRODUCT.replace("// Each thread", "// kernelskill: off\n// Each thread").replace(
        "__global__ void scale", "// kernelskill: on\n__global__ void scale"
    )
    with pytest.raises(SkillRefused, match="kernelskill: off"):
        apply_step(candidate(text), TILE, library, CONTEXT)


def test_a_kernel_whose_launch_is_locked_is_left_alone(library: SkillLibrary) -> None:
    text = PRODUCT.replace("    product<<<", "    // kernelskill: off\n    product<<<").replace(
        "    scale<<<", "    // kernelskill: on\n    scale<<<"
    )
    with pytest.raises(SkillRefused, match="kernelskill: off"):
        apply_step(candidate(text), TILE, library, CONTEXT)
