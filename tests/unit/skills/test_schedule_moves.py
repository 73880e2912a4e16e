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


IN_MEMORY = """\
#include <cuda_runtime.h>

static __global__ void means(const float* data, float* mean, int rows, int cols)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < cols) {
        mean[j] = 0.0f;
        for (int i = 0; i < rows; i++) mean[j] += data[i * cols + j];
        mean[j] /= rows;
    }
}

extern "C" void run(const float* x, float* y, int rows, int cols)
{
    means<<<(cols + 127) / 128, 128>>>(x, y, rows, cols);
}
"""
LANES = Step(skill="parallelism/column_lanes", site="means", parameters=(("lanes", "16"), ("threads", "32")))


def test_what_nobody_promised_is_looked_at_by_the_launcher(library: SkillLibrary) -> None:
    made = apply_step(candidate(IN_MEMORY), LANES, library, CONTEXT).candidate
    assert "means_overlapping<<<(cols + 127) / 128, 128>>>(x, y, rows, cols);" in made.source
    assert "static __global__ void means_overlapping(" in made.source
    assert "const size_t mean_bytes = sizeof(float) * cols;" in made.source
    assert "reinterpret_cast<size_t>(y) + mean_bytes <= reinterpret_cast<size_t>(x)" in made.source
    for promised in (
        IN_MEMORY.replace("float* y", "float* __restrict__ y"),
        IN_MEMORY.replace("float* mean", "float* __restrict__ mean"),
    ):
        assert "overlapping" not in apply_step(candidate(promised), LANES, library, CONTEXT).candidate.source


def test_the_kernel_that_was_kept_is_left_alone_and_the_fast_one_goes_on(library: SkillLibrary) -> None:
    made = apply_step(candidate(IN_MEMORY), LANES, library, CONTEXT).candidate
    steps, refusals = find_steps(made, library.get("parallelism/launch_bounds"), library, CONTEXT)
    assert {found.step.site for found in steps} <= {"means"}
    assert "it stands in only where the arrays of means overlap" in {refusal.reason for refusal in refusals}
    other = Step(
        skill="parallelism/points_per_thread",
        site="means",
        parameters=(("points", "1x2"), ("threads", "1x128")),
    )
    with pytest.raises(SkillRefused):
        apply_step(made, LANES, library, CONTEXT)
    again = combine(candidate(IN_MEMORY), [other], library, CONTEXT).candidate
    assert again.source.count("means_overlapping<<<") == 1


def test_a_kernel_named_in_two_places_is_not_guarded(library: SkillLibrary) -> None:
    declared = IN_MEMORY.replace(
        "static __global__",
        "static __global__ void means(const float* data, float* mean, int rows, int cols);\n\nstatic __global__",
        1,
    )
    with pytest.raises(SkillRefused, match="named in other places"):
        apply_step(candidate(declared), LANES, library, CONTEXT)


def test_in_a_namespace_everything_is_named_in_full(library: SkillLibrary) -> None:
    text = IN_MEMORY.replace("static __global__", "namespace nn {\nstatic __global__").replace(
        'extern "C"', '}\nextern "C"'
    )
    made = apply_step(
        candidate(text.replace(" means<<<", " nn::means<<<")), LANES, library, CONTEXT
    ).candidate
    assert "nn::means<<<j_blocks, nn::kThreads>>>" in made.source
    assert "nn::means_overlapping<<<(cols + 127) / 128, 128>>>" in made.source
    assert "+ nn::kJTile - 1) / nn::kJTile" in made.source
