import pytest

from kernelskill.profiling.potential import LEAST_DISTANCE, plain_name, potentials
from kernelskill.schema.device import Conditions
from kernelskill.schema.profile import KernelProfile, Profile


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
