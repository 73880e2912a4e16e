import pytest

from kernelskill.backends.base import ProfileRun
from kernelskill.hardware.gpus import find_gpu
from kernelskill.profiling.profile import join_profile, with_measured_shares
from kernelskill.profiling.roofline import arithmetic_rate, roofline
from kernelskill.schema.build import Build, KernelResources
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import CaseShape, Timing
from kernelskill.schema.launch_plan import Launch, LaunchPlan
from kernelskill.schema.profile import KernelProfile
from kernelskill.schema.task import Allowance, Case, Cost, ElementType, Parameter, Role, Signature, Task

GPU = find_gpu("h200")
CONDITIONS = Conditions(device="cuda:0", gpu=GPU.name)
CASE = Case(index=3, arguments={"n": 1}, timed=True)


def timing(ms: float) -> Timing:
    return Timing(case=3, samples_ms=(ms,), median_ms=ms, low_ms=ms, high_ms=ms, evidence="measured")


def resources(name: str, registers: int) -> KernelResources:
    return KernelResources(
        name=f"_Z{name}", display_name=f"ns::{name}<int>", registers=registers, static_shared_bytes=0
    )


BUILD = Build(
    key="k",
    folder="/",
    architecture="sm_90a",
    device_code="c",
    kernels=(resources("hot", 128), resources("cold", 16)),
)
PLAN = LaunchPlan(
    device_code="c",
    symbol="f",
    allocations=(),
    operations=(
        Launch(kernel="_Zhot", grid=(528, 1, 1), block=(256, 1, 1), dynamic_shared_bytes=100_000),
        Launch(kernel="_Zcold", grid=(1, 1, 1), block=(32, 1, 1)),
        Launch(kernel="_Zcold", grid=(2, 1, 1), block=(32, 1, 1)),
    ),
)


def join(run: ProfileRun):
    return join_profile(run, BUILD, PLAN, candidate="x", case=3, gpu=GPU, conditions=CONDITIONS)


def test_without_counters_the_plan_gives_the_kernels() -> None:
    profile = join(ProfileRun(source="static", kernels=(), unavailable="ncu was not found"))
    assert profile.unavailable == "ncu was not found"
    assert [(kernel.kernel, kernel.launches) for kernel in profile.kernels] == [
        ("ns::hot<int>", 1),
        ("ns::cold<int>", 2),
    ]
    hot = profile.kernels[0]
    assert (hot.occupancy, hot.occupancy_limit) == (0.25, "registers")
    assert hot.metrics["plan__waves"] == pytest.approx(528 / (2 * 132))
    assert sum(kernel.time_share for kernel in profile.kernels) == pytest.approx(1)


def test_counters_keep_their_figures_and_gain_the_facts() -> None:
    measured = KernelProfile(
        kernel="ns::cold<int>",
        launches=2,
        time_share=1,
        grid=(2, 1, 1),
        block=(32, 1, 1),
        metrics={"launch__grid_size": 2.0, "launch__occupancy_limit_registers": 99.0},
    )
    profile = join(ProfileRun(source="ncu", kernels=(measured,), duration_ms=0.5))
    kernel = profile.kernels[0]
    assert kernel.metrics["launch__occupancy_limit_registers"] == 99.0
    assert kernel.metrics["plan__sm_count"] == 132
    assert kernel.resources == BUILD.kernels[1]
    assert kernel.occupancy == 0.5
    assert profile.duration_ms == 0.5


def shape(least: int, reads: int | None = None) -> CaseShape:
    return CaseShape(case=3, buffers={}, scalars={}, least_bytes=least, least_reads=reads)


def test_the_roofline_takes_the_users_cost_first() -> None:
    line = roofline(CASE, Cost(bytes=4.18e9, flops=1e9), shape(10**6), timing(2.0), GPU)
    assert (line.bound, line.source, line.case) == ("memory", "cost", 3)
    assert line.floor_ms == pytest.approx(1.0)
    assert line.fraction == pytest.approx(0.5)
    assert line.flops_per_s == pytest.approx(5e11)


def test_the_roofline_counts_buffers_else() -> None:
    line = roofline(CASE, None, shape(4_180_000_000), timing(1.0), GPU)
    assert (line.bound, line.source) == ("memory", "buffers")
    assert line.fraction == pytest.approx(1.0)
    mixed = roofline(CASE, Cost(flops=66.9e12), shape(4_180_000_000), timing(4000.0), GPU)
    assert mixed.bound == "compute"
    assert mixed.fraction == pytest.approx(0.25)


def test_the_roofline_may_know_nothing() -> None:
    line = roofline(CASE, None, None, timing(1.0), GPU)
    assert (line.bound, line.source, line.fraction, line.floor_ms) == ("unknown", "none", None, None)


def test_shares_that_were_measured_take_the_place_of_guesses_only() -> None:
    guessed = join(ProfileRun(source="static", kernels=(), unavailable="ncu was not found"))
    measured = with_measured_shares(guessed, {"ns::hot<int>": 0.2, "ns::cold<int>": 0.8}, 3.0)
    assert [(each.kernel, each.time_share) for each in measured.kernels] == [
        ("ns::cold<int>", 0.8),
        ("ns::hot<int>", 0.2),
    ]
    assert measured.duration_ms == 3.0
    assert with_measured_shares(guessed, {"ns::hot<int>": 1.0}, None).kernels == guessed.kernels
    counted = measured.model_copy(update={"source": "ncu"})
    assert with_measured_shares(counted, {"ns::hot<int>": 1.0, "ns::cold<int>": 0.0}, 9.0) == counted


def test_the_roofline_says_whether_its_ceilings_were_measured() -> None:
    assert roofline(CASE, None, shape(10**6), timing(1.0), GPU).ceilings == "data sheet"
    own = GPU.model_copy(update={"ceilings": "measured", "copy_bytes_per_s": 4e12})
    line = roofline(CASE, Cost(bytes=4e9), None, timing(2.0), own)
    assert (line.ceilings, line.fraction) == ("measured", pytest.approx(0.5))


def test_the_roofline_asks_for_the_stream_of_the_same_mix() -> None:
    mixes = ((0.0, 4.5e12), (0.5, 3.8e12), (1.0, 4.3e12))
    own = GPU.model_copy(
        update={"ceilings": "measured", "copy_bytes_per_s": 3.8e12, "stream_bytes_per_s": mixes}
    )
    rates = [
        roofline(CASE, None, shape(1000, reads), timing(1.0), own).ceiling_bytes_per_s
        for reads in (0, 250, 500, 1000, None)
    ]
    halfway = 2 / (1 / 4.5e12 + 1 / 3.8e12)
    assert rates == pytest.approx([4.5e12, halfway, 3.8e12, 4.3e12, 3.8e12])
    counted = roofline(CASE, Cost(bytes=4.3e9), shape(1000, 1000), timing(1.0), own)
    assert counted.fraction == pytest.approx(1.0)
    # The user's own bytes count, of the mix that the buffers have; a data sheet knows one rate alone.
    assert (
        roofline(CASE, None, shape(1000, 1000), timing(1.0), GPU).ceiling_bytes_per_s == GPU.copy_bytes_per_s
    )


@pytest.mark.parametrize(
    ("dtypes", "allow", "ceiling"),
    [
        (["float32", "float32"], (), GPU.fp32_flops_per_s),
        (["float64", "int32", "float64"], (), GPU.fp64_flops_per_s),
        (["float64", "float32"], (), GPU.fp32_flops_per_s),
        (["float16", "float32"], (), GPU.tensor_fp16_flops_per_s),
        (["bfloat16"], (), GPU.tensor_fp16_flops_per_s),
        (["float32"], (Allowance.LOWER_PRECISION,), GPU.tensor_fp16_flops_per_s),
        (["int32", "uint8"], (), GPU.fp32_flops_per_s),
    ],
)
def test_the_arithmetic_ceiling_is_that_of_the_arrays_types(
    dtypes: list[str], allow: tuple[Allowance, ...], ceiling: float
) -> None:
    elements = [ElementType(name=dtype, dtype=dtype, size_bytes=4) for dtype in dtypes]
    parameters = tuple(
        Parameter(name=f"p{n}", kind="pointer", element=element) for n, element in enumerate(elements)
    )
    task = Task(
        name="t",
        signature=Signature(symbol="t", parameters=parameters),
        cases=(CASE.model_copy(update={"timed": True}),),
        roles={parameter.name: Role.INPUT for parameter in parameters},
        tolerances={},
        allow=frozenset(allow),
        original="o",
        tests="t",
    )
    rate = arithmetic_rate(task, GPU)
    assert rate == ceiling
    line = roofline(CASE, Cost(flops=rate), None, timing(2000.0), GPU, flops_per_s=rate)
    assert (line.ceiling_flops_per_s, line.fraction) == (rate, pytest.approx(0.5))
