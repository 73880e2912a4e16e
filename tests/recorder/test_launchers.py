"""Ordinary launchers become plans that say what they ask for."""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelskill.backends.base import Call, PointerArgument
from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.plan_check import check_plan
from kernelskill.backends.recorder import record
from kernelskill.backends.recorder.addresses import CLEARED_NOTE
from kernelskill.backends.toolchain import Toolchain
from kernelskill.backends.typeprobe import probe_signature
from kernelskill.hardware.gpus import find_gpu
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.schema.build import Build
from kernelskill.schema.candidate import Candidate, SourceFile
from kernelskill.schema.launch_plan import (
    Address,
    Allocate,
    CopyHost,
    CreateStream,
    EncodeTensorMap,
    GraphLaunch,
    Launch,
    LaunchPlan,
)
from tests.recorder.conftest import ORDINARY, SIZE, STREAM, Source

X, Y = Address(allocation=0, offset=0), Address(allocation=1, offset=0)


def planned(source: Source, launcher: str, **options: object) -> LaunchPlan:
    plan = source.record(launcher, **options)
    assert isinstance(plan, LaunchPlan), plan
    check_plan(plan, source.build(launcher))
    return plan


def kinds(plan: LaunchPlan) -> list[str]:
    return [operation.op for operation in plan.operations]


def pointers(launch: Launch) -> list[tuple[int, Address]]:
    return [(n, p.address) for n, blob in enumerate(launch.arguments) for p in blob.pointers]


def test_a_simple_launch(launchers: Source) -> None:
    plan = planned(launchers, "simple")
    assert [(a.id, a.kind, a.name, a.size_bytes) for a in plan.allocations] == [
        (0, "buffer", "x", 4 * SIZE),
        (1, "buffer", "y", 4 * SIZE),
    ]
    (launch,) = plan.launches()
    assert (launch.grid, launch.block, launch.stream) == ((16, 1, 1), (256, 1, 1), 0)
    assert pointers(launch) == [(0, X), (1, Y)]
    assert launch.arguments[2].raw == struct.pack("<f", 3.0).hex()
    assert launch.arguments[3].raw == struct.pack("<i", SIZE).hex()
    assert plan.notes == ()
    assert plan.returned is None


def test_equal_calls_give_equal_plans(launchers: Source) -> None:
    assert planned(launchers, "graph").canonical() == planned(launchers, "graph").canonical()


def test_the_size_picks_the_template(launchers: Source) -> None:
    even = planned(launchers, "by_template", scalars={"n": 1024}).launches()[0]
    odd = planned(launchers, "by_template", scalars={"n": 1023}).launches()[0]
    assert even.kernel != odd.kernel
    assert (even.grid[0], odd.grid[0]) == (1, 4)


def test_the_alignment_picks_the_path(launchers: Source) -> None:
    buffers = {"x": 4 * SIZE + 64, "y": 4 * SIZE + 64}
    y = PointerArgument(buffer="y")
    straight = planned(launchers, "by_alignment", buffers=buffers).launches()[0]
    places = {"x": PointerArgument(buffer="x", offset=4), "y": y}
    crooked = planned(launchers, "by_alignment", buffers=buffers, places=places).launches()[0]
    assert straight.kernel != crooked.kernel
    assert pointers(crooked)[0] == (0, Address(allocation=0, offset=4))


def test_two_parameters_in_one_buffer(launchers: Source) -> None:
    places = {"x": PointerArgument(buffer="both"), "y": PointerArgument(buffer="both", offset=16)}
    (launch,) = planned(launchers, "simple", buffers={"both": 4 * SIZE + 16}, places=places).launches()
    assert pointers(launch) == [(0, X), (1, Address(allocation=0, offset=16))]


def test_temporaries_and_copies(launchers: Source) -> None:
    plan = planned(launchers, "several_kernels")
    assert kinds(plan) == ["allocate", "allocate", "launch", "launch", "copy_device", "release", "release"]
    assert [a.kind for a in plan.allocations] == ["buffer", "buffer", "temporary", "temporary"]
    assert (plan.host_calls.allocations, plan.host_calls.launches, plan.host_calls.synchronizations) == (
        2,
        2,
        0,
    )
    assert plan.notes == ()


@pytest.mark.parametrize(
    ("launcher", "positions"),
    [("struct_by_value", [0, 16]), ("packed_struct", [1, 9]), ("large_struct", [5200])],
)
def test_addresses_inside_structs(launchers: Source, launcher: str, positions: list[int]) -> None:
    (launch,) = planned(launchers, launcher).launches()
    assert [p.position for p in launch.arguments[0].pointers] == positions
    assert launch.arguments[0].pointers[0].address == X


def test_host_addresses_inside_structs_are_cleared(launchers: Source) -> None:
    plan = planned(launchers, "struct_with_host_pointer")
    (launch,) = plan.launches()
    assert [p.position for p in launch.arguments[0].pointers] == [0, 16]
    assert set(launch.arguments[0].raw) == {"0"}
    assert plan.notes == (CLEARED_NOTE,)


def test_streams_and_events(launchers: Source) -> None:
    plan = planned(launchers, "two_streams")
    assert kinds(plan) == [
        "create_stream",
        "create_stream",
        "record_event",
        "wait_event",
        "launch",
        "launch",
        "record_event",
        "wait_event",
        "synchronize",
    ]
    assert [op.blocking for op in plan.operations if isinstance(op, CreateStream)] == [False, False]
    assert {launch.stream for launch in plan.launches()} == {1, 2}
    assert plan.host_calls.synchronizations == 1
    assert not any("non-blocking" in note for note in plan.notes)


def test_work_left_on_a_side_stream_is_noted(launchers: Source) -> None:
    assert "joined by nothing" in planned(launchers, "unjoined_stream").notes[0]
    assert planned(launchers, "blocking_side_stream").notes == ()


def test_many_launches(launchers: Source) -> None:
    plan = planned(launchers, "many_launches")
    assert (len(plan.launches()), plan.host_calls.synchronizations) == (201, 1)


def test_pitched_memory(launchers: Source) -> None:
    plan = planned(launchers, "pitch", scalars={"n": 4000})
    (temporary,) = (a for a in plan.allocations if a.kind == "temporary")
    assert temporary.size_bytes == 512 * 40
    assert kinds(plan)[-3:] == ["copy_device_2d", "launch", "release"]


def test_device_variables(launchers: Source) -> None:
    plan = planned(launchers, "symbols")
    names = {a.id: a.name for a in plan.allocations if a.kind == "symbol"}
    assert set(names.values()) == {"factors", "constant_view", "device_factor"}
    copies = [op for op in plan.operations if isinstance(op, CopyHost)]
    assert [names[op.destination.allocation] for op in copies] == [
        "factors",
        "constant_view",
        "device_factor",
    ]
    assert [p.address for p in copies[1].data.pointers] == [X, Y]
    assert copies[0].data.raw == struct.pack("<4f", 1, 2, 3, 4).hex()


def test_large_shared_memory(launchers: Source) -> None:
    (launch,) = planned(launchers, "large_shared").launches()
    sizes = (launch.dynamic_shared_bytes, launch.max_dynamic_shared_bytes, launch.carveout_percent)
    assert sizes == (102400, 102400, 100)


def test_cooperative_and_cluster_launches(launchers: Source) -> None:
    (cooperative,) = planned(launchers, "cooperative").launches()
    assert cooperative.cooperative
    assert cooperative.grid[0] % find_gpu("h200").sm_count == 0
    (cluster,) = planned(launchers, "cluster").launches()
    assert (cluster.cluster, cluster.programmatic, cluster.grid) == ((2, 1, 1), True, (16, 1, 1))


def test_a_captured_graph(launchers: Source) -> None:
    plan = planned(launchers, "graph")
    graphs = [op for op in plan.operations if isinstance(op, GraphLaunch)]
    assert len(graphs) == 3
    assert [op.op for op in graphs[0].operations] == [
        "launch",
        "record_event",
        "wait_event",
        "launch",
        "record_event",
        "wait_event",
    ]
    assert (graphs[0].origin, graphs[0].stream) == (1, 1)
    assert plan.host_calls.launches == 3
    assert plan.notes == ()


def test_asynchronous_memory_and_tables_of_pointers(launchers: Source) -> None:
    plan = planned(launchers, "pointer_table")
    assert kinds(plan) == ["allocate", "copy_host", "launch", "release"]
    copy = plan.operations[1]
    assert isinstance(copy, CopyHost)
    assert [(p.position, p.address) for p in copy.data.pointers] == [(0, X), (8, Y)]
    allocate = plan.operations[0]
    assert isinstance(allocate, Allocate)
    assert allocate.asynchronous


def test_a_tensor_map_is_left_open(launchers: Source) -> None:
    plan = planned(launchers, "tensor_map")
    encode = plan.operations[0]
    assert isinstance(encode, EncodeTensorMap)
    assert (encode.address, encode.dimensions, encode.box) == (X, (32, SIZE // 32), (32, 16))
    (launch,) = plan.launches()
    assert [(p.position, p.tensor_map) for p in launch.arguments[0].tensor_maps] == [(0, encode.id)]
    assert plan.notes == ()


def test_a_given_stream_is_stream_zero(launchers: Source) -> None:
    plan = planned(launchers, "with_stream", parameters=(*ORDINARY, STREAM))
    assert kinds(plan) == ["allocate", "launch", "launch", "release"]
    assert {launch.stream for launch in plan.launches()} == {0}


@pytest.mark.parametrize("launcher", ["pinned_staging", "standard_library", "l2_policy", "per_thread_stream"])
def test_other_launchers(launchers: Source, launcher: str) -> None:
    plan = planned(launchers, launcher)
    assert len(plan.launches()) == 1
    assert not any("keeps state" in note for note in plan.notes)


def test_a_launcher_of_cpp_linkage(launchers: Source) -> None:
    assert len(planned(launchers, "_Z9plain_cppPKfPfi").launches()) == 1


def test_memory_not_freed_is_noted(launchers: Source) -> None:
    assert planned(launchers, "leaks").notes == ("memory not freed at return: 16384 bytes in 1 allocations",)


def test_a_handled_error_is_noted(launchers: Source) -> None:
    plan = planned(launchers, "falls_back")
    assert len(plan.launches()) == 1
    assert plan.notes[0].startswith(
        "the launcher cleared an error: scale<float, 1>: 307200 bytes of shared memory"
    )


@pytest.mark.slow
def test_launch_stubs_of_cuda_12(launchers: Source, compiled: Callable[..., Source]) -> None:
    older = compiled("launchers.cu", "-D__NV_LEGACY_LAUNCH", "-Xcompiler", "-D__NV_LEGACY_LAUNCH")
    assert "cudaLaunchKernel" in older.build("simple").undefined_symbols
    for launcher in ("simple", "cluster", "graph", "symbols"):
        newer = planned(launchers, launcher).model_dump(exclude={"device_code"})
        assert planned(older, launcher).model_dump(exclude={"device_code"}) == newer


# The answers of an H200 with driver 580 and CUDA 13.0, in the order of the questions.
H200_BLOCKS = [32, 32, 8, 11, 9, 8, 4, 0, 4, 16, 16, 2, 11, 9, 2, 4, 0, 2]
H200_BLOCKS += [8, 8, 1, 8, 8, 1, 4, 0, 1, 2, 2, 0, 2, 2, 0, 2, 0, 0, 0]
H200_FACTS = [132, 232448, 233472, 2048, 32, 62914560, 39321600, 9]


def test_occupancies_and_facts_are_those_of_the_gpu(compiled: Callable[..., Source]) -> None:
    source = compiled("occupancy.cu")
    answers = [launch.grid[0] for launch in planned(source, "occupancies").launches()]
    assert [answer - 1 for answer in answers[:-1]] == H200_BLOCKS
    assert answers[-1] == 49152
    assert [launch.grid[0] for launch in planned(source, "device_facts").launches()] == H200_FACTS


def test_the_facts_follow_the_gpu(launchers: Source) -> None:
    (small,) = planned(launchers, "cooperative", gpu="a100").launches()
    (large,) = planned(launchers, "cooperative", gpu="h200").launches()
    assert small.grid != large.grid
    assert small.grid[0] % find_gpu("a100").sm_count == 0


def test_compiled_candidates_are_recorded(tmp_path: Path, toolchain: Toolchain) -> None:
    text = (
        "struct Pair { float a, b; };\n"
        "static __global__ void add(const float* x, float* y, float a, int n)\n"
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += a * x[i]; }\n"
        "namespace deep { void axpy(const float* x, float* y, float a, int n) "
        "{ add<<<(n + 255) / 256, 256>>>(x, y, a, n); } }\n"
    )
    candidate = Candidate(main="kernel.cu", files=(SourceFile(path="kernel.cu", text=text),))
    signature = probe_signature(candidate, "deep::axpy", ("x", "y", "a", "n"), (), toolchain, c_linkage=False)
    build = compile_candidate(
        candidate, signature, flags=(), architecture="sm_90a", toolchain=toolchain, cache=BuildCache(tmp_path)
    )
    assert isinstance(build, Build)
    call = Call(
        buffers={"x": 400, "y": 400},
        pointers={"x": PointerArgument(buffer="x"), "y": PointerArgument(buffer="y")},
        scalars={"a": 2.5, "n": 100},
    )
    plan = record(build, signature, call, gpu=find_gpu("h200"), toolchain=toolchain)
    assert isinstance(plan, LaunchPlan), plan
    assert plan.symbol == "deep::axpy"
    assert plan.launches()[0].arguments[2].raw == struct.pack("<f", 2.5).hex()


def test_recording_is_quick(launchers: Source, capsys: pytest.CaptureFixture[str]) -> None:
    planned(launchers, "several_kernels")
    seconds = []
    for _ in range(15):
        started = time.perf_counter()
        launchers.record("several_kernels")
        seconds.append(time.perf_counter() - started)
    with capsys.disabled():
        print(f"\nrecording one call: median {1e3 * statistics.median(seconds):.1f} ms")
    assert min(seconds) < 0.2
