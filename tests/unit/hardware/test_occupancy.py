import csv
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelskill.hardware.gpus import find_gpu, load_gpus
from kernelskill.hardware.occupancy import compute_capability, occupancy

CALCULATOR = Path("/usr/local/cuda/include/cuda_occupancy.h")

PROGRAM = r"""
#include <cuda_occupancy.h>
#include <cstdio>
int main() {
  int major, minor, threads, registers, shared, sm_threads, sm_registers, sm_shared, block_shared, reserved;
  while (scanf("%d%d%d%d%d%d%d%d%d%d", &major, &minor, &threads, &registers, &shared, &sm_threads, &sm_registers,
               &sm_shared, &block_shared, &reserved) == 10) {
    cudaOccDeviceProp p; cudaOccFuncAttributes a; cudaOccDeviceState s; cudaOccResult r;
    p.computeMajor = major; p.computeMinor = minor; p.maxThreadsPerBlock = 1024;
    p.maxThreadsPerMultiprocessor = sm_threads; p.regsPerBlock = 65536; p.regsPerMultiprocessor = sm_registers;
    p.warpSize = 32; p.sharedMemPerBlock = 49152; p.sharedMemPerMultiprocessor = sm_shared; p.numSms = 100;
    p.sharedMemPerBlockOptin = block_shared; p.reservedSharedMemPerBlock = reserved;
    a.maxThreadsPerBlock = 1024; a.numRegs = registers; a.sharedSizeBytes = 0;
    a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; a.maxDynamicSharedSizeBytes = block_shared;
    s.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, threads, shared)) r.activeBlocksPerMultiprocessor = -1;
    printf("%d\n", r.activeBlocksPerMultiprocessor);
  }
}
"""


def test_limits_match_the_profiler(golden: Path) -> None:
    gpu = find_gpu("h200")
    with (golden / "ncu" / "occupancy_h200.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["ID"]]
    assert len(rows) == 15
    for row in rows:
        number = {
            name: int(float(value.replace(",", ""))) for name, value in row.items() if "launch__" in name
        }
        shared = (
            number["launch__shared_mem_per_block_static"] + number["launch__shared_mem_per_block_dynamic"]
        )
        found = occupancy(
            gpu,
            number["launch__registers_per_thread"],
            shared,
            number["launch__block_size"],
            shared_capacity=number["launch__shared_mem_config_size"],
        )
        assert found.limits == {
            "blocks": number["launch__occupancy_limit_blocks"],
            "threads": number["launch__occupancy_limit_warps"],
            "registers": number["launch__occupancy_limit_registers"],
            "shared memory": number["launch__occupancy_limit_shared_mem"],
        }, row["Kernel Name"]


@pytest.mark.skipif(
    not CALCULATOR.is_file() or not shutil.which("g++"), reason="no occupancy calculator header"
)
def test_blocks_match_the_vendors_calculator(tmp_path: Path) -> None:
    source = tmp_path / "calculator.cpp"
    source.write_text(PROGRAM)
    program = tmp_path / "calculator"
    command = ["g++", "-w", f"-I{CALCULATOR.parent}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    cases = [
        (gpu, threads, registers, shared)
        for gpu in load_gpus()
        for threads in (1, 32, 96, 160, 256, 672, 1024)
        for registers in (16, 33, 40, 64, 72, 128, 255)
        for shared in (0, 100, 4096, 16500, 48000, 98304)
    ]
    asked = "\n".join(
        " ".join(
            str(value)
            for value in (
                *compute_capability(gpu),
                threads,
                registers,
                shared,
                gpu.max_threads_per_sm,
                gpu.registers_per_sm,
                gpu.shared_bytes_per_sm,
                gpu.shared_bytes_per_block,
                1024 if compute_capability(gpu) >= (8, 0) else 0,
            )
        )
        for gpu, threads, registers, shared in cases
    )
    answer = subprocess.run(
        [str(program)], input=asked, capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(answer) == len(cases)
    for (gpu, threads, registers, shared), blocks in zip(cases, answer, strict=True):
        found = occupancy(gpu, registers, shared, threads).blocks_per_sm
        assert found == int(blocks), (gpu.short_name, threads, registers, shared)


def test_the_scarcest_resource_is_named() -> None:
    gpu = find_gpu("h200")
    assert occupancy(gpu, 16, 0, 32).limit == "blocks"
    assert occupancy(gpu, 32, 0, 1024).limit == "threads"
    assert occupancy(gpu, 128, 0, 256).limit == "registers"
    assert occupancy(gpu, 16, 100_000, 256).limit == "shared memory"
    assert occupancy(gpu, 16, 0, 256).fraction == 1.0
    assert occupancy(gpu, 16, 300_000, 256).blocks_per_sm == 0


@pytest.mark.parametrize("threads", [0, 1025, -1])
def test_impossible_blocks_are_refused(threads: int) -> None:
    with pytest.raises(ValueError, match="1 to 1024"):
        occupancy(find_gpu("l4"), 32, 0, threads)
