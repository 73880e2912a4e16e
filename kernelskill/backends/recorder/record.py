"""Record one call of a launcher: the sandboxed runs, their judgement, the plan."""

from __future__ import annotations

import signal
from pathlib import Path

from kernelskill.backends.base import Call, Unrecordable
from kernelskill.backends.plan_check import PlanRefused, check_plan
from kernelskill.backends.recorder.addresses import HostAddress, RecordingsDiffer
from kernelskill.backends.recorder.assemble import BadLauncher, assemble
from kernelskill.backends.recorder.caller import UnknownArgument
from kernelskill.backends.recorder.process import Ending, run_layouts, sandbox_folder
from kernelskill.backends.recorder.programs import caller_library, recorder_program, stand_ins
from kernelskill.backends.recorder.specification import specification_text
from kernelskill.backends.recorder.system_calls import describe_system_call
from kernelskill.backends.recorder.transcript import (
    Line,
    Transcript,
    TranscriptError,
    number,
    read_transcript,
)
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import HarnessError
from kernelskill.schema.build import Build
from kernelskill.schema.device import Gpu
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature

_NO_MEMORY = "cudaErrorMemoryAllocation"


def record(
    build: Build,
    signature: Signature,
    call: Call,
    *,
    gpu: Gpu,
    toolchain: Toolchain,
    timeout_s: float = 15,
) -> LaunchPlan | Unrecordable:
    """Run the launcher in a sandbox against the recording runtime and return what it asks for.

    Two processes run at once, with different made-up addresses: what differs between them must be a
    device address, what is equal is a plain value. Buffers have no contents.

    Args:
        build: Its folder holds `host.so`.
        signature: The launcher's parameters.
        call: Sizes, places and scalars.
        gpu: What the launcher is told about its device, and whose limits launches must keep.
        toolchain: Compiles the recorder on first use.
        timeout_s: Wall time for all calls together.

    Raises:
        HarnessError: The call does not match the signature, or no sandbox is permitted here.
        ToolchainError: The recorder cannot be compiled.
    """
    try:
        program = recorder_program(toolchain)
        with sandbox_folder(host_files(build, signature, toolchain)) as folder:

            def specification(layout: int) -> bytes:
                return specification_text(
                    build, signature, call, gpu, root=str(folder), layout=layout, timeout_s=timeout_s
                )

            endings = run_layouts(program, specification, folder=folder, timeout_s=timeout_s)
            if any(ending.was_killed for ending in endings):
                # From outside, as by a machine out of memory; who kills himself does it again.
                endings = run_layouts(program, specification, folder=folder, timeout_s=timeout_s)
    except UnknownArgument as fact:
        return Unrecordable(status=Status.UNSUPPORTED, reason=str(fact))
    return _readable(_judge(build, signature, call, endings, timeout_s), build)


def host_files(build: Build, signature: Signature, toolchain: Toolchain) -> dict[str, Path]:
    """Return the files that the sandbox of a recording shows, by the names it gives them."""
    files = {
        "host.so": Path(build.folder) / "host.so",
        "caller.so": caller_library(signature, toolchain),
    }
    missing = stand_ins(build.undefined_symbols, toolchain)
    return files if missing is None else {**files, "missing.so": missing}


def _readable(outcome: LaunchPlan | Unrecordable, build: Build) -> LaunchPlan | Unrecordable:
    """Put kernels' names as people write them into the texts for people."""
    names = sorted(((k.name, k.display_name) for k in build.kernels), key=lambda pair: -len(pair[0]))

    def readable(text: str) -> str:
        for mangled, name in names:
            text = text.replace(mangled, name) if mangled != name else text
        return text

    if isinstance(outcome, Unrecordable):
        return outcome.model_copy(update={"reason": readable(outcome.reason)})
    if not outcome.notes:
        return outcome
    return outcome.model_copy(update={"notes": tuple(map(readable, outcome.notes))})


def _judge(
    build: Build, signature: Signature, call: Call, endings: tuple[Ending, Ending], timeout_s: float
) -> LaunchPlan | Unrecordable:
    transcripts = []
    try:
        for ending in endings:
            transcript = read_transcript(ending.transcript)
            failure = _failure(ending, transcript, signature, timeout_s)
            if failure is not None:
                return failure
            transcripts.append(transcript)
        return _plan(build, signature, call, transcripts[0], transcripts[1])
    except TranscriptError as error:
        return Unrecordable(
            status=Status.RUNTIME_ERROR, reason=f"host code wrote into the recording: {error}"
        )


def _failure(
    ending: Ending, transcript: Transcript, signature: Signature, timeout_s: float
) -> Unrecordable | None:
    """Return why this recording gives no plan, or None where its first call is complete."""
    if not transcript.ready:
        raise HarnessError(_not_ready(ending, transcript))
    if transcript.first_call_returned:
        return _bad_return(transcript, signature)
    if transcript.ending is not None:
        return _ended_early(transcript.ending)
    if ending.timed_out or ending.returncode == -signal.SIGXCPU:
        where = "host code did not return" if transcript.calls else "loading the host object did not end"
        return Unrecordable(status=Status.TIMEOUT, reason=f"{where} within {timeout_s:g} s")
    when = "before the launcher returned" if transcript.calls else "while the host object was loaded"
    if ending.returncode == -signal.SIGSYS:
        return Unrecordable(
            status=Status.UNSUPPORTED, reason=f"host code made a forbidden system call {when}"
        )
    how = f"exit code {ending.returncode}"
    if ending.returncode < 0:
        how = signal.Signals(-ending.returncode).name
    return Unrecordable(status=Status.RUNTIME_ERROR, reason=f"host code ended the process {when} ({how})")


def _not_ready(ending: Ending, transcript: Transcript) -> str:
    if transcript.ending is not None:
        return str(transcript.ending.get("reason"))
    if ending.timed_out:
        return "the recorder did not start in time; the machine may be overloaded"
    return f"the recorder ended with {ending.returncode} before it began: {ending.complaint[:300]}"


def _bad_return(transcript: Transcript, signature: Signature) -> Unrecordable | None:
    """Return the error that the launcher returned or left behind, if any."""
    returned = transcript.calls[0].returned or {}
    value = _signed(returned)
    reason = ""
    if signature.returns != "void" and value != 0:
        name = f" ({returned.get('value_name')})" if signature.returns == "cudaError_t" else ""
        reason = f"the launcher returned {value}{name}"
    if number(returned, "error") != 0:
        left = f"{returned.get('reason')} ({returned.get('name')})"
        reason = f"{reason}: {left}" if reason else left
    status = Status.OUT_OF_MEMORY if _NO_MEMORY in reason else Status.LAUNCH_ERROR
    return Unrecordable(status=status, reason=reason[:1000]) if reason else None


def _signed(returned: Line) -> int:
    value = returned.get("value")
    if type(value) is not int:
        raise TranscriptError("a return has no value")
    return value


def _ended_early(line: Line) -> Unrecordable:
    if line["op"] == "harness":
        raise HarnessError(str(line.get("reason"))[:1000])
    if line["op"] == "refuse":
        broken = line.get("broken") is True
        return Unrecordable(
            status=Status.RUNTIME_ERROR if broken else Status.UNSUPPORTED,
            reason=str(line.get("reason"))[:1000],
            direct_possible=line.get("direct") is True,
        )
    if line["op"] == "system_call":
        return Unrecordable(status=Status.UNSUPPORTED, reason=describe_system_call(number(line, "number")))
    name = _signal_name(number(line, "signal"))
    where = " at an address of device memory" if line.get("device_memory") is True else ""
    return Unrecordable(status=Status.RUNTIME_ERROR, reason=f"host code failed with {name}{where}")


def _signal_name(value: int) -> str:
    try:
        return signal.Signals(value).name
    except ValueError as error:
        raise TranscriptError("there is no such signal") from error


def _plan(
    build: Build, signature: Signature, call: Call, first: Transcript, second: Transcript
) -> LaunchPlan | Unrecordable:
    returned = None if signature.returns == "void" else _signed(first.calls[0].returned or {})
    try:
        plan = assemble(
            first, second, symbol=signature.symbol, device_code=build.device_code, returned=returned
        )
        _require_buffers(plan, call)
        check_plan(plan, build)
    except RecordingsDiffer as fact:
        return Unrecordable(
            status=Status.UNSUPPORTED,
            reason=f"two recordings of one call differ: {fact}",
            direct_possible=True,
        )
    except HostAddress as fact:
        return Unrecordable(status=Status.UNSUPPORTED, reason=str(fact), direct_possible=True)
    except BadLauncher as fact:
        return Unrecordable(status=Status.RUNTIME_ERROR, reason=str(fact))
    except PlanRefused as fact:
        return Unrecordable(status=Status.RUNTIME_ERROR, reason=f"the recording is no plan: {fact}")
    return plan


def _require_buffers(plan: LaunchPlan, call: Call) -> None:
    buffers = [(a.name, a.size_bytes) for a in plan.allocations if a.kind == "buffer"]
    if buffers != list(call.buffers.items()):
        raise TranscriptError("its buffers are not those of the call")
