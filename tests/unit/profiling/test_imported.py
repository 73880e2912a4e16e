import lzma
from pathlib import Path

import pytest

from kernelskill.errors import TaskError
from kernelskill.profiling.diagnose import diagnose
from kernelskill.profiling.imported import import_profile
from kernelskill.schema.profile import BottleneckKind

GOLDEN = Path(__file__).parents[2] / "golden" / "ncu"


def test_a_captured_report_becomes_a_profile_hottest_first() -> None:
    profile = import_profile(GOLDEN / "patterns_base_units.csv", gpu="NVIDIA H200")
    assert profile.source == "ncu"
    assert profile.conditions.gpu == "NVIDIA H200"
    shares = [kernel.time_share for kernel in profile.kernels]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    assert profile.kernels[0].kernel == "matmul_uncoalesced"
    assert profile.unavailable == ""
    assert diagnose(profile, None)[0].kind is BottleneckKind.COALESCING_LOAD


def test_a_report_with_few_figures_says_what_it_lacks() -> None:
    profile = import_profile(GOLDEN / "details_2020.csv")
    assert profile.kernels[0].kernel == "mm<float, 3>"
    assert "--set full" in profile.unavailable
    assert diagnose(profile, None)[0].kind is BottleneckKind.DRAM_BANDWIDTH


def test_launches_of_one_kernel_are_joined_and_templates_kept_apart() -> None:
    profile = import_profile(GOLDEN / "mixed_kernels_stdout.txt")
    assert len({kernel.kernel for kernel in profile.kernels}) == len(profile.kernels)
    assert any(kernel.launches > 1 for kernel in profile.kernels)


@pytest.mark.parametrize("text", ["", "nothing\n", '"ID","Kernel Name","Grid Size","Block Size"\n'])
def test_a_file_without_kernels_is_refused_with_what_to_give(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    with pytest.raises(TaskError, match="no profiled kernel") as error:
        import_profile(file)
    assert "--page raw" in error.value.remedy


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot read"):
        import_profile(tmp_path / "none.csv")


def test_a_binary_report_tells_its_gpu_and_launches(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    file = tmp_path / "two.ncu-rep"
    file.write_bytes(lzma.decompress((GOLDEN / "two_kernels_2025.ncu-rep.xz").read_bytes()))
    profile = import_profile(file)
    assert profile.conditions.gpu == "NVIDIA H200"
    assert import_profile(file, gpu="another").conditions.gpu == "another"
    assert [(kernel.kernel, kernel.grid) for kernel in profile.kernels] == [
        ("strided", (131072, 1, 1)),
        ("add", (131072, 1, 1)),
    ]
    kinds = [limit.kind for limit in diagnose(profile, None) if limit.kernel == "strided"]
    assert BottleneckKind.COALESCING_LOAD in kinds
    assert profile.unavailable == ""


def test_a_damaged_binary_report_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "a.ncu-rep"
    file.write_bytes(b"NVR\0junk")
    with pytest.raises(TaskError) as error:
        import_profile(file)
    assert "ncu" in error.value.remedy
