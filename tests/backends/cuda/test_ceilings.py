"""The kernels that measure ceilings: right on the emulated device, and every one of them the work it claims."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kernelskill.backends.cuda.ceiling_rates import RATES, Mode, Shape
from kernelskill.backends.cuda.ceilings import SOURCE, CeilingProbe
from kernelskill.backends.emulated import EmulatedBackend
from kernelskill.backends.toolchain import Toolchain
from kernelskill.hardware.gpus import find_gpu, load_gpus
from kernelskill.schema.evaluation import Status

EVERYTHING = "KERNELSKILL_CEILINGS_EMULATED"
emulated = pytest.mark.skipif(
    not os.environ.get(EVERYTHING), reason=f"translating all kernels takes a minute; set {EVERYTHING}=1"
)
_ON_TENSOR_CORES = (Mode.WARP_PRODUCTS, Mode.GROUP_PRODUCTS)


@pytest.fixture(scope="module")
def probe() -> CeilingProbe:
    return CeilingProbe(
        EmulatedBackend(find_gpu("h200")), ("-DSTEPS=1",)
    )  # translated in a third of the time


@pytest.fixture(scope="module")
def machine_code(tmp_path_factory: pytest.TempPathFactory) -> str:
    toolchain = Toolchain.find()
    cubin = tmp_path_factory.mktemp("ceilings") / "device.cubin"
    command = [toolchain.nvcc, "-O3", "-std=c++17", "-arch=sm_90a", "-cubin", "-o", cubin, SOURCE]
    subprocess.run(command, check=True, capture_output=True)
    assert toolchain.nvdisasm is not None
    done = subprocess.run([toolchain.nvdisasm, "-c", cubin], capture_output=True, text=True, check=True)
    return done.stdout


def _after(probe: CeilingProbe, mode: Mode, shape: Shape, rounds: int, folder: Path) -> np.ndarray:
    with probe.open() as worker:
        worker.load(probe.plan(mode, shape, rounds))
        worker.fill({}, poison=0)
        outcome = worker.run(timeout_s=60)
        assert outcome.status is Status.PASSED, outcome.detail
        assert worker.damaged_guards() == ()
        worker.read("memory", folder / "memory")
    return np.fromfile(folder / "memory", np.uint32)


@emulated
@pytest.mark.parametrize("mode", [mode for mode in Mode if mode not in _ON_TENSOR_CORES])
def test_no_kernel_leaves_its_memory(mode: Mode, probe: CeilingProbe, tmp_path: Path) -> None:
    slices = {Mode.READ_3_WRITE_1: 4, Mode.READ_2_WRITE_1: 3, Mode.READ_1_WRITE_2: 3, Mode.COPY: 2}
    elements = 1500  # neither a whole block nor a multiple of one
    shape = Shape(elements=elements, blocks=2, buffer_bytes=16 * elements * slices.get(mode, 1))
    _after(probe, mode, shape, 2, tmp_path)


@emulated
def test_streams_write_the_last_slices_whole(probe: CeilingProbe, tmp_path: Path) -> None:
    elements = 1500
    memory = _after(probe, Mode.READ_1_WRITE_2, Shape(elements, 1, 48 * elements), 1, tmp_path)
    floats = memory.view(np.float32).reshape(3, elements, 4)
    assert (floats[0] == 0).all()
    assert (floats[1:] == [1, 2, 3, 4]).all()


@emulated
def test_atomics_add_what_is_counted(probe: CeilingProbe, tmp_path: Path) -> None:
    shape = Shape(elements=700, blocks=2, buffer_bytes=2800)
    (rate,) = (rate for rate in RATES if rate.mode is Mode.ATOMIC_SPREAD)
    for mode in (Mode.ATOMIC_SPREAD, Mode.ATOMIC_SAME):
        memory = _after(probe, mode, shape, 3, tmp_path)
        assert memory.sum() == 3 * rate.amount(shape)
        assert (memory > 0).sum() == (700 if mode is Mode.ATOMIC_SPREAD else 1)


@pytest.mark.parametrize(
    ("kernel", "opcode", "least"),
    [
        ("_Z6chainsIfEvPT_i", "FFMA", 256),
        ("_Z6chainsIdEvPT_i", "DFMA", 256),
        ("_Z6chainsIjEvPT_i", "HFMA2", 256),
        ("_Z7specialPfi", "MUFU.EX2", 256),
        ("_Z12second_levelP6float4ii", "LDG", 4),
        ("_Z7atomicsPjii", "REDG", 4),
        ("_Z14shared_atomicsPji", "ATOMS", 4),
        ("_Z13warp_productsPfi", "HMMA", 8),
        ("_Z14group_productsPfi", "HGMMA", 4),
    ],
)
def test_the_compiler_leaves_no_work_out(kernel: str, opcode: str, least: int, machine_code: str) -> None:
    own = machine_code.split(f".text.{kernel}:", 1)[1].split("\n.text.", 1)[0]
    assert len(re.findall(rf"\*/\s+(?:@!?U?P\d+ )?\s*{re.escape(opcode)}\b", own)) >= least


def test_every_gpu_has_room_for_every_rate() -> None:
    for gpu in load_gpus():
        for rate in RATES:
            shape = rate.shape(gpu)
            assert shape.buffer_bytes <= gpu.memory_bytes / 4
            assert 0 < shape.elements < 2**31
            assert rate.amount(shape) > 0
            if rate.flush_l2:
                assert shape.buffer_bytes > 8 * gpu.l2_bytes
    assert len({rate.name for rate in RATES}) == len(RATES) == len(Mode) - 1
