"""Run a right candidate under the sanitizer, where the device has one; what the original shows is excused."""

from __future__ import annotations

from kernelskill.backends.base import Unrecordable
from kernelskill.evaluation.capabilities import SanitizerReport, SanitizingBackend
from kernelskill.evaluation.case_run import CheckReport
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.workshop import Workshop
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.evaluation import Status
from kernelskill.schema.task import Case


def sanitize(
    workshop: Workshop,
    protocol: CheckProtocol,
    candidate: Build,
    original: Build | BuildFailure,
    report: CheckReport,
) -> None:
    """Look for memory errors and races on a small awkward case; the result goes into `report`.

    Args:
        workshop: Of the backend; one without sanitizer changes nothing but says so.
        protocol: The task and its values.
        candidate: What is looked at.
        original: Looked at too, when the candidate shows something.
        report: Of the candidate's check.
    """
    case = protocol.cases("cheap")[-1]
    found = _findings(workshop, protocol, candidate, case)
    if found is None or found.unavailable:
        reason = found.unavailable if found is not None else "this device has none"
        report.unverified.append(f"no sanitizer ran: {reason}")
    if found is None or not found.findings:
        return
    excused: set[str] = set()
    if isinstance(original, Build) and original.key != candidate.key:
        theirs = _findings(workshop, protocol, original, case)
        excused = (
            {finding.tool for finding in theirs.findings if finding.severity == "error"}
            if theirs is not None
            else set()
        )
    for finding in found.findings:
        place = f" at line {finding.line}" if finding.line else ""
        text = f"{finding.tool}: {finding.message}{place}"
        if finding.severity == "warning":
            report.note(f"{text} (advisory)")
        elif finding.tool in excused:
            report.note(f"{text}; the original shows {finding.tool} errors too")
        else:
            report.fail(Status.SANITIZER_ERROR, f"case {case.label}: {text}")


def _findings(
    workshop: Workshop, protocol: CheckProtocol, build: Build, case: Case
) -> SanitizerReport | None:
    backend = workshop.backend
    plan = workshop.plans(build).plan(protocol.plain_call(case))
    if not isinstance(backend, SanitizingBackend) or isinstance(plan, Unrecordable):
        return None
    return backend.sanitize(build, plan, protocol.trial(case, 0).bundle.contents())
