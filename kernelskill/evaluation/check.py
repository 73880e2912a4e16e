"""The correctness protocol: what a candidate must survive before anyone looks at its time."""

from __future__ import annotations

from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.case_run import CaseRun, CheckReport
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.schema.evaluation import Depth, Status


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
    return report
