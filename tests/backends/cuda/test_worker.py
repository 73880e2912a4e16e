import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelskill.backends.base import RunOutcome, TimingRun
from kernelskill.backends.cuda.client import CudaWorker
from kernelskill.backends.cuda.detect import FoundGpu
from kernelskill.backends.cuda.job import write_job
from kernelskill.backends.cuda.prepared import PreparedWorkers, WorkerProcess, worker_environment
from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.isolation.child import Limits, run_child
from kernelskill.schema.build import Build, DeviceVariable
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import (
    Address,
    Allocate,
    Allocation,
    Blob,
    CopyDevice,
    CreateStream,
    GraphLaunch,
    Launch,
    LaunchPlan,
    Memset,
    Operation,
    PointerPatch,
    RecordEvent,
    Release,
    WaitEvent,
)

N = 1000
Open = Callable[[], CudaWorker]


def launch(
    kernel: str, allocation: int = 0, stream: int = 0, offset: int = 0, n: int = N, **more: object
) -> Launch:
    pointer = PointerPatch(position=0, address=Address(allocation=allocation, offset=offset))
    return Launch(
        kernel=kernel,
        grid=(4, 1, 1),
        block=(256, 1, 1),
        stream=stream,
        arguments=(Blob(raw="00" * 8, pointers=(pointer,)), Blob(raw=n.to_bytes(4, "little").hex())),
        **more,
    )


def plan_of(build: Build, *operations: Operation) -> LaunchPlan:
    return LaunchPlan(
        device_code=build.device_code,
        symbol="f",
        allocations=(
            Allocation(id=0, kind="buffer", name="y", size_bytes=4 * N),
            Allocation(id=1, kind="temporary", size_bytes=4 * N),
            Allocation(id=2, kind="symbol", name="counter", size_bytes=4),
        ),
        operations=(Allocate(allocation=1), *operations, Release(allocation=1)),
    )


def numbers(path: Path, values: np.ndarray) -> Path:
    path.write_bytes(values.astype(np.float32).tobytes())
    return path


def contents(worker: CudaWorker, tmp_path: Path) -> np.ndarray:
    worker.read("y", tmp_path / "out")
    return np.fromfile(tmp_path / "out", np.float32)


def test_a_plan_runs_on_the_buffers_that_were_filled(open_worker: Open, build: Build, tmp_path: Path) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("add_one")))
    start = np.arange(N)
    worker.fill({"y": numbers(tmp_path / "y", start)}, poison=0xFF)
    assert worker.run(timeout_s=20).status is Status.PASSED
    assert np.array_equal(contents(worker, tmp_path), start + 1)
    assert worker.damaged_guards() == ()
    worker.put({"y": numbers(tmp_path / "y", start * 2)})
    assert worker.run(timeout_s=20).status is Status.PASSED
    assert np.array_equal(contents(worker, tmp_path), start * 2 + 1)


@pytest.mark.parametrize("salt", [0, 1, 30])
@pytest.mark.parametrize("kernel", ["overrun", "underrun"])
def test_writes_beyond_a_buffer_damage_its_guards(
    open_worker: Open, build: Build, salt: int, kernel: str
) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch(kernel), launch(kernel, allocation=1)), salt=salt, guard_bytes=4096)
    worker.fill({}, poison=0xA5)
    assert worker.damaged_guards() == ()
    assert worker.run(timeout_s=20).status is Status.PASSED
    assert worker.damaged_guards() == ("y", "temporary 1")


def test_variables_start_anew_with_every_fill_and_sample(
    open_worker: Open, build: Build, tmp_path: Path
) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("count")))
    worker.fill({}, poison=0)
    for expected in (7, 8):
        worker.run(timeout_s=20)
        assert contents(worker, tmp_path)[0] == expected
    worker.fill({}, poison=0)
    worker.run(timeout_s=20)
    assert contents(worker, tmp_path)[0] == 7


def test_every_sample_starts_from_the_last_fill(open_worker: Open, build: Build, tmp_path: Path) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("add_one")))
    worker.fill({"y": numbers(tmp_path / "y", np.zeros(N))}, poison=0)
    timing = worker.time(5, flush_l2=True, timeout_s=60)
    assert isinstance(timing, TimingRun)
    assert len(timing.samples_ms) == 5
    assert timing.evidence == "measured"
    assert all(sample >= 0 for sample in timing.samples_ms)
    assert contents(worker, tmp_path)[0] == 1
    without = worker.time(3, flush_l2=False, timeout_s=60)
    assert isinstance(without, TimingRun)


def test_every_sample_begins_without_what_was_set_aside_in_the_l2(
    open_worker: Open, build: Build, fake_driver: Path
) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("add_one")))
    worker.fill({}, poison=0)
    worker.time(3, flush_l2=True, timeout_s=60, repeats=1)
    before = fake_driver.read_text().count("reset persisting")
    worker.time(5, flush_l2=True, timeout_s=60, repeats=1)
    assert fake_driver.read_text().count("reset persisting") - before >= 5


def test_after_a_hang_the_gpu_is_waited_for(fake_driver: Path, core: Path, build: Build) -> None:
    seen: list[str] = []
    with CudaWorker(WorkerProcess(0, core), build, seen_free=lambda: seen.append("free")) as worker:
        worker.load(plan_of(build, launch("hang")))
        worker.fill({}, poison=0)
        assert not seen
        assert worker.run(timeout_s=1).status is Status.TIMEOUT
    assert seen == ["free"]


def test_an_illegal_address_ends_the_worker_with_its_name(open_worker: Open, build: Build) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("illegal")))
    worker.fill({}, poison=0)
    outcome = worker.run(timeout_s=20)
    assert outcome.status is Status.OUT_OF_BOUNDS
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in outcome.detail
    with pytest.raises(WorkerDied, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        worker.run(timeout_s=20)
    worker.close()


def test_a_hang_is_ended_at_the_deadline(open_worker: Open, build: Build) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("hang")))
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=1).status is Status.TIMEOUT
    with pytest.raises(WorkerDied):
        worker.time(1, flush_l2=True, timeout_s=1)


def test_too_much_memory_is_a_status(open_worker: Open, build: Build) -> None:
    worker = open_worker()
    plan = plan_of(build, launch("add_one"))
    huge = plan.model_copy(
        update={"allocations": (*plan.allocations, Allocation(id=3, kind="temporary", size_bytes=1 << 40))}
    )
    worker.load(huge)
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.OUT_OF_MEMORY
    worker.load(plan)
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.PASSED


def test_a_refused_launch_is_a_launch_error(open_worker: Open, build: Build) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("add_one", dynamic_shared_bytes=60_000)))
    worker.fill({}, poison=0)
    outcome = worker.run(timeout_s=20)
    assert outcome.status is Status.LAUNCH_ERROR
    assert "launch of add_one" in outcome.detail
    worker.load(
        plan_of(build, launch("add_one", dynamic_shared_bytes=60_000, max_dynamic_shared_bytes=60_000))
    )
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.PASSED


def test_launch_attributes_reach_the_driver(open_worker: Open, build: Build, fake_driver: Path) -> None:
    worker = open_worker()
    special = launch("add_one", cooperative=True, programmatic=True, cluster=(16, 1, 1), carveout_percent=50)
    worker.load(plan_of(build, special))
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.PASSED
    log = fake_driver.read_text().splitlines()
    assert [line for line in log if line.startswith("launch attribute")] == [
        "launch attribute 2 0",
        "launch attribute 6 0",
        "launch attribute 4 0",
    ]
    assert "attribute 9 50" in log
    assert "attribute 14 1" in log


def events_between(log: Path) -> list[str]:
    lines = log.read_text().splitlines()
    return [" ".join(line.split()[:-1] if line.startswith("launch") else line.split()) for line in lines]


def test_streams_fork_from_the_main_one_and_join_it(
    open_worker: Open, build: Build, fake_driver: Path
) -> None:
    worker = open_worker()
    plan = plan_of(
        build, CreateStream(stream=1, blocking=False), launch("add_one", stream=1), launch("add_one")
    )
    worker.load(plan)
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.PASSED
    words = [line.split()[0] for line in events_between(fake_driver)]
    assert words == ["record", "wait", "launch", "launch", "record", "wait"]


def test_a_blocking_stream_and_the_default_one_wait_for_each_other(
    open_worker: Open, build: Build, fake_driver: Path
) -> None:
    worker = open_worker()
    operations = (
        CreateStream(stream=1, blocking=True),
        launch("add_one", stream=1),
        launch("add_one"),
        launch("add_one"),
        launch("add_one", stream=1),
    )
    worker.load(plan_of(build, *operations))
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.PASSED
    words = [line.split()[0] for line in events_between(fake_driver)]
    edge = ["record", "wait"]
    assert words == [*edge, "launch", *edge, "launch", "launch", *edge, "launch", *edge]


def test_events_of_the_launcher_are_kept(open_worker: Open, build: Build, fake_driver: Path) -> None:
    worker = open_worker()
    operations = (
        CreateStream(stream=1, blocking=False),
        launch("add_one"),
        RecordEvent(event=4),
        WaitEvent(event=4, stream=1),
        launch("add_one", stream=1),
    )
    worker.load(plan_of(build, *operations))
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.PASSED
    words = [line.split()[0] for line in events_between(fake_driver)]
    assert words == ["record", "wait", "launch", "record", "wait", "launch", "record", "wait"]


def test_a_graph_is_captured_once_and_launched(open_worker: Open, build: Build, fake_driver: Path) -> None:
    worker = open_worker()
    graph = GraphLaunch(origin=1, operations=(launch("add_one", stream=1), launch("add_one", stream=1)))
    worker.load(plan_of(build, CreateStream(stream=1, blocking=True), graph, graph))
    worker.fill({}, poison=0)
    assert worker.run(timeout_s=20).status is Status.PASSED
    words = [line.rsplit(" ", 2)[0] for line in fake_driver.read_text().splitlines()]
    assert words == ["begin capture", "launch add_one", "launch add_one", "graph", "graph"]


def test_fills_and_copies_are_carried_out(open_worker: Open, build: Build, tmp_path: Path) -> None:
    worker = open_worker()
    operations = (
        Memset(destination=Address(allocation=1, offset=0), value=0, size_bytes=4 * N),
        launch("add_one", allocation=1),
        CopyDevice(
            destination=Address(allocation=0, offset=0),
            source=Address(allocation=1, offset=0),
            size_bytes=4 * N,
        ),
    )
    worker.load(plan_of(build, *operations))
    worker.fill({}, poison=0xFF)
    assert worker.run(timeout_s=20).status is Status.PASSED
    assert np.array_equal(contents(worker, tmp_path), np.ones(N))


@pytest.mark.parametrize(
    "operation",
    [
        Memset(destination=Address(allocation=0, offset=8), value=0, size_bytes=4 * N),
        CopyDevice(
            destination=Address(allocation=0, offset=0), source=Address(allocation=1, offset=-4), size_bytes=4
        ),
        launch("add_one").model_copy(update={"arguments": (Blob(raw="00" * 8),)}),
        launch("unheard_of"),
    ],
)
def test_a_plan_that_may_not_be_carried_out_is_refused(
    open_worker: Open, build: Build, operation: Operation
) -> None:
    worker = open_worker()
    plan = plan_of(build, operation)
    with pytest.raises(HarnessError):
        worker.load(plan)


def test_files_of_another_size_and_unknown_buffers_are_refused(
    open_worker: Open, build: Build, tmp_path: Path
) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("add_one")))
    with pytest.raises(HarnessError, match="holds 4000 bytes"):
        worker.fill({"y": numbers(tmp_path / "y", np.zeros(3))}, poison=0)
    with pytest.raises(HarnessError, match="no buffer 'z'"):
        worker.fill({"z": numbers(tmp_path / "y", np.zeros(N))}, poison=0)


def test_code_that_was_not_built_is_refused(open_worker: Open, build: Build, tmp_path: Path) -> None:
    (tmp_path / "device.cubin").write_bytes(b"swapped")
    worker = open_worker()
    with pytest.raises(HarnessError, match="not the one that was built"):
        worker.load(plan_of(build, launch("add_one")))


def test_closing_twice_is_harmless(open_worker: Open) -> None:
    worker = open_worker()
    worker.close()
    worker.close()
    with pytest.raises(WorkerDied):
        worker.run(timeout_s=1)


def test_salts_place_buffers_elsewhere(open_worker: Open, build: Build) -> None:
    outcome: list[RunOutcome] = []
    for salt in range(4):
        worker = open_worker()
        worker.load(plan_of(build, launch("add_one"), launch("add_one", allocation=1)), salt=salt)
        worker.fill({}, poison=1)
        outcome.append(worker.run(timeout_s=20))
        assert worker.damaged_guards() == ()
    assert all(each.status is Status.PASSED for each in outcome)


def test_a_variable_without_a_name_is_reset_by_a_new_module(
    fake_driver: Path, core: Path, build: Build, tmp_path: Path
) -> None:
    hidden = DeviceVariable(name="hidden", size_bytes=4, constant=False)
    unreachable = build.model_copy(update={"variables": (*build.variables, hidden)})
    with CudaWorker(WorkerProcess(0, core), unreachable) as worker:
        worker.load(plan_of(unreachable, launch("count")))
        for _ in range(2):
            worker.fill({}, poison=0)
            worker.run(timeout_s=20)
            assert contents(worker, tmp_path)[0] == 7
        timing = worker.time(1, flush_l2=True, timeout_s=20)
        assert isinstance(timing, TimingRun)
        assert "not reset between samples: hidden" in timing.notes


def test_the_gpus_of_a_machine_are_found_without_a_context(fake_driver: Path) -> None:
    program = (
        "from kernelskill.backends.cuda.detect import find_gpus; print(find_gpus()[0].model_dump_json())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found = FoundGpu.model_validate_json(done.stdout)
    assert (found.name, found.capability, found.cuda) == ("NVIDIA H200", (9, 0), "13.0")
    assert found.uuid == "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a"
    assert found.gpu.short_name == "h200"
    assert found.gpu.sm_count == 132
    assert found.gpu.l2_bytes == 1 << 20  # what the driver reports goes before the table


def test_a_job_folder_is_carried_out_by_a_command(
    fake_driver: Path, core: Path, build: Build, tmp_path: Path
) -> None:
    data = numbers(tmp_path / "y", np.zeros(N))
    for kernel, status, words in (("add_one", 0, ""), ("illegal", 3, "CUDA_ERROR_ILLEGAL_ADDRESS")):
        command = write_job(
            tmp_path, build, plan_of(build, launch(kernel)), {"y": data}, device=0, core=core, guard_bytes=0
        )
        done = run_child(command, limits=Limits(wall_s=60), cwd=tmp_path, env=worker_environment(tmp_path))
        assert done.returncode == status, done.stderr
        assert words in done.stderr


def test_a_plan_of_several_kernels_tells_their_shares(open_worker: Open, build: Build) -> None:
    worker = open_worker()
    worker.load(plan_of(build, launch("add_one"), launch("count"), launch("add_one")))
    worker.fill({}, poison=0)
    timing = worker.time(2, flush_l2=True, timeout_s=60)
    assert isinstance(timing, TimingRun)
    assert set(timing.launch_share) == {"add_one", "count"}
    assert sum(timing.launch_share.values()) == pytest.approx(1)


def test_a_process_that_was_started_before_takes_one_build(
    fake_driver: Path, core: Path, build: Build
) -> None:
    prepared = PreparedWorkers(lambda: WorkerProcess(0, core))
    prepared.prepare(2)
    prepared.prepare(2)
    first, second, third = prepared.take(), prepared.take(), prepared.take()
    assert len({id(first), id(second), id(third)}) == 3
    closed: list[str] = []
    with CudaWorker(first, build, closed=lambda: closed.append("closed")) as worker:
        worker.load(plan_of(build, launch("add_one")))
        worker.fill({}, poison=0)
        assert worker.run(timeout_s=20).status is Status.PASSED
        answer = first.call({"do": "open", "build": build.model_dump(mode="json")}, timeout_s=20)
        assert answer == {"harness": "the worker holds another build already"}
        assert not closed
    assert closed == ["closed"]
    assert second.call({"do": "run"}, timeout_s=20) == {"harness": "the worker holds no build"}
    second.close()
    third.close()
    prepared.prepare(1)
    waiting = prepared.take()
    prepared.close()
    waiting.close()
