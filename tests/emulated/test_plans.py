"""Operations of plans other than launches, layouts, notes, and the worker's protocol."""

import numpy as np
import pytest
from direct import Session, backend, blob, build, launch, plan, run_kernel

from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.schema.launch_plan import (
    Address,
    Allocate,
    Allocation,
    CopyDevice,
    CopyDevice2D,
    CopyHost,
    CreateStream,
    GraphLaunch,
    LaunchPlan,
    Memset,
    RecordEvent,
    Release,
    Synchronize,
    WaitEvent,
)

SOURCE = """
__device__ float scale = 2.0f;
extern "C" {
__global__ void times(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * scale;
}
__global__ void through(float* const* table, int n) { if (threadIdx.x < n) table[1][threadIdx.x] = table[0][threadIdx.x] + 1; }
__global__ void where(float* x, unsigned long long* y) { if (threadIdx.x == 0) y[0] = (unsigned long long)x; }
__global__ void tail(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }
}
"""
F = np.float32
X = np.arange(64, dtype=F)
AT = lambda allocation, offset=0: Address(allocation=allocation, offset=offset)  # noqa: E731


@pytest.fixture(scope="module")
def made():
    return build(SOURCE, backend())


def session(made, buffers, launches):
    return Session(made, buffers, launches, backend())


def test_copies_fills_streams_and_graphs(made):
    buffers = dict(x=X, y=np.zeros(64, F), z=np.zeros(64, F))

    def operations(ids):
        x, y, z = (ids[name] for name in "xyz")
        host = X[:4] + 100
        inner = (CopyDevice(destination=AT(z), source=AT(y), size_bytes=128, stream=1),)
        return [
            CreateStream(stream=1, blocking=True),
            launch(made, "times", ids, ["x", "y", 64], (2,), stream=1),
            RecordEvent(event=3, stream=1),
            WaitEvent(event=3, stream=0),
            GraphLaunch(stream=1, origin=1, operations=inner),
            Memset(destination=AT(z, 128), value=0x40, size_bytes=64),
            CopyHost(destination=AT(z, 192), data=blob(host.tobytes(), ids)),
            CopyDevice2D(
                destination=AT(z, 208),
                destination_pitch=8,
                source=AT(x, 4),
                source_pitch=16,
                width_bytes=4,
                height=3,
            ),
            Synchronize(scope="device"),
        ]

    with session(made, buffers, operations) as opened:
        assert opened.run().status == "passed"
        z = opened.read("z")
    assert np.array_equal(z[:32], 2 * X[:32])
    assert z[32:48].view(np.uint32).tolist() == [0x40404040] * 16
    assert z[48:52].tolist() == [100, 101, 102, 103]
    assert z[[52, 54, 56]].tolist() == [1, 5, 9]


def test_symbols_temporaries_and_pointer_tables(made):
    made_plan = plan(made, dict(x=X, y=np.zeros(64, F)), lambda ids: [])
    allocations = (
        *made_plan.allocations,
        Allocation(id=5, kind="symbol", name="scale", size_bytes=4),
        Allocation(id=6, kind="temporary", size_bytes=256),
    )
    table = blob(b"\\0" * 0, {})
    table = type(table)(
        raw="00" * 16,
        pointers=(
            {"position": 0, "address": {"allocation": 0, "offset": 16}},
            {"position": 8, "address": {"allocation": 1, "offset": 0}},
        ),
    )
    ids = dict(x=0, y=1, t=6)
    operations = (
        Allocate(allocation=6),
        CopyHost(destination=AT(5), data=blob(np.float32(5).tobytes(), {})),
        CopyHost(destination=AT(6, 64), data=table),
        launch(made, "through", ids, [("t", 64), 8]),
        launch(made, "times", ids, ["x", ("y", 128), 32]),
        Release(allocation=6),
    )
    whole = LaunchPlan(
        device_code=made.device_code, symbol="nothing", allocations=allocations, operations=operations
    )
    with session(made, dict(x=X, y=np.zeros(64, F)), lambda ids: []) as opened:
        opened.worker.load(whole)
        for _ in range(2):  # the variable starts from its first value each time
            opened.worker.fill(opened.contents, poison=1)
            assert opened.run().status == "passed"
            y = opened.read("y")
            assert np.array_equal(y[:8], X[4:12] + 1)
            assert np.array_equal(y[32:], 5 * X[:32])


def test_salt_moves_buffers(made):
    buffers = dict(x=X, y=np.zeros(1, np.uint64))
    places = set()
    with session(made, buffers, lambda ids: [launch(made, "where", ids, ["x", "y"])]) as opened:
        for salt in (0, 1, 2):
            opened.worker.load(opened.plan, salt=salt)
            opened.worker.fill(opened.contents, poison=0)
            assert opened.run().status == "passed"
            places.add(int(opened.read("y")[0]))
    assert len(places) == 3
    assert all(place % 256 == 0 for place in places)


def test_put_changes_one_buffer_and_poison_fills_the_rest(made):
    with session(made, dict(x=X, y=np.zeros(64, F)), lambda ids: []) as opened:
        opened.worker.fill({"x": opened.contents["x"]}, poison=0x11)
        assert set(opened.read("y").view(np.uint8)) == {0x11}
        opened.worker.put({"y": opened.contents["x"]})
        assert np.array_equal(opened.read("y"), X)
        assert opened.worker.damaged_guards() == ()


def test_launch_errors(made):
    for changes, word in (
        (dict(shared=1 << 20), "shared memory"),
        (dict(cluster=(2, 1, 1)), "clusters"),
    ):
        outcome, _ = run_kernel(SOURCE, "times", dict(x=X, y=X), ["x", "y", 64], **changes)
        assert outcome.status in ("launch_error", "unsupported")
        assert word in outcome.detail


def test_missing_buffer_and_wrong_size_are_errors(made, tmp_path):
    short = tmp_path / "short"
    short.write_bytes(b"12")
    with session(made, dict(x=X), lambda ids: []) as opened:
        with pytest.raises(HarnessError, match="no buffer 'nothing'"):
            opened.worker.read("nothing", tmp_path / "out")
        with pytest.raises(HarnessError, match="256 bytes, its file 2"):
            opened.worker.put({"x": short})


def test_closed_worker_refuses(made):
    with session(made, dict(x=X), lambda ids: []) as opened:
        opened.worker.close()
        opened.worker.close()
        with pytest.raises(WorkerDied):
            opened.worker.damaged_guards()


def test_plan_that_needs_more_memory_than_the_gpu(made):
    allocations = (Allocation(id=0, kind="temporary", size_bytes=160_000_000_000),)
    huge = LaunchPlan(device_code=made.device_code, symbol="nothing", allocations=allocations, operations=())
    with session(made, dict(x=X), lambda ids: []) as opened:
        opened.worker.load(huge)
        assert opened.run().status == "out_of_memory"
