from pathlib import Path

import pytest

from kernelskill.hardware.ceilings import (
    ceilings_file,
    driver_version,
    store_ceilings,
    stored_ceilings,
    with_ceilings,
)
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.device import Ceiling, Ceilings, Conditions

UUID, DRIVER = "GPU-1/2", "580.159"
RATES = {
    "stream 1:1": 4.1e12,
    "FMA fp32": 6e13,
    "L2 reads": 7e12,
    "tensor fp16, warp products": 6e14,
    "tensor fp16, warp group products": 9e14,
    "launch after launch": 1.5e-6,
}


def measured(**left_out: float) -> Ceilings:
    rates = tuple(
        Ceiling(name=name, value=value, unit="s" if "launch" in name else "op/s", samples=20, spread=0.01)
        for name, value in RATES.items()
        if name not in left_out
    )
    conditions = Conditions(device="cuda:0", gpu="NVIDIA H200")
    return Ceilings(uuid=UUID, gpu="NVIDIA H200", driver=DRIVER, conditions=conditions, rates=rates)


def test_what_was_measured_is_found_again_for_that_gpu_and_driver(home: Path) -> None:
    assert stored_ceilings(UUID, DRIVER) is None
    file = store_ceilings(measured())
    assert file.parent == home / "cache" / "kernelskill" / "ceilings"
    assert stored_ceilings(UUID, DRIVER) == measured()
    assert stored_ceilings(UUID, "590.1") is None
    assert stored_ceilings("GPU-1-2", DRIVER) is None  # the same file name, another GPU


@pytest.mark.parametrize("text", ["", "{}", "[", '{"version": 2}'])
def test_a_damaged_file_is_measured_again(text: str, home: Path) -> None:
    store_ceilings(measured())
    ceilings_file(UUID, DRIVER).write_text(text)
    assert stored_ceilings(UUID, DRIVER) is None


def test_measured_rates_take_the_place_of_the_data_sheet() -> None:
    sheet = find_gpu("h200")
    gpu = with_ceilings(sheet, measured())
    assert (gpu.ceilings, sheet.ceilings) == ("measured", "data sheet")
    assert (gpu.copy_bytes_per_s, gpu.fp32_flops_per_s, gpu.launch_latency_s) == (4.1e12, 6e13, 1.5e-6)
    assert gpu.tensor_fp16_flops_per_s == 9e14
    assert gpu.fp64_flops_per_s == sheet.fp64_flops_per_s
    assert gpu.dram_bytes_per_s == sheet.dram_bytes_per_s
    assert (
        with_ceilings(sheet.model_copy(update={"architecture": "sm_89"}), measured()).tensor_fp16_flops_per_s
        == 6e14
    )


def test_half_a_roof_is_no_measured_roof() -> None:
    sheet = find_gpu("h200")
    assert with_ceilings(sheet, measured(**{"FMA fp32": 0})) == sheet
    assert with_ceilings(sheet, None) == sheet


def test_a_rate_that_no_gpu_reaches_is_not_believed() -> None:
    sheet = find_gpu("h200")
    fast = tuple(
        rate.model_copy(update={"value": 1e15}) if rate.name in ("stream 1:1", "L2 reads") else rate
        for rate in measured().rates
    )
    assert with_ceilings(sheet, measured().model_copy(update={"rates": fast})) == sheet
    fast = tuple(
        rate.model_copy(update={"value": 1e15}) if rate.name == "L2 reads" else rate
        for rate in measured().rates
    )
    gpu = with_ceilings(sheet, measured().model_copy(update={"rates": fast}))
    assert (gpu.l2_bytes_per_s, gpu.ceilings) == (sheet.l2_bytes_per_s, "measured")


def test_the_driver_has_a_name_even_where_its_module_tells_none() -> None:
    assert driver_version("13.0")
