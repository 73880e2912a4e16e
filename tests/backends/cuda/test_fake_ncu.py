"""Profiling through a program called `ncu` that is a script: what it refuses, and what is said without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelskill.agents.profiler import Diagnosis
from kernelskill.backends.base import ProfileRun
from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.cuda.ncu import profile_with_ncu
from kernelskill.backends.toolchain import Toolchain
from kernelskill.hardware.gpus import find_gpu
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.profiling.diagnose import diagnose
from kernelskill.profiling.potential import hot_kernels
from kernelskill.profiling.profile import join_profile, with_measured_shares
from kernelskill.profiling.roofline import roofline
from kernelskill.report.diagnosis import diagnosis_lines
from kernelskill.schema.build import Build
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Timing
from kernelskill.schema.launch_plan import Launch, LaunchPlan
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.task import Case, Cost, ElementType, Parameter, Signature

SOURCE = """
__global__ void sums(const double* x, double* y, int n) {
  __shared__ double part[256];
  double s = 0;
  for (int i = threadIdx.x; i < n; i += 256) s += exp(x[blockIdx.x * n + i]) * x[i];
  part[threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.x == 0) { double t = 0; for (int i = 0; i < 256; i++) t += part[i]; y[blockIdx.x] = t; }
}
__global__ void scale(double* y, int n) { if (threadIdx.x < n) y[threadIdx.x] *= 2; }
extern "C" void f(const double* x, double* y, int n) { sums<<<64, 256>>>(x, y, n); scale<<<1, 64>>>(y, 64); }
"""
REAL = ElementType(name="double", dtype="float64", size_bytes=8)
SIGNATURE = Signature(
    symbol="f",
    parameters=(
        Parameter(name="x", kind="pointer", element=REAL, is_const=True, declared="const double*"),
        Parameter(name="y", kind="pointer", element=REAL, declared="double*"),
        Parameter(
            name="n",
            kind="scalar",
            element=ElementType(name="int", dtype="int32", size_bytes=4),
            declared="int",
        ),
    ),
    returns="void",
)
GPU = find_gpu("h200")
HEADER = '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"\\n"","","","","ns"\\n'
ROWS = '"0","sums(const double*)","(256, 1, 1)","(64, 1, 1)","900"\\n"1","scale(double*)","(64, 1, 1)","(1, 1, 1)","100"\\n'
TABLE = f"sys.stdout.write({(HEADER + ROWS)!r}.replace('\\\\n', '\\n'))"
DENIED = (
    "print('==PROF== Connected to process 7')\n"
    "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
    "Counters on the target device 0.')\nsys.exit(1)"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    found = compile_candidate(
        Candidate.of("kernel.cu", {"kernel.cu": SOURCE}),
        SIGNATURE,
        flags=(),
        architecture="sm_90a",
        toolchain=Toolchain.find(),
        cache=BuildCache(tmp_path_factory.mktemp("builds")),
    )
    assert isinstance(found, Build)
    return found


@pytest.fixture
def plan(built: Build) -> LaunchPlan:
    names = {kernel.display_name: kernel.name for kernel in built.kernels}
    return LaunchPlan(
        device_code=built.device_code,
        symbol="f",
        allocations=(),
        operations=(
            Launch(kernel=names["sums"], grid=(64, 1, 1), block=(256, 1, 1)),
            Launch(kernel=names["scale"], grid=(1, 1, 1), block=(64, 1, 1)),
        ),
    )


@pytest.fixture
def ncu(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return a function that puts a program called `ncu` with the given body first on the PATH."""
    before = os.environ["PATH"]
    folder = tmp_path / "bin"
    folder.mkdir()
    os.environ["PATH"] = f"{folder}:{before}"

    def put(body: str, interpreter: str = sys.executable) -> Path:
        program = folder / "ncu"
        program.write_text(f"#!{interpreter}\nimport os, sys, time\n{body}\n")
        program.chmod(0o755)
        return program

    yield put
    os.environ["PATH"] = before


def collected(built: Build, plan: LaunchPlan, limit_s: float = 60) -> ProfileRun:
    return profile_with_ncu(
        built, plan, {}, device=0, core=Path("/nowhere/replay.so"), depth="quick", limit_s=limit_s
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (DENIED, "NVreg_RestrictProfilingToAdminUsers=0"),
        (
            "print('==ERROR== Cuda driver is not compatible with Nsight Compute.'); sys.exit(255)",
            "nvidia-smi",
        ),
        (
            "print('==ERROR== Profiling failed because a driver resource was unavailable.', file=sys.stderr); sys.exit(9)",
            "dcgmi",
        ),
        ("print('==ERROR== Something new'); sys.exit(1)", "ncu: Something new"),
        ("os.kill(os.getpid(), 11)", "ncu profiled no kernel"),
        ('print(\'"ID","What"\\n"0","x"\')', "Kernel Name"),
        ("pass", "ncu profiled no kernel"),
    ],
)
def test_what_ncu_refuses_is_one_line_that_says_what_to_change(
    body: str, said: str, built: Build, plan: LaunchPlan, ncu: Callable[[str], Path]
) -> None:
    ncu(body)
    run = collected(built, plan)
    assert (run.source, run.kernels) == ("static", ())
    assert said in run.unavailable
    assert "\n" not in run.unavailable


def test_an_ncu_that_hangs_is_ended(built: Build, plan: LaunchPlan, ncu: Callable[[str], Path]) -> None:
    ncu("time.sleep(60)")
    assert "did not finish within 1 s" in collected(built, plan, limit_s=1).unavailable


def test_an_ncu_that_does_not_start_is_named(
    built: Build, plan: LaunchPlan, ncu: Callable[[str, str], Path]
) -> None:
    program = ncu("", "/no/such/interpreter")
    run = collected(built, plan)
    assert run.source == "static"
    assert str(program) in run.unavailable or "no kernel" in run.unavailable


def test_metrics_that_this_ncu_does_not_know_are_left_out(
    built: Build, plan: LaunchPlan, ncu: Callable[[str], Path], tmp_path: Path
) -> None:
    ncu(
        "asked = sys.argv[sys.argv.index('--metrics') + 1]\n"
        "if 'launch__sm_count' in asked:\n"
        "    print('==ERROR== Failed to find metric launch__sm_count'); sys.exit(1)\n" + TABLE
    )
    run = collected(built, plan)
    assert run.source == "ncu"
    assert [(kernel.kernel, kernel.time_share) for kernel in run.kernels] == [("sums", 0.9), ("scale", 0.1)]
    assert "--clock-control none" in run.commands[0]


def test_without_counters_the_rest_is_said(
    built: Build, plan: LaunchPlan, ncu: Callable[[str], Path]
) -> None:
    ncu(DENIED)
    case = Case(index=0, arguments={"n": 1}, timed=True)
    timing = Timing(
        case=0,
        samples_ms=(2.0,),
        median_ms=2.0,
        low_ms=2.0,
        high_ms=2.0,
        evidence="measured",
        launch_share={"sums": 0.2, "scale": 0.8},
    )
    standing = roofline(case, Cost(bytes=2e9, flops=4e9), None, timing, GPU)
    conditions = Conditions(device="cuda:0", gpu=GPU.name)
    joined = join_profile(
        collected(built, plan), built, plan, candidate="c", case=0, gpu=GPU, conditions=conditions
    )
    profile = with_measured_shares(joined, timing.launch_share, timing.median_ms)
    found = diagnose(profile, standing)
    lines = diagnosis_lines(
        Diagnosis(
            candidate="c",
            profile=profile,
            roofline=standing,
            bottlenecks=found,
            hot=hot_kernels(profile, standing),
        )
    )
    text = "\n".join(lines)
    assert lines[1].startswith("better ones were not to be had: this user may not read the GPU's counters")
    assert text.index("scale: 80% of 2 ms") < text.index("sums: 20% of 2 ms")  # as timed, not as launched
    assert "registers, 2048 B of static shared memory, occupancy" in text
    assert "instructions in the code: " in text
    assert "fp64" in text
    assert "1 TB/s of 4.18 TB/s, 2 TFLOP/s of 66.9 TFLOP/s" in text
    assert "ceilings from the data sheet" in text
    assert "its distance from the roof is unknown" in text
    assert BottleneckKind.FP64_IN_FLOAT in {each.kind for each in found if each.kernel == "sums"}
