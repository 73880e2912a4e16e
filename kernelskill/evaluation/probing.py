"""Find out which layouts the original survives; candidates must survive the same ones and no more."""

from __future__ import annotations

from kernelskill.evaluation import calls
from kernelskill.evaluation.calls import Arrangement
from kernelskill.evaluation.case_run import CaseRun, CheckReport
from kernelskill.evaluation.demands import Demands
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.trials import Trial
from kernelskill.evaluation.workshop import Workshop
from kernelskill.schema.build import Build
from kernelskill.schema.evaluation import CheckOutcome
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Case, Promise


def find_demands(protocol: CheckProtocol, workshop: Workshop, original: Build) -> Demands:
    """Run the original in every layout on every small case.

    Args:
        protocol: Of demands that are not known yet.
        workshop: Opens the workers; one that a layout broke is replaced.
        original: The build of the user's own kernel.
    """
    report = CheckReport()
    cases = [case for case in protocol.cases("full") if protocol.runs_in_full(case)]
    directly = workshop.must_run_directly(original, protocol.plain_calls()) is not None
    survey = _Survey(protocol, workshop, original, report, directly=directly)
    survey.run([(case, _plain(protocol.trial(case, 0))) for case in cases])
    small = [case for case in cases if protocol.tries_layouts(case)]
    notes: list[str] = []
    offset = Promise.ALIGNED16 not in protocol.task.promise
    if offset:
        failure = survey.run(_offset(protocol, small))
        offset = failure is None
        if failure is not None:
            notes.append(f"unaligned pointers are not tested: the original fails there ({failure.detail})")
    aliases = []
    for alias in calls.permitted_aliases(protocol.task):
        # A small case may lie in one wave of blocks, where all is read before anything is written.
        if not _aliased(protocol, small, alias):
            continue
        by_luck = survey.run_twice(_aliased(protocol, cases, alias))
        if by_luck is None:
            aliases.append(alias)
        elif by_luck:
            notes.append(
                f"{' and '.join(alias)} in one buffer are not tested: what the original makes of them"
                " depends on the order in which its blocks run"
            )
    return Demands(
        offset=offset,
        aliases=tuple(aliases),
        races=bool(report.races),
        leaks=_leaks(protocol, workshop, original),
        run_seconds=report.run_seconds,
        errors=report.errors,
        notes=tuple(notes),
    )


def _leaks(protocol: CheckProtocol, workshop: Workshop, original: Build) -> bool:
    plan = workshop.plans(original).plan(protocol.plain_calls()[-1])
    return isinstance(plan, LaunchPlan) and plan.leaked_bytes > 0


class _Survey:
    """Runs arrangements of the original one after the other."""

    def __init__(
        self,
        protocol: CheckProtocol,
        workshop: Workshop,
        build: Build,
        report: CheckReport,
        *,
        directly: bool,
    ) -> None:
        self._directly = directly
        self._protocol = protocol
        self._workshop = workshop
        self._build = build
        self._report = report

    def run(self, arranged: list[tuple[Case, Arrangement]]) -> CheckOutcome | None:
        """Return the first failure, or None; every call uses a fresh worker."""
        with self._workshop.bench(self._build, directly=self._directly) as bench:
            for case, arrangement in arranged:
                run = CaseRun(self._protocol, bench, case, self._report)
                outcome = run.probe(arrangement, self._protocol.trial(case, 0))
                if outcome.status != "passed":
                    return outcome
        return None

    def run_twice(self, arranged: list[tuple[Case, Arrangement]]) -> bool | None:
        """Return None if every call passes twice, else whether one passed and then failed.

        No order of blocks is promised to a kernel: a device that chooses it runs them from the first to the last
        and the other way round in turn, and a GPU has an order of its own each time.
        """
        with self._workshop.bench(self._build, directly=self._directly) as bench:
            for case, arrangement in arranged:
                run = CaseRun(self._protocol, bench, case, self._report)
                for number in range(2):
                    if run.probe(arrangement, self._protocol.trial(case, 0)).status != "passed":
                        return number > 0
        return None


def _offset(protocol: CheckProtocol, cases: list[Case]) -> list[tuple[Case, Arrangement]]:
    trials = [(case, protocol.trial(case, 0)) for case in cases]
    found = [(case, calls.offset(protocol.task, t.extents, t.bundle.scalars)) for case, t in trials]
    return [(case, arrangement) for case, arrangement in found if arrangement is not None]


def _aliased(
    protocol: CheckProtocol, cases: list[Case], alias: tuple[str, str]
) -> list[tuple[Case, Arrangement]]:
    trials = [(case, protocol.trial(case, 0)) for case in cases]
    found = [(case, calls.aliased(t.extents, t.bundle.scalars, alias)) for case, t in trials]
    return [(case, arrangement) for case, arrangement in found if arrangement is not None]


def _plain(trial: Trial) -> Arrangement:
    return calls.plain(trial.extents, trial.bundle.scalars)
