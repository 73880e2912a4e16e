"""What a round's records add up to: slates, verdicts, members, experiences and the new frontier."""

from __future__ import annotations

from itertools import combinations
from math import exp, log

from kernelskill.agents.kept_bits import SAME_BITS, changed_bits
from kernelskill.agents.verifier import objection
from kernelskill.evaluation.judge import Margins, judge
from kernelskill.graph.context import MEMBERS, RoundContext
from kernelskill.graph.state import RoundState
from kernelskill.policy.features import context_features
from kernelskill.profiling.potential import Potential, potentials
from kernelskill.profiling.roofline import arithmetic_rate, roofline
from kernelskill.runs import fold
from kernelskill.schema.candidate import Candidate, Lineage, Patch
from kernelskill.schema.evaluation import DEVICE_STAGES, Evaluation, Request, Verdict, VerdictKind
from kernelskill.schema.event import Evaluated
from kernelskill.schema.profile import Roofline
from kernelskill.schema.proposal import Exactness, Proposal
from kernelskill.schema.run import Member, Round, Tried
from kernelskill.search.frontier import best_member, updated_frontier
from kernelskill.source.edits import unified_diff
from kernelskill.source.features import features
from kernelskill.source.unit import SourceUnit

_STAYS_ALIVE = (VerdictKind.ACCEPTED, VerdictKind.TIE)


def device_seconds(evaluation: Evaluation) -> float:
    """Return how long an evaluation held the device."""
    return sum(stage.seconds for stage in evaluation.seconds if stage.stage in DEVICE_STAGES)


def rooflines(context: RoundContext, evaluation: Evaluation) -> tuple[Roofline, ...]:
    """Return where each timed case of an evaluation stands under the ceilings."""
    cases, gpu = {case.index: case for case in context.task.timed_cases}, context.evaluator.gpu
    arithmetic = arithmetic_rate(context.task, gpu)
    return tuple(
        roofline(cases[t.case], None, context.shapes.get(t.case), t, gpu, flops_per_s=arithmetic)
        for t in evaluation.timings
        if t.case in cases
    )


def heaviest_roofline(context: RoundContext, member: Member) -> Roofline | None:
    """Return the roofline of the member's longest timed case."""
    return max(rooflines(context, member.evaluation), key=lambda r: r.time_ms, default=None)


def features_of(context: RoundContext, base: str) -> dict[str, float]:
    """Return the context features of a decision that starts from a base."""
    diagnosis = context.diagnosis(base)
    return context_features(diagnosis.bottlenecks, _source_features(context, base), diagnosis.roofline)


def potentials_of(context: RoundContext, base: str) -> dict[str, Potential]:
    """Return what can be won in each kernel of a base.

    Profiles are of one timed case. A kernel that does not run there may be what the others spend their
    time in, so where there are others it has their weight.
    """
    profile = context.diagnosis(base).profile
    found = potentials(profile)
    cases = context.task.timed_cases
    total = sum(case.weight for case in cases)
    others = sum(case.weight for case in cases if case.index != profile.case) / total if total > 0 else 0.0
    if found and others > 0:
        units = [SourceUnit.parse(file.text, file.path) for file in context.member(base).candidate.files]
        for kernel in (kernel for unit in units for kernel in unit.kernels):
            found.setdefault(kernel.name, Potential(time_share=others, distance=1.0))
    return found


def evaluated(number: int, proposal: Proposal, evaluation: Evaluation) -> Evaluated:
    """Return the event that says how an evaluation ended."""
    return Evaluated(
        round=number,
        proposal=proposal.id,
        label=proposal.label,
        specialist=proposal.specialist,
        candidate=proposal.candidate.digest,
        evaluation=evaluation.key,
        status=evaluation.status,
        detail=evaluation.detail,
        seconds=device_seconds(evaluation),
        evidence=evaluation.timings[0].evidence if evaluation.timings else "none",
    )


def verdict(context: RoundContext, proposal: Proposal, evaluation: Evaluation) -> Verdict:
    """Return the decision about a candidate against the base it started from."""
    original = context.member(context.task.original).evaluation
    reason = objection(proposal, evaluation, original, context.task, keep_exact=context.config.keep_exact)
    if reason:
        return Verdict(kind=VerdictKind.REFUSED, reason=reason)
    return judge(context.task, evaluation, incumbent_label="its base", noise=context.noise)


def confirmed_verdict(
    context: RoundContext, winner: Member, request: Request, evaluation: Evaluation
) -> Verdict:
    """Return the decision about the winner against the original on seeds that the search never used.

    Bits that were compared in the search are compared again.
    """
    if context.config.keep_exact and SAME_BITS in winner.assumptions and evaluation.passed:
        original = context.member(context.task.original).candidate
        check = request.model_copy(update={"candidate": original, "stage": "check", "incumbent": None})
        reason = changed_bits(evaluation, context.evaluator.evaluate(check), context.task)
        if reason:
            return Verdict(kind=VerdictKind.REFUSED, reason=reason)
    return judge(context.task, evaluation, incumbent_label="the original", noise=context.noise)


def keep_member(
    context: RoundContext, proposal: Proposal, evaluation: Evaluation, decided: Verdict
) -> Member | None:
    """Keep a right candidate as a possible member of the frontier; None where it was refused."""
    if decided.kind in (VerdictKind.REFUSED, VerdictKind.PASSED_OVER):
        return None
    base = context.member(proposal.base)
    patch = Patch(
        parent=proposal.base,
        child=proposal.candidate.digest,
        steps=proposal.steps,
        diff=unified_diff(base.candidate, proposal.candidate),
        title="" if proposal.steps else proposal.label,
    )
    speedup = speedup_to(context, context.member(context.task.original).evaluation, evaluation)
    member = Member(
        candidate=proposal.candidate,
        lineage=Lineage(patches=(*base.lineage.patches, patch)),
        evaluation=evaluation,
        speedup=speedup,
        proven=_is_proven(context, base, decided, speedup),
        exact=base.exact and proposal.exactness is Exactness.EXACT,
        assumptions=tuple(dict.fromkeys((*base.assumptions, *proposal.assumptions))),
    )
    context.run.put(MEMBERS, member.candidate.digest, member)
    return member


def _is_proven(context: RoundContext, base: Member, decided: Verdict, speedup: float) -> bool:
    """Return whether a candidate may be the result.

    A gain over a proven base is proof. A gain over a level step must also clear the best proven
    member by the margin of the evidence: the step may have lost what the gain won back.
    """
    if decided.kind is not VerdictKind.ACCEPTED:
        return False
    if base.proven:
        return True
    margins = Margins()
    margin = margins.estimate if decided.evidence == "estimated" else 2 * margins.least_gain
    best = context.member(fold(context.log.events).best)
    return speedup > best.speedup * (1 + margin)


def speedup_to(context: RoundContext, reference: Evaluation, evaluation: Evaluation) -> float:
    """Return the weighted geometric mean over the timed cases of reference time / time."""
    total, weights = 0.0, 0.0
    for case in context.task.timed_cases:
        ours, theirs = evaluation.timing(case.index), reference.timing(case.index)
        if ours is not None and theirs is not None:
            total += case.weight * log(theirs.median_ms / ours.median_ms)
            weights += case.weight
    return exp(total / weights) if weights else 1.0


def gains(context: RoundContext, number: int, proposals: list[str]) -> dict[str, float]:
    """Return ln(speedup) over the base of each accepted proposal."""
    return {
        j.proposal: log(j.verdict.speedup)
        for j in context.judgements(number)
        if j.proposal in proposals and j.verdict.speedup is not None
    }


def briefly_faster(context: RoundContext, number: int, base: str) -> list[tuple[float, Proposal]]:
    """Return what a brief look found faster than a base and no full evaluation followed: ln(speedup), proposal."""
    faster = [
        (log(j.verdict.speedup), context.proposal(j.proposal))
        for j in context.judgements(number)
        if j.verdict.kind is VerdictKind.PASSED_OVER and j.verdict.speedup is not None
    ]
    return [(gain, proposal) for gain, proposal in faster if proposal.base == base]


def conflicts(proposals: list[Proposal]) -> set[frozenset[str]]:
    """Return the pairs that change the same thing: the same skill at the same site."""
    return {
        frozenset((one.id, other.id))
        for one, other in combinations(proposals, 2)
        if {(s.skill, s.site) for s in one.steps} & {(s.skill, s.site) for s in other.steps}
    }


def round_result(context: RoundContext, state: RoundState) -> tuple[tuple[Member, ...], Round]:
    """Return the frontier after the round, best first, and the record of the round."""
    judgements = context.judgements(state["round"])
    before = [context.member(digest) for digest in frontier_before(context, state["round"])]
    # The first one is the result so far, be it because the user chose it.
    before[0] = before[0].model_copy(update={"proven": True})
    newcomers = [
        context.member(j.candidate)
        for j in judgements
        if j.verdict.kind in _STAYS_ALIVE and context.run.has(MEMBERS, j.candidate)
    ]
    frontier = updated_frontier(before, newcomers, context.config.frontier)
    tried = tuple(
        Tried(
            proposal=j.proposal,
            label=j.label,
            candidate=j.candidate,
            evaluation=_key_of(context, context.proposal(j.proposal)),
            verdict=j.verdict,
            speedup_to_original=j.speedup_to_original,
            combined=j.combined,
        )
        for j in judgements
    )
    result = Round(
        number=state["round"],
        base=state["bases"][0],
        tried=tried,
        accepted=tuple(j.candidate for j in judgements if j.verdict.kind is VerdictKind.ACCEPTED),
        best_speedup=best_member(frontier).speedup,
        evidence=context.evaluator.evidence,
    )
    return frontier, result


def _key_of(context: RoundContext, proposal: Proposal) -> str:
    return context.request(proposal, depth=context.depth_of(proposal)).key


def frontier_before(context: RoundContext, number: int) -> tuple[str, ...]:
    """Return the digests of the frontier that a round began with."""
    from_log = [e.frontier for e in context.log.events if e.kind == "round_started" and e.round == number]
    return from_log[-1] if from_log else (context.task.original,)


def _source_features(context: RoundContext, base: str) -> dict[str, float]:
    candidate: Candidate = context.member(base).candidate
    profile = context.diagnosis(base).profile
    hottest = profile.kernels[0].kernel if profile.kernels else ""
    units = [SourceUnit.parse(file.text, file.path) for file in candidate.files]
    kernels = [(unit, kernel) for unit in units for kernel in unit.kernels if not kernel.is_opaque]
    # A display name may carry template arguments and namespaces; a lone kernel needs no name.
    named = [pair for pair in kernels if pair[1].name == hottest.split("<")[0].rsplit("::", 1)[-1]]
    for unit, kernel in named or kernels[:1]:
        return features(unit, kernel)
    return {}
