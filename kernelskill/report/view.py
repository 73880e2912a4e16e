"""RunView: everything a report says, gathered from the records of a run. It holds no layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelskill.agents.profiler import Diagnosis
from kernelskill.graph.context import DIAGNOSES, MEMBERS, PROPOSALS
from kernelskill.report.predictions import PredictionRow, prediction_rows
from kernelskill.report.usage import UsageRow, usage_by_role
from kernelskill.runs import RunFolder, RunState, fold
from kernelskill.schema.device import Conditions, Evidence
from kernelskill.schema.evaluation import Evaluation, Timing, Verdict, VerdictKind
from kernelskill.schema.event import BaselineMeasured, Event, Judged, Note, Proposed, RunStarted, Searched
from kernelskill.schema.profile import Bottleneck, KernelProfile, Roofline
from kernelskill.schema.proposal import Proposal, Refusal
from kernelskill.schema.run import Member
from kernelskill.schema.task import Case, Task
from kernelskill.tasks.snapshot import read_snapshot


@dataclass(frozen=True)
class CaseRow:
    """One timed case before and after."""

    case: Case
    original: Timing
    best: Timing
    speedup: float
    roof_original: Roofline | None
    roof_best: Roofline | None
    library: Timing | None = None
    """The test's own `baseline()`, where it was timed."""


@dataclass(frozen=True)
class ChangeRow:
    """One accepted change on the way to the winner."""

    number: int
    label: str
    verdict: Verdict | None
    diff: str
    assumptions: tuple[str, ...]
    reason: str = ""
    """Why, in the words of the model that wrote it."""


@dataclass(frozen=True)
class KernelRow:
    """Static facts of one kernel; None where it does not exist on that side."""

    name: str
    before: KernelProfile | None
    after: KernelProfile | None


@dataclass(frozen=True)
class TriedRow:
    """One candidate that was tried."""

    round: int
    label: str
    verdict: Verdict
    speedup_to_original: float | None
    combined: bool


@dataclass(frozen=True)
class RunView:
    """The run as a reader wants it."""

    started: RunStarted
    state: RunState
    original: Member
    best: Member
    cases: tuple[CaseRow, ...]
    changes: tuple[ChangeRow, ...]
    kernels: tuple[KernelRow, ...]
    tried: tuple[TriedRow, ...]
    refusals: tuple[Refusal, ...]
    before: Diagnosis | None
    after: Diagnosis | None
    unverified: tuple[str, ...]
    notes: tuple[str, ...]
    commands: tuple[str, ...]
    tests_name: str
    """File name of the test in the run's snapshot of the task."""
    alternatives: tuple[Member, ...] = field(default=())
    searches: tuple[Searched, ...] = field(default=())
    """Searches over the parameters of what was chosen."""
    predictions: tuple[PredictionRow, ...] = field(default=())
    """What skills said of metrics, and how often it held."""
    usage: tuple[UsageRow, ...] = field(default=())
    """What a model was asked, by role."""

    @property
    def has_reproducer(self) -> bool:
        """Whether the sizes of a timed case are known, so that a standalone program can be written."""
        return bool(self.original.evaluation.shapes)

    @property
    def task(self) -> Task:
        """The task."""
        return self.started.task

    @property
    def conditions(self) -> Conditions:
        """Under which the original was measured."""
        return self.original.evaluation.conditions

    @property
    def evidence(self) -> Evidence:
        """Of the headline."""
        return self.conditions.evidence

    @property
    def headline_speedup(self) -> float:
        """The confirmed speedup where there is one, else the one found in the search."""
        confirmed = self.state.confirmed
        if confirmed is not None and confirmed.verdict.speedup is not None:
            return confirmed.verdict.speedup
        return self.best.speedup

    @property
    def improved(self) -> bool:
        """Whether a change was accepted and, where it was measured again, confirmed."""
        if self.best.candidate.digest == self.original.candidate.digest:
            return False
        confirmed = self.state.confirmed
        return confirmed is None or confirmed.verdict.kind is VerdictKind.ACCEPTED


def build_view(folder: RunFolder, events: Sequence[Event]) -> RunView:
    """Gather a run's view.

    Raises:
        ArtifactCorrupt: A record of the run is missing or cannot be read.
    """
    state = fold(events)
    if state.started is None:
        raise ValueError("a run without a beginning has no view")
    task = state.started.task
    original = folder.get(MEMBERS, task.original, Member)
    best = folder.get(MEMBERS, state.best, Member)
    before, after = _diagnosis(folder, original), _diagnosis(folder, best)
    return RunView(
        started=state.started,
        state=state,
        original=original,
        best=best,
        cases=_cases(task, original.evaluation, best.evaluation, events, state),
        changes=_changes(best, events, folder),
        kernels=_kernels(before, after),
        tried=tuple(
            TriedRow(e.round, e.label, e.verdict, e.speedup_to_original, e.combined)
            for e in events
            if isinstance(e, Judged)
        ),
        refusals=_refusals(events),
        before=before,
        after=after,
        unverified=tuple(dict.fromkeys((*best.evaluation.unverified, *original.evaluation.unverified))),
        notes=_notes(events, original, best),
        commands=tuple(
            dict.fromkeys((*best.evaluation.commands, *(after.profile.commands if after else ())))
        ),
        tests_name=read_snapshot(folder.task).tests.main,
        alternatives=_alternatives(folder, state, best, original),
        searches=tuple(e for e in events if isinstance(e, Searched)),
        predictions=prediction_rows(events),
        usage=usage_by_role(events),
    )


def first_bottlenecks(diagnosis: Diagnosis | None, count: int = 3) -> tuple[Bottleneck, ...]:
    """Return the most likely limits of a diagnosis."""
    return () if diagnosis is None else diagnosis.bottlenecks[:count]


def _cases(
    task: Task, original: Evaluation, best: Evaluation, events: Sequence[Event], state: RunState
) -> tuple[CaseRow, ...]:
    baseline = next((e for e in events if isinstance(e, BaselineMeasured)), None)
    roofs = {roof.case: roof for roof in baseline.rooflines} if baseline else {}
    confirmed = state.confirmed
    own = {t.case: t for t in (confirmed.timings if confirmed and confirmed.timings else best.timings)}
    first = {
        t.case: t
        for t in (
            confirmed.original_timings if confirmed and confirmed.original_timings else original.timings
        )
    }
    libraries = {t.case: t for t in original.baseline_timings}
    rows = []
    for case in task.timed_cases:
        before, after = first.get(case.index), own.get(case.index)
        if before is None or after is None:
            continue
        roof = roofs.get(case.index)
        rows.append(
            CaseRow(
                case=case,
                original=before,
                best=after,
                speedup=before.median_ms / after.median_ms,
                roof_original=roof,
                roof_best=None if roof is None else roof_at(roof, after.median_ms),
                library=libraries.get(case.index),
            )
        )
    return tuple(rows)


def roof_at(roof: Roofline, time_ms: float) -> Roofline:
    """Return the same work under the same ceilings at another time."""
    seconds = time_ms / 1e3
    return roof.model_copy(
        update={
            "time_ms": time_ms,
            "fraction": None if roof.floor_ms is None else roof.floor_ms / time_ms,
            "bytes_per_s": None if roof.bytes is None else roof.bytes / seconds,
            "flops_per_s": None if roof.flops is None else roof.flops / seconds,
        }
    )


def _changes(best: Member, events: Sequence[Event], folder: RunFolder) -> tuple[ChangeRow, ...]:
    verdicts = {e.candidate: e.verdict for e in events if isinstance(e, Judged)}
    proposals = {e.candidate: e.proposal for e in events if isinstance(e, Judged)}
    rows = []
    known: set[str] = set()
    for number, patch in enumerate(best.lineage.patches, 1):
        assumptions: tuple[str, ...] = ()
        if folder.has(MEMBERS, patch.child):
            member = folder.get(MEMBERS, patch.child, Member)
            assumptions = tuple(a for a in member.assumptions if a not in known)
            known.update(assumptions)
        proposal = proposals.get(patch.child, "")
        reason = folder.get(PROPOSALS, proposal, Proposal).rationale if patch.title and proposal else ""
        label = patch.label or "edited by hand"
        rows.append(ChangeRow(number, label, verdicts.get(patch.child), patch.diff, assumptions, reason))
    return tuple(rows)


def _kernels(before: Diagnosis | None, after: Diagnosis | None) -> tuple[KernelRow, ...]:
    old = {k.kernel: k for k in before.profile.kernels} if before else {}
    new = {k.kernel: k for k in after.profile.kernels} if after else {}
    return tuple(KernelRow(name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new)))


def _refusals(events: Sequence[Event]) -> tuple[Refusal, ...]:
    first_round = [e for e in events if isinstance(e, Proposed) and e.round == 1]
    unique = {(r.skill, r.kernel, r.reason): r for event in first_round for r in event.refusals}
    return tuple(unique.values())


def _notes(events: Sequence[Event], original: Member, best: Member) -> tuple[str, ...]:
    said = [event.text for event in events if isinstance(event, Note)]
    baseline = [note for e in events if isinstance(e, BaselineMeasured) for note in e.notes]
    notes = [*baseline, *said, *best.evaluation.notes]
    if "direct" in (original.evaluation.execution, best.evaluation.execution):
        notes.append("the launcher could not be recorded and ran itself (direct execution)")
    return tuple(dict.fromkeys(notes))


def _alternatives(folder: RunFolder, state: RunState, best: Member, original: Member) -> tuple[Member, ...]:
    """Return the fastest exact member where the best is not exact, then the rest of the frontier."""
    others = [folder.get(MEMBERS, digest, Member) for digest in state.frontier]
    others = [
        m for m in others if m.candidate.digest not in (best.candidate.digest, original.candidate.digest)
    ]
    return tuple(sorted(others, key=lambda m: (not m.exact, -m.speedup)))


def _diagnosis(folder: RunFolder, member: Member) -> Diagnosis | None:
    digest = member.candidate.digest
    return folder.get(DIAGNOSES, digest, Diagnosis) if folder.has(DIAGNOSES, digest) else None
