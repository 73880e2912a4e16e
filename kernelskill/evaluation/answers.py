"""Put what the stages found out into an Evaluation."""

from __future__ import annotations

from kernelskill.backends.base import Unrecordable
from kernelskill.errors import WorkerDied
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.time_stage import TimeReport
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import CaseShape, Evaluation, Request, StageSeconds, Status
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Role, Task

_PASSES = {Role.INPUT: 1, Role.OUTPUT: 1, Role.INOUT: 2, Role.SCRATCH: 0}
"""How often any kernel must move an array of a role."""
_READ = (Role.INPUT, Role.INOUT)


def plan_facts(plan: LaunchPlan | Unrecordable, *, directly: bool) -> dict[str, object]:
    """Return what the plan of the first timed case says about a launcher."""
    if not isinstance(plan, LaunchPlan):
        return {"execution": "direct" if directly else "none"}
    return {
        "execution": "direct" if directly else "replayed",
        "allocations": plan.host_calls.allocations,
        "synchronizations": plan.host_calls.synchronizations,
        "launches": plan.host_calls.launches,
    }


def shapes_of(protocol: CheckProtocol) -> tuple[CaseShape, ...]:
    """Return the sizes of the timed cases."""
    return tuple(_shape(protocol.task, protocol, index) for index in range(len(protocol.task.timed_cases)))


def _shape(task: Task, protocol: CheckProtocol, position: int) -> CaseShape:
    case = task.timed_cases[position]
    bundle = protocol.trial(case, 0).bundle
    return CaseShape(
        case=case.index,
        buffers=bundle.buffers,
        scalars=bundle.scalars,
        least_bytes=sum(size * _PASSES[task.roles[name]] for name, size in bundle.buffers.items()),
        least_reads=sum(size for name, size in bundle.buffers.items() if task.roles[name] in _READ),
    )


def uncompiled(
    evaluation: Evaluation, failure: BuildFailure, seconds: tuple[StageSeconds, ...]
) -> Evaluation:
    """Return the evaluation of a candidate that the compiler refused."""
    first = failure.diagnostics[0] if failure.diagnostics else None
    detail = "the compiler did not finish in time" if failure.timed_out else failure.log[:200]
    # What a compiler says that is being stopped is no fault of the source.
    if first is not None and not failure.timed_out:
        detail = f"{first.file}:{first.line}: {first.message}"
    return evaluation.model_copy(
        update={
            "status": Status.COMPILE_ERROR,
            "detail": detail,
            "diagnostics": failure.diagnostics,
            "commands": failure.commands,
            "seconds": seconds,
        }
    )


def unpermitted(
    evaluation: Evaluation, build: Build, refusal: str, seconds: tuple[StageSeconds, ...]
) -> Evaluation:
    """Return the evaluation of a candidate that is made of what its task does not permit; it was never run."""
    return evaluation.model_copy(
        update={
            "status": Status.UNSUPPORTED,
            "detail": refusal,
            "kernels": build.kernels,
            "machine_code": build.machine_code,
            "commands": build.commands,
            "seconds": seconds,
        }
    )


def with_times(check: Evaluation, report: TimeReport) -> Evaluation:
    """Return the evaluation of a checked candidate with what timing found out."""
    return check.model_copy(
        update={
            "status": report.status,
            "detail": report.detail,
            "timings": tuple(report.timings),
            "incumbent_timings": tuple(report.incumbent_timings),
            "paired": tuple(report.paired),
        }
    )


def begun(request: Request, conditions: Conditions, trouble: tuple[str, ...]) -> Evaluation:
    """Return the evaluation of a candidate of which nothing bad is known yet."""
    return Evaluation(
        key=request.key,
        candidate=request.candidate.digest,
        stage=request.stage,
        depth=request.depth,
        status=Status.PASSED,
        notes=trouble,
        conditions=conditions,
    )


def spoilt(
    request: Request, error: WorkerDied, trouble: tuple[str, ...], conditions: Conditions
) -> Evaluation:
    """Return the answer where the worker died twice with the same candidate."""
    found = {"status": Status.HARNESS_ERROR, "detail": f"the worker died twice: {error.message}"}
    return begun(request, conditions, trouble).model_copy(update=found)
