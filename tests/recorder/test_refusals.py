"""What a plan cannot hold is refused by name; what host code does to escape ends as a status."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelskill.backends.base import Unrecordable
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan
from tests.recorder.conftest import SIZE, Source

UNSUPPORTED = [
    ("reads_back", "reads device memory on the host (cudaMemcpy)", True),
    ("reads_symbol", "reads device memory on the host (cudaMemcpyFromSymbol)", True),
    ("managed", "cudaMallocManaged", True),
    ("gives_pinned_memory", "pinned host memory", True),
    ("gives_host_address", "an address of host memory", True),
    ("host_callback", "cudaLaunchHostFunc", True),
    ("reads_time", "cudaEventElapsedTime", True),
    ("hashes_pointers", "two recordings of one call differ", True),
    ("compares_pointers", "two recordings of one call differ", True),
    ("random_grid", "two recordings of one call differ", True),
    ("host_thread", "starts a host thread", False),
    ("raw_clone", "starts a process or a thread (system call clone", False),
    ("fork_bomb", "starts a process or a thread (system call clone", False),
    ("runs_a_program", "forbidden system call", False),
    ("opens_a_socket", "uses the network (system call socket)", False),
    ("traces", "system call ptrace", False),
    ("kills", "system call kill", False),
    ("calls_with_32_bit_numbers", "forbidden system call", False),
]
BROKEN = [
    ("reads_through_pointer", "SIGSEGV at an address of device memory"),
    ("uses_after_free", "used after it was freed"),
    ("frees_a_buffer", "frees memory that it did not allocate (cudaFree)"),
    ("frees_twice", "frees memory twice (cudaFree)"),
    ("segfault", "SIGSEGV"),
    ("stack_overflow", "SIGSEGV"),
    ("aborts", "SIGABRT"),
    ("throws", "SIGABRT"),
    ("exits", "ended the process before the launcher returned (exit code 0)"),
    ("replaces_handlers", "SIGSEGV"),
    ("takes_all_memory", "SIGABRT"),
    ("prints_a_gigabyte", "prints without end"),
    ("forges_lines", "99999999 bytes at 0 lie outside allocation 1"),
    ("forges_a_kernel", "the build has no kernel 'other'"),
    ("forges_garbage", "host code wrote into the recording"),
    ("fills_the_transcript", "host code wrote into the recording"),
]


@pytest.mark.parametrize(("launcher", "reason", "direct"), UNSUPPORTED)
def test_what_a_plan_cannot_hold(refused: Source, launcher: str, reason: str, direct: bool) -> None:
    outcome = refused.record(launcher)
    assert isinstance(outcome, Unrecordable)
    assert (outcome.status, outcome.direct_possible) == (Status.UNSUPPORTED, direct)
    assert reason in outcome.reason


@pytest.mark.parametrize(("launcher", "reason"), BROKEN)
def test_host_code_that_breaks(refused: Source, launcher: str, reason: str) -> None:
    outcome = refused.record(launcher, timeout_s=60)
    assert isinstance(outcome, Unrecordable)
    assert outcome.status is Status.RUNTIME_ERROR
    assert not outcome.direct_possible
    assert reason in outcome.reason


@pytest.mark.parametrize("launcher", ["loops_for_ever", "sleeps_for_ever"])
def test_host_code_that_does_not_return(refused: Source, launcher: str) -> None:
    outcome = refused.record(launcher, timeout_s=1)
    assert isinstance(outcome, Unrecordable)
    assert (outcome.status, outcome.reason) == (Status.TIMEOUT, "host code did not return within 1 s")


@pytest.mark.parametrize("launcher", ["prints_pass", "looks_for_files"])
def test_output_and_files_lead_nowhere(
    refused: Source, launcher: str, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = refused.record(launcher)
    assert isinstance(plan, LaunchPlan), plan
    assert len(plan.launches()) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("launcher", ["static_counter", "static_cache", "dies_on_second_call"])
def test_state_between_calls_is_noted(refused: Source, launcher: str) -> None:
    plan = refused.record(launcher)
    assert isinstance(plan, LaunchPlan), plan
    assert len(plan.launches()) == 1
    assert [note for note in plan.notes if note.startswith("the launcher keeps state: call 1")]


def test_a_library_is_refused_by_name_and_only_when_called(library: Source) -> None:
    outcome = library.record("calls_a_library")
    assert isinstance(outcome, Unrecordable)
    assert outcome.reason == "the launcher calls cublasCreate_v2, which cannot be recorded"
    assert (outcome.status, outcome.direct_possible) == (Status.UNSUPPORTED, True)


def test_an_unknown_function_of_the_runtime_is_refused_by_name(library: Source) -> None:
    outcome = library.record("uses_a_texture")
    assert isinstance(outcome, Unrecordable)
    assert outcome.reason == "the launcher calls cudaCreateTextureObject, which cannot be recorded"


def test_what_is_not_called_does_no_harm(library: Source) -> None:
    plan = library.record("calls_nothing_unknown")
    assert isinstance(plan, LaunchPlan), plan


def test_a_constructor_that_ends_the_process(compiled: Callable[..., Source]) -> None:
    outcome = compiled("constructor.cu").record("never_called")
    assert isinstance(outcome, Unrecordable)
    assert outcome.status is Status.RUNTIME_ERROR
    assert outcome.reason == "host code ended the process while the host object was loaded (exit code 0)"


# Launches that fail as they fail on an H200 with CUDA 13.0.
FAILING = [
    ("empty_grid", "scale<float, 1>: an empty grid of 0x1x1 (cudaErrorInvalidValue)"),
    ("too_many_threads", "scale<float, 1>: a block of 2048x1x1 threads (cudaErrorInvalidValue)"),
    ("above_launch_bounds", "above its __launch_bounds__ of 128 (cudaErrorInvalidValue)"),
    ("shared_without_consent", "102400 bytes of dynamic shared memory, above the 49152"),
    ("shared_above_limit", "cudaFuncSetAttribute of 307200 bytes"),
    ("cooperative_too_large", "cudaErrorCooperativeLaunchTooLarge"),
    ("copies_outside", "cudaMemset of 16388 bytes outside its memory (cudaErrorInvalidValue)"),
    ("too_much_memory", "cudaErrorMemoryAllocation"),
    ("capture_of_default_stream", "cudaErrorStreamCaptureInvalidated"),
    ("destroyed_stream", "cudaErrorInvalidResourceHandle"),
]
IN_CUDA_12 = {
    "empty_grid": "cudaErrorInvalidConfiguration",
    "too_many_threads": "cudaErrorInvalidConfiguration",
    "above_launch_bounds": "cudaErrorLaunchOutOfResources",
}
"""What the same launches answer there."""


@pytest.mark.parametrize(("launcher", "reason"), FAILING)
def test_unhandled_errors(launchers: Source, launcher: str, reason: str) -> None:
    if launchers.toolchain.nvcc_major == 12 and launcher in IN_CUDA_12:
        reason = reason.replace("cudaErrorInvalidValue", IN_CUDA_12[launcher])
    outcome = launchers.record(launcher)
    assert isinstance(outcome, Unrecordable)
    memory = launcher == "too_much_memory"
    assert outcome.status is (Status.OUT_OF_MEMORY if memory else Status.LAUNCH_ERROR)
    assert reason in outcome.reason


def test_results_are_checked(launchers: Source) -> None:
    right = launchers.record("returns_error", returns="cudaError_t")
    assert isinstance(right, LaunchPlan)
    assert right.returned == 0
    wrong = launchers.record("returns_error", returns="cudaError_t", scalars={"n": SIZE - 1})
    assert isinstance(wrong, Unrecordable)
    assert wrong.reason == "the launcher returned 1 (cudaErrorInvalidValue)"
    number = launchers.record("returns_int", returns="int", scalars={"n": 7})
    assert isinstance(number, Unrecordable)
    assert (number.status, number.reason) == (Status.LAUNCH_ERROR, "the launcher returned -7")
