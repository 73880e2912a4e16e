"""The wheel holds everything that a run needs: built, installed into a clean environment, and used."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kernelskill

CHECKOUT = Path(kernelskill.__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(out),
        str(CHECKOUT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_carries_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "kernelskill/_data/skills/compute/unroll/SKILL.md",
        "kernelskill/_data/skills/compute/unroll/transform.py",
        "kernelskill/_data/benchmarks/core/matmul/kernel.cu",
        "kernelskill/_data/prompts/README.md",
        "kernelskill/_data/experience_pool/README.md",
        "kernelskill/hardware/gpus.toml",
        "kernelskill/llm/prices.toml",
        "kernelskill/backends/recorder/main.cpp",
    ):
        assert needed in names, needed


@pytest.mark.slow
def test_a_clean_installation_runs_the_main_job(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    # Most modules of what is installed are never loaded here: those that are compile themselves.
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    done = subprocess.run([*install, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    bare = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"],
    }
    script = (
        "from kernelskill.resources import data_folder; print(data_folder('benchmarks') / 'core' / 'gelu')"
    )
    found = subprocess.run(
        [str(python), "-c", script], capture_output=True, text=True, check=True, env=bare, cwd=tmp_path
    )
    task = Path(found.stdout.strip())
    assert environment in task.parents
    (tmp_path / "kernelskill.toml").write_text("[run]\nslate = 2\npoints = 1\n", encoding="utf-8")
    command = [
        environment / "bin" / "kernelskill",
        "run",
        task / "kernel.cu",
        "--tests",
        task / "test.py",
        "--device",
        "emulated",
        "--rounds",
        "1",
        "--out",
        "result here",
    ]
    run = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, env=bare, cwd=tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = (tmp_path / "result here" / "report.md").read_text(encoding="utf-8")
    assert "estimated" in report
    assert (tmp_path / "result here" / "result" / "kernel.cu").is_file()
