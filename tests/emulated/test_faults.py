import numpy as np
import pytest
from direct import HERE, Session, backend, build, launch, run_kernel

SOURCE = (HERE / "faults.cu").read_text()
F, INT = np.float32, np.int32


def line_of(mark):
    return next(n for n, text in enumerate(SOURCE.splitlines(), 1) if text.endswith(f"// LINE {mark}"))


def fails(kernel, status, buffers, arguments, *words, mark="", **launch):
    outcome, _ = run_kernel(SOURCE, kernel, buffers, arguments, **launch)
    assert outcome.status == status, outcome
    assert f"kernel {kernel}, line {line_of(mark or kernel)}:" in outcome.detail
    for word in words:
        assert word in outcome.detail
    return outcome.detail


def test_read_past_the_end_names_line_buffer_and_offset():
    buffers = dict(x=np.zeros(64, F), y=np.zeros(64, F))
    fails("read_past_end", "out_of_bounds", buffers, ["x", "y", 64], "4-byte read", "buffer x at byte offset 256 of 256",
          "block (1,0,0) thread (31,0,0)", grid=(2,))  # fmt: skip


def test_write_past_the_end():
    fails(
        "write_past_end",
        "out_of_bounds",
        dict(y=np.zeros(60, F)),
        ["y", 60],
        "write",
        "byte offset 240 of 240",
        grid=(2,),
    )


def test_write_before_the_start():
    fails("write_before_start", "out_of_bounds", dict(y=np.zeros(32, F)), ["y"], "byte offset -4 of 128")


def test_atomic_past_the_end():
    fails("atomic_past_end", "out_of_bounds", dict(y=np.zeros(8, INT)), ["y", 8], "atomic", "buffer y")


def test_shared_past_the_end():
    fails(
        "shared_past_end",
        "out_of_bounds",
        dict(y=np.zeros(32, F)),
        ["y", 1],
        "shared memory at byte offset 128",
    )


def test_dynamic_shared_past_the_end():
    fails(
        "dynamic_shared_past_end",
        "out_of_bounds",
        dict(y=np.zeros(32, F)),
        ["y", 8],
        "shared memory",
        shared=128,
    )


def test_local_past_the_end():
    fails("local_past_end", "out_of_bounds", dict(y=np.zeros(32, F)), ["y", 8], "local memory")


def test_misaligned_access():
    buffers = dict(x=np.zeros(64, np.uint8), y=np.zeros((32, 4), F))
    fails("misaligned", "runtime_error", buffers, ["x", "y"], "misaligned", "buffer x at byte offset 4")


def test_constant_memory_cannot_be_written():
    fails("writes_constant", "runtime_error", dict(y=np.zeros(4, F)), ["y"], "not allowed", "variable table")


def test_race_is_noted_with_both_lines():
    outcome, _ = run_kernel(SOURCE, "race", dict(y=np.zeros(64, F)), ["y"], block=(64,))
    assert outcome.status == "passed"
    assert len(outcome.notes) == 1
    assert f"line {line_of('race_write')} and line {line_of('race_read')}" in outcome.notes[0]


def test_barriers_and_atomics_are_no_race():
    outcome, after = run_kernel(SOURCE, "no_race", dict(y=np.zeros(64, F)), ["y"], block=(64,))
    assert outcome.status == "passed"
    assert outcome.notes == ()
    assert np.array_equal(after["y"], 63 - np.arange(64) + 64)


def test_divergent_barrier_is_a_deadlock():
    detail = run_kernel(
        SOURCE, "divergent_barrier", dict(y=np.zeros(64, F)), ["y"], block=(64,), timeout_s=3
    )[0]
    assert detail.status in ("runtime_error", "timeout")


def test_shuffle_that_lanes_never_reach_is_a_deadlock():
    fails("divergent_shuffle", "runtime_error", dict(y=np.zeros(32, INT)), ["y"], "deadlock")


@pytest.mark.parametrize("kernel", ["endless", "endless_registers"])
def test_endless_loop_ends_at_the_deadline_and_is_named(kernel):
    arguments = ["y"] if kernel == "endless" else ["y", 1]
    fails(kernel, "timeout", dict(y=np.zeros(4, INT)), arguments, "still running", timeout_s=1)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_that_wait_for_later_blocks_finish(threads):
    buffers = dict(flags=np.zeros(64, INT), out=np.zeros(64, INT))
    outcome, after = run_kernel(
        SOURCE, "chain", buffers, ["flags", "out"], grid=(64,), block=(64,), threads=threads
    )
    assert outcome.status == "passed", outcome
    assert np.array_equal(after["out"], 64 - np.arange(64))


def test_cooperative_grid_sync():
    n = 32 * 64
    buffers = dict(x=np.zeros(n, INT), y=np.zeros(n, INT))
    outcome, after = run_kernel(
        SOURCE, "grid_sync", buffers, ["x", "y", n], grid=(32,), block=(64,), cooperative=True
    )
    assert outcome.status == "passed", outcome
    assert np.array_equal(after["y"], n - 1 - np.arange(n))
    assert np.array_equal(after["x"], n - np.arange(n))


def test_volatile_warp_synchronous_code_goes_in_step():
    outcome, after = run_kernel(SOURCE, "warp_synchronous", dict(out=np.zeros(1, INT)), ["out"])
    assert outcome.status == "passed"
    assert after["out"][0] == sum(range(64))


def test_assertion_and_trap():
    fails("asserts", "runtime_error", {}, [3], "assertion failed: k > 5")
    fails("traps", "runtime_error", {}, [3], "trap")


def test_print_is_accepted():
    outcome, after = run_kernel(SOURCE, "prints", dict(y=np.zeros(32, INT)), ["y"])
    assert outcome.status == "passed"
    assert np.array_equal(after["y"], np.arange(32))


def test_unknown_instruction_is_refused_by_name_and_others_stay_usable():
    detail = fails("unknown_instruction", "unsupported", dict(y=np.zeros(4, INT)), ["y"])
    assert "getctarank.shared::cluster.u32" in detail


def test_active_mask_of_a_branch():
    _, after = run_kernel(SOURCE, "divergent_active_mask", dict(y=np.zeros(32, INT)), ["y"])
    assert np.array_equal(after["y"], np.where(np.arange(32) & 1, 16, -16))


def test_worker_goes_on_after_a_failed_kernel():
    device = backend()
    made = build(SOURCE, device)
    with Session(
        made,
        dict(y=np.zeros(64, F)),
        lambda ids: [launch(made, "write_past_end", ids, ["y", 64], (3,))],
        device,
    ) as session:
        assert session.run().status == "out_of_bounds"
        session.worker.fill(session.contents, poison=0)
        assert session.run().status == "out_of_bounds"
        assert session.worker.damaged_guards() == ()


def test_cooperative_grid_that_does_not_fit_is_a_launch_error():
    n = 64 * 100000
    buffers = dict(x=np.zeros(4, INT), y=np.zeros(4, INT))
    outcome, _ = run_kernel(
        SOURCE, "grid_sync", buffers, ["x", "y", n], grid=(100000,), block=(64,), cooperative=True
    )
    assert outcome.status == "launch_error"
    assert "cooperative grid of 100000 blocks" in outcome.detail


@pytest.mark.parametrize("kernel", ["chain", "grid_sync", "endless_registers"])
def test_kernels_that_wait_can_be_traced_or_time_out(kernel):
    device = backend()
    made = build(SOURCE, device)
    n = 64 * 500
    arguments = {"chain": ["x", "y"], "grid_sync": ["x", "y", n], "endless_registers": ["x", 1]}[kernel]
    buffers = dict(x=np.zeros(n, INT), y=np.zeros(n, INT))
    more = {"cooperative": True} if kernel == "grid_sync" else {}
    with Session(
        made, buffers, lambda ids: [launch(made, kernel, ids, arguments, (500,), (64,), **more)], device
    ) as session:
        timed = session.worker.time(3, flush_l2=True, timeout_s=3)
    if kernel == "endless_registers":
        assert timed.status == "timeout"
    else:
        assert timed.evidence == "estimated"
        assert timed.samples_ms[0] > 0
