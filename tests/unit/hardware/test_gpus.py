from pathlib import Path

import pytest

from kernelskill.backends.devices import open_backend
from kernelskill.errors import ConfigError, UnknownNameError
from kernelskill.hardware.gpus import find_gpu, load_gpus

NAMES = {
    "h200": "h200",
    "H200": "h200",
    "NVIDIA H200": "h200",
    "NVIDIA H200 NVL": "h200",
    "NVIDIA H100 80GB HBM3": "h100",
    "NVIDIA H100 PCIe": "h100-pcie",
    "h100-pcie": "h100-pcie",
    "NVIDIA A100-SXM4-40GB": "a100-40gb",
    "NVIDIA A100 80GB PCIe": "a100-80gb",
    "a100": "a100-40gb",
    "Tesla V100-SXM2-32GB": "v100",
    "NVIDIA L4": "l4",
    "NVIDIA GeForce RTX 4090": "rtx4090",
    "rtx_4090": "rtx4090",
    "NVIDIA GeForce RTX 3090": "rtx3090",
    "NVIDIA B200": "b200",
}


@pytest.mark.parametrize(("name", "short"), NAMES.items())
def test_every_name_of_a_gpu_finds_it(name: str, short: str) -> None:
    assert find_gpu(name).short_name == short


@pytest.mark.parametrize("name", ["NVIDIA L40S", "RTX 3090 Ti", "h2000", ""])
def test_other_gpus_are_not_mistaken_for_known_ones(name: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        find_gpu(name)
    assert "gpus.toml" in raised.value.remedy


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownNameError) as raised:
        find_gpu("h20")
    assert "h200" in raised.value.remedy


def test_facts_are_plausible() -> None:
    for gpu in load_gpus():
        peak = gpu.sm_count * 128 * 2 * gpu.clock_mhz * 1e6
        assert 0.45 * peak <= gpu.fp32_flops_per_s <= 1.06 * peak, gpu.name
        assert 0.8 * gpu.dram_bytes_per_s <= gpu.copy_bytes_per_s <= gpu.dram_bytes_per_s, gpu.name
        assert gpu.shared_bytes_per_block <= gpu.shared_bytes_per_sm
        assert gpu.source


def test_the_users_file_goes_first(home: Path) -> None:
    shipped = (Path(__file__).parents[3] / "kernelskill/hardware/gpus.toml").read_text()
    table = shipped[shipped.index("[l4]") : shipped.index("[rtx4090]")]
    folder = home / "config" / "kernelskill"
    folder.mkdir()
    (folder / "gpus.toml").write_text(table.replace("sm_count = 58", "sm_count = 57"))
    assert find_gpu("l4").sm_count == 57
    assert find_gpu("h200").sm_count == 132


def test_the_users_file_describes_a_gpu_that_is_not_there(home: Path) -> None:
    shipped = (Path(__file__).parents[3] / "kernelskill/hardware/gpus.toml").read_text()
    table = shipped[shipped.index("[l4]") : shipped.index("[rtx4090]")]
    table = (
        table.replace("[l4]", "[l40s]")
        .replace(r"'\bl4\b'", r"'\bl40s\b'")
        .replace("NVIDIA L4", "NVIDIA L40S")
    )
    folder = home / "config" / "kernelskill"
    folder.mkdir()
    (folder / "gpus.toml").write_text(table.replace("sm_count = 58", "sm_count = 142"))
    for name in ("l40s", "NVIDIA L40S"):
        assert find_gpu(name).sm_count == 142
    assert find_gpu("l4").sm_count == 58
    assert open_backend("emulated:l40s").gpu.short_name == "l40s"


@pytest.mark.parametrize("text", ["[l4", "[l4]\nname = 'x'", "l4 = 3", "[l4]\nmatch = ['(']"])
def test_a_broken_users_file_is_named(home: Path, text: str) -> None:
    folder = home / "config" / "kernelskill"
    folder.mkdir()
    (folder / "gpus.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"gpus\.toml"):
        find_gpu("l4")
