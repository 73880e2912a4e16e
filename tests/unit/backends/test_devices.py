import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill.backends.cuda.detect import architecture, parse_nvidia_smi
from kernelskill.backends.devices import open_backend
from kernelskill.errors import DeviceUnavailable, UnknownNameError


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", "", "emulate"])
def test_names_of_no_device_are_answered_with_the_right_ones(device: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        open_backend(device)
    assert "emulated" in raised.value.remedy


def test_an_unknown_gpu_to_emulate_is_named() -> None:
    with pytest.raises(UnknownNameError, match="h999"):
        open_backend("emulated:h999")


def test_a_gpu_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(DeviceUnavailable) as raised:
        open_backend("cuda:77")
    assert "emulated" in raised.value.remedy


def test_importing_the_names_loads_neither_driver_nor_compilers() -> None:
    program = "import sys, kernelskill.backends.devices; print([m for m in sys.modules if 'cuda' in m or 'emulated' in m])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"


def test_what_nvidia_smi_says_is_read_by_place() -> None:
    fields = ("driver_version", "clocks.current.sm", "clocks.current.memory")
    assert parse_nvidia_smi("580.159.04, 1980, [N/A]\n", fields) == {
        "driver_version": "580.159.04",
        "clocks.current.sm": "1980",
    }
    assert parse_nvidia_smi("No devices were found\n", fields) == {}


@pytest.mark.parametrize(
    ("capability", "name"), [((8, 6), "sm_86"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a")]
)
def test_architectures(capability: tuple[int, int], name: str) -> None:
    assert architecture(capability) == name


def test_the_folder_of_a_test_is_its_own(home: Path) -> None:
    assert os.environ["XDG_CACHE_HOME"].startswith(str(home))
