import pytest

from kernelskill.profiling.potential import LEAST_DISTANCE, hot_kernels, plain_name, potentials
from kernelskill.schema.device import Conditions
from kernelskill.schema.profile import KernelProfile, Profile, Roofline


def kernel(name: str, share: float, **metrics: float) -> KernelProfile:
    return KernelProfile(
        kernel=name, launches=1, time_share=share, grid=(1, 1, 1), block=(32, 1, 1), metrics=metrics
    )


def profile(*kernels: KernelProfile, source: str = "trace") -> Profile:
    return Profile(
        candidate="c", case=0, source=source, kernels=kernels, conditions=Conditions(device="d", gpu="g")
    )


def test_the_share_of_the_time_counts_by_its_distance_from_the_roof() -> None:
    found = potentials(
        profile(
            kernel("void hot<float>(float *)", 0.7, estimate__dram_pct=90.0),
            kernel("ns::cold", 0.3, estimate__latency_pct=95.0),
        )
    )
    assert found["hot"].distance == LEAST_DISTANCE
    assert found["cold"].distance == 1.0
    assert found["cold"].winnable > found["hot"].winnable


def test_memory_that_is_kept_busy_with_waste_is_no_roof() -> None:
    busy = kernel("k", 1.0, estimate__dram_pct=90.0, trace__moved_bytes=1e9, trace__unique_bytes=1e8)
    assert potentials(profile(busy))["k"].distance == pytest.approx(0.91)


def test_instances_of_one_template_count_together_and_what_is_unknown_is_far_from_the_roof() -> None:
    found = potentials(
        profile(kernel("k<1>", 0.5), kernel("k<2>", 0.25, estimate__fp32_pct=100.0), source="static")
    )
    assert found["k"].time_share == 0.75
    assert found["k"].winnable == pytest.approx(0.5 + 0.05)
    assert potentials(profile()) == {}


def test_plain_names() -> None:
    assert [plain_name(n) for n in ("k", "void a::k<int, 4>", "k(float *, int)", "a::b::k")] == ["k"] * 4


def standing(fraction: float, case: int = 0) -> Roofline:
    return Roofline(
        case=case, bytes=1, flops=None, time_ms=1, floor_ms=fraction, bound="memory", fraction=fraction,
        bytes_per_s=1, flops_per_s=None, ceiling_bytes_per_s=1, ceiling_flops_per_s=1, source="cost",
    )  # fmt: skip


def test_what_each_kernel_could_win_follows_amdahls_law() -> None:
    both = profile(
        kernel("hot", 0.6, estimate__dram_pct=50.0), kernel("cold", 0.4, estimate__latency_pct=95.0)
    )
    hot, cold = hot_kernels(both)
    assert (hot.winnable, hot.speedup) == (pytest.approx(0.3), pytest.approx(1 / 0.7))
    assert (cold.winnable, cold.speedup) == (pytest.approx(0.4), pytest.approx(1 / 0.6))
    assert cold.speedup_together == pytest.approx(1 / 0.3)
    assert hot.known
    assert cold.known


def test_no_more_is_won_in_all_than_the_roof_leaves() -> None:
    both = profile(kernel("hot", 0.6), kernel("cold", 0.4))
    hot, cold = hot_kernels(both, standing(0.7))
    assert hot.winnable == pytest.approx(0.3)
    assert cold.speedup_together == pytest.approx(1 / 0.7)
    assert hot_kernels(both, standing(0.7, case=1))[0].winnable == pytest.approx(0.6)


def test_without_counters_a_kernels_distance_is_unknown_unless_it_is_alone() -> None:
    hot, _ = hot_kernels(profile(kernel("hot", 0.6), kernel("cold", 0.4), source="static"))
    assert (hot.known, hot.winnable) == (False, pytest.approx(0.6))
    (alone,) = hot_kernels(profile(kernel("k", 1.0), source="static"), standing(0.25))
    assert (alone.known, alone.winnable) == (True, pytest.approx(0.75))
