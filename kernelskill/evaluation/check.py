"""The correctness protocol: what a candidate must survive before anyone looks at its time."""

from __future__ import annotations

from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.case_run import CaseRun, CheckReport
from kernelskill.evaluation.mixing import tell_mixed_inputs_apart
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.schema.evaluation import Depth, Status
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Allowance


def check_candidate(protocol: CheckProtocol, bench: Bench, depth: Depth) -> CheckReport:
    """Put one candidate through the protocol; stops at the first failure.

    Args:
        protocol: What has to be survived.
        bench: Holds the candidate.
        depth: `cheap` takes the smallest case and an awkward one, one trial each.
    """
    report = CheckReport()
    for case in protocol.cases(depth):
        if not protocol.runs_in_full(case):
            report.unverified.append(f"case {case.label}: too large to run in full on the emulated device")
            continue
        for outcome in CaseRun(protocol, bench, case, report).steps(depth):
            report.outcomes.append(outcome)
            if outcome.status is not Status.PASSED:
                report.fail(outcome.status, outcome.detail)
                return report
        if report.races and not protocol.demands.races:
            report.fail(Status.SANITIZER_ERROR, f"case {case.label}: {report.races[0]}")
            return report
    _compare_precision(protocol, report)
    if report.status is Status.PASSED and depth != "cheap":
        _compare_history(protocol, bench, report)
    if report.status is Status.PASSED and depth == "full" and bench.remembers:
        tell_mixed_inputs_apart(protocol, bench, report)
    return report


def _compare_history(protocol: CheckProtocol, bench: Bench, report: CheckReport) -> None:
    """Refuse a launcher that asks for other work after a call of another case in the same process."""
    calls = protocol.plain_calls()
    call, before = calls[-1], next((other for other in calls if other != calls[-1]), calls[-1])
    reason = bench.plans.history(call, before) if bench.plans is not None else ""
    if reason:
        report.fail(Status.NONDETERMINISTIC, f"case {protocol.task.cases[-1].label}: {reason}")
    plan = bench.plans.plan(call) if bench.plans is not None else None
    if isinstance(plan, LaunchPlan) and plan.leaked_bytes and not protocol.demands.leaks:
        detail = f"every call takes {plan.leaked_bytes} bytes of device memory and never gives them back"
        report.fail(Status.OUT_OF_MEMORY, f"{detail}; the original does not")


def _compare_precision(protocol: CheckProtocol, report: CheckReport) -> None:
    """Refuse a candidate whose error is far beyond the original's own; note one whose error grew much."""
    loss = protocol.precision_loss(report.errors)
    if loss is None:
        return
    label = next(case.label for case in protocol.task.cases if case.index == loss.case)
    if loss.is_grave and Allowance.LOWER_PRECISION not in protocol.task.allow:
        detail = f"case {label}: {loss}; only ALLOW = {{'lower_precision'}} in the tests permits that"
        report.fail(Status.INCORRECT, detail)
    else:
        report.note(f"case {label}: {loss}")
