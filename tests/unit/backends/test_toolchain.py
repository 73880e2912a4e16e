import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import CompilerMissing

ROOT = Path(__file__).resolve().parents[3]
NVCC = """#!/bin/sh
case "$*" in
  *--version*) echo "Cuda compilation tools, release {short}, V{version}";;
  *--dryrun*) echo '#$ _HERE_={here}';;
esac
"""


def make_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def make_toolkit(root, version="12.9.86"):
    make_program(
        root / "bin" / "nvcc",
        NVCC.format(short=version.rpartition(".")[0], version=version, here=root / "bin"),
    )
    (root / "include").mkdir()
    (root / "include" / "cuda_runtime.h").touch()


def make_gxx(folder):
    make_program(folder / "g++", "#!/bin/sh\necho 13.2.1\n")


def find(path, **variables):
    """Ask in a process of its own, as the answer is kept for a process's life."""
    script = """
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import CompilerMissing
try: print(Toolchain.find())
except CompilerMissing as error: print("missing:", error, "|", error.remedy)
"""
    environment = {"PATH": str(path), "PYTHONPATH": str(ROOT), **{k: str(v) for k, v in variables.items()}}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_script_on_the_path_leads_to_the_real_toolkit(tmp_path):
    make_toolkit(tmp_path / "toolkit")
    wrapper = f'#!/bin/sh\nexec {tmp_path}/toolkit/bin/nvcc "$@"\n'
    make_program(tmp_path / "bin" / "nvcc", wrapper)
    make_gxx(tmp_path / "bin")
    found = find(tmp_path / "bin")
    assert f"nvcc=PosixPath('{tmp_path}/bin/nvcc')" in found
    assert f"cuda_include=PosixPath('{tmp_path}/toolkit/include')" in found
    assert "nvcc_version='12.9.86'" in found
    assert "gxx_version='13.2.1'" in found


def test_cuda_home_is_used_where_the_path_has_no_nvcc(tmp_path):
    make_toolkit(tmp_path / "toolkit", "13.0.88")
    make_gxx(tmp_path / "bin")
    assert f"nvcc=PosixPath('{tmp_path}/toolkit/bin/nvcc')" in find(
        tmp_path / "bin", CUDA_HOME=tmp_path / "toolkit"
    )


def test_no_host_compiler_is_named_with_the_remedy(tmp_path):
    make_toolkit(tmp_path / "toolkit")
    found = find(tmp_path / "toolkit" / "bin")
    assert found.startswith("missing: no host compiler")
    assert "apt install g++" in found


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\necho broken >&2; exit 3\n", "#!/bin/sh\necho 'no version here'\n"]
)
def test_an_nvcc_that_is_none_is_named_with_the_remedy(tmp_path, text):
    make_program(tmp_path / "bin" / "nvcc", text)
    make_gxx(tmp_path / "bin")
    found = find(tmp_path / "bin")
    assert found.startswith("missing:")
    assert "pip install 'kernelskill[nvcc]'" in found


@pytest.mark.parametrize("layout", ["cu13", "cuda_nvcc"])
def test_the_packages_of_pip_are_found(tmp_path, layout):
    make_toolkit(tmp_path / "site" / "nvidia" / layout)
    script = """
from kernelskill.backends.toolchain import packaged_programs
print(packaged_programs("nvcc"))
"""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{tmp_path}/site"}
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert f"{tmp_path}/site/nvidia/{layout}/bin/nvcc" in found


def test_a_package_that_holds_ptxas_alone_is_named(tmp_path):
    make_program(tmp_path / "site" / "nvidia" / "cuda_nvcc" / "bin" / "ptxas", "#!/bin/sh\n")
    script = """
from kernelskill.backends.toolchain import packaged_programs
print(packaged_programs("nvcc"), packaged_programs("ptxas", "nvcc"))
"""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{tmp_path}/site"}
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert f"{tmp_path}/site/nvidia/cuda_nvcc/bin/ptxas" in found
    assert "bin/nvcc" not in found.partition(str(tmp_path))[0]


@pytest.mark.parametrize(
    ("nvcc", "driver", "too_new"),
    [
        ("13.0.88", "12.4", True),
        ("12.9.86", "12.0", False),
        ("12.9.86", "13.0", False),
        ("13.5.37", "13.0", False),
    ],
)
def test_a_driver_serves_all_of_its_major_version(tmp_path, nvcc, driver, too_new):
    toolchain = Toolchain(
        nvcc=tmp_path,
        nvcc_version=nvcc,
        root=tmp_path,
        cuda_include=tmp_path,
        gxx=tmp_path,
        gxx_version="12.2.0",
    )
    assert toolchain.is_too_new_for(driver) is too_new


def test_this_machines_toolchain_is_found_once():
    try:
        first = Toolchain.find()
    except CompilerMissing:
        pytest.skip("no CUDA compiler here")
    assert first is Toolchain.find()
    assert (first.cuda_include / "cuda_runtime.h").is_file()
    assert first.nvcc_major in (12, 13)
    assert first.nvcc_version in first.compiler
