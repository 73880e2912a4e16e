from kernelskill.hardware.gpus import find_gpu
from kernelskill.profiling.potential import plain_name
from kernelskill.schema.build import KernelResources
from kernelskill.schema.candidate import Candidate
from kernelskill.search.screening import after_building, before_building, spilled_bytes

H200 = find_gpu("h200")


def source(block: str, shared: str = "32", launch: str = "k") -> Candidate:
    return Candidate.of(
        "kernel.cu",
        {
            "kernel.cu": f"""
#define TILE {shared}
__global__ void k(float *y)
{{
    __shared__ float tile[TILE][32];
    tile[0][threadIdx.x % 32] = y[threadIdx.x];
    y[threadIdx.x] = tile[0][0];
}}
extern "C" void run(float *y) {{ {launch}<<<1, {block}>>>(y); }}
"""
        },
    )


BASE = source("128")


def resources(registers: int, name: str = "k", spills: int = 0) -> KernelResources:
    return KernelResources(
        name=name, display_name=name, registers=registers, static_shared_bytes=4096, spill_load_bytes=spills
    )


def test_blocks_that_cannot_be_are_not_built() -> None:
    assert before_building(source("256"), BASE, H200) == ""
    assert "2048 threads a block" in before_building(source("dim3(64, 32)"), BASE, H200)
    assert "bytes of static shared memory do not fit" in before_building(source("256", "512"), BASE, H200)
    assert before_building(source("n"), BASE, H200) == "", "unknown is no reason"
    assert before_building(source("2048"), source("2048"), H200) == "", "the base's own habit"


def test_a_multiprocessor_with_idle_schedulers_is_not_timed() -> None:
    small = H200.model_copy(update={"shared_bytes_per_sm": 10_000})
    assert "only 1 resident warp, for its shared memory" in before_building(source("32"), BASE, small)
    assert before_building(source("128"), BASE, small) == ""


def test_registers_count_once_they_are_known() -> None:
    before = (resources(32),)
    assert after_building((resources(64),), source("256"), before, H200) == ""
    reason = after_building((resources(128, "ns::k<int>"),), source("1024"), before, H200)
    assert reason == "k: no block of 1024 threads fits a multiprocessor, for its registers"
    assert after_building((resources(128),), source("1024"), (resources(128),), H200) == ""
    assert after_building((resources(128, "other"),), source("1024"), before, H200) == ""


def test_names_and_spills() -> None:
    assert plain_name("void ns::k<float, 4>") == "k"
    assert spilled_bytes((resources(32), resources(32, spills=8))) == 8
