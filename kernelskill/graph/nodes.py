"""The nodes of a round. Each reads the state, does one thing and returns what changed.

A node may run again after a kill: everything it does is keyed by content or dropped by the log.
"""

from __future__ import annotations

from collections.abc import Mapping

from langgraph.runtime import Runtime

from kernelskill.agents.brief import Brief
from kernelskill.agents.coordinator import combinations_to_try
from kernelskill.agents.merging import combined_changes
from kernelskill.agents.profiler import diagnose_candidate
from kernelskill.agents.specialist import propose
from kernelskill.errors import RunInterrupted
from kernelskill.graph import outcomes
from kernelskill.graph.context import DIAGNOSES, OFFERS, PROPOSALS, SLATES, RoundContext
from kernelskill.graph.dispatching import dispatched
from kernelskill.graph.learning import experiences
from kernelskill.graph.predictions import observe
from kernelskill.graph.searching import LEAST_BUILT, FamilySearch, allowance, shared_out
from kernelskill.graph.shortlist import passed_over, set_apart, shortlist, wants_shortlist
from kernelskill.graph.slates import ranked_slate
from kernelskill.graph.state import RoundState, SpecialistTask
from kernelskill.schema.event import Diagnosed, Judged, Learned, Proposed, Ranked, RoundFinished
from kernelskill.schema.proposal import Proposal, Refusal
from kernelskill.search.budget import exhausted

MOST_COMBINATIONS = 2
"""Groups of accepted changes tried together in a round."""


def profiler(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Profile every base and name its limits."""
    context = runtime.context
    for base in state["bases"]:
        if not context.run.has(DIAGNOSES, base):
            member = context.member(base)
            roofline = outcomes.heaviest_roofline(context, member)
            timings = member.evaluation.timings
            diagnosis = diagnose_candidate(context.evaluator, member.candidate, roofline, timings=timings)
            context.run.put(DIAGNOSES, base, diagnosis)
        observe(context, base)
        diagnosis = context.diagnosis(base)
        context.log.emit(
            Diagnosed(
                round=state["round"],
                candidate=base,
                source=diagnosis.profile.source,
                unavailable=diagnosis.profile.unavailable,
                bottlenecks=diagnosis.bottlenecks,
            )
        )
    return {}


def coordinator(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Mark the point from which specialists are sent out; the route is a pure function."""
    return {"combining": False}


def specialist(name: str, task: SpecialistTask, runtime: Runtime[RoundContext]) -> RoundState:
    """Ask one specialist what its skills can make of one base."""
    context = runtime.context
    member = context.member(task["base"])
    brief = Brief(
        base=member.candidate,
        lineage=member.lineage,
        task=context.task,
        only_kernel=context.config.only_kernel,
        keep_exact=context.config.keep_exact,
        tried=context.tried(),
        potentials=outcomes.potentials_of(context, task["base"]),
        steering=context.steering,
    )
    offer = propose(name, brief, context.library)
    for proposal in offer.proposals:
        context.run.put(PROPOSALS, proposal.id, proposal)
    proposed = Proposed(
        round=task["round"],
        specialist=name,
        base=task["base"],
        proposals=tuple(p.id for p in offer.proposals),
        labels=tuple(p.label for p in offer.proposals),
        refusals=offer.refusals,
    )
    offer_name = f"{task['round']:03d}-{name}-{task['base'][:16]}"
    context.run.put(OFFERS, offer_name, proposed)
    return {"offers": [offer_name]}


def policy(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Log what was offered, rank the slate and choose what to evaluate."""
    context = runtime.context
    # Specialists work side by side and end in any order; the log has one order.
    for name in sorted(state["offers"]):
        context.log.emit(context.run.get(OFFERS, name, Proposed))
    slate = ranked_slate(context, state)
    chosen = tuple(ranked.proposal for ranked in slate.ranked if ranked.chosen)
    context.run.put(SLATES, slate.id, slate)
    if context.pool is not None:
        context.pool.record_slate(slate)
    context.log.emit(
        Ranked(
            round=state["round"],
            slate=slate.id,
            policy=slate.policy,
            chosen=chosen,
            offered=len(slate.ranked),
            forecast=sum(row.forecast is not None for row in slate.ranked),
            turn=state.get("turn", 0),
        )
    )
    return {"slate": slate.id, "pending": list(chosen)}


def parameters(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Search the open parameters of what was chosen, briefly; the best points take its place.

    Where device time is limited, only what was best at its first values is searched.
    """
    context = runtime.context
    left = allowance(context, state["round"])
    searches: dict[str, FamilySearch] = {}
    proposals = [context.proposal(proposal) for proposal in state["pending"]]
    if left >= LEAST_BUILT and wants_shortlist(context, proposals):
        proposals, _ = shortlist(context, state["round"], proposals)
    for proposal, limit in shared_out(context, left, proposals):
        searches[proposal.id] = FamilySearch(context, state["round"], proposal, limit)
    for search in searches.values():
        search.prefetch()
    pending: list[str] = []
    for identity in state["pending"]:
        if identity not in searches or context.is_spent_for_now():
            pending.append(identity)
        else:
            pending.extend(searches[identity].run().goes_on)
    return {"pending": list(dict.fromkeys(pending))}


def evaluator(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Build, check and time what is pending, one at a time; a spent budget ends it early.

    Where device time is limited, all get a brief look first, and the best of them is evaluated whatever is left.
    """
    context = runtime.context
    proposals = [context.proposal(proposal) for proposal in state["pending"]]
    context.evaluator.prefetch([context.request(proposal) for proposal in proposals])
    looked: list[Proposal] = []
    if wants_shortlist(context, proposals):
        proposals, looked = shortlist(context, state["round"], proposals)
    done = [proposal.id for proposal in looked]
    for proposal in proposals:
        if context.stop.is_set:
            raise RunInterrupted("stopped between two evaluations")
        counts = proposal is proposals[0] and (looked or state["combining"])
        if context.is_spent_for_now() and not counts:
            break
        evaluation = context.evaluation(proposal, depth="search")
        context.log.emit(outcomes.evaluated(state["round"], proposal, evaluation))
        done.append(proposal.id)
    return {"pending": list(dict.fromkeys(done))}


def verifier(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Refuse what is wrong or not allowed, and let the judge decide about the rest."""
    context = runtime.context
    accepted = []
    for identity in state["pending"]:
        proposal = context.proposal(identity)
        evaluation = context.evaluation(proposal)
        verdict = outcomes.verdict(context, proposal, evaluation)
        if evaluation.depth == "cheap":
            verdict = passed_over(verdict)
        member = outcomes.keep_member(context, proposal, evaluation, verdict)
        context.log.emit(
            Judged(
                round=state["round"],
                proposal=identity,
                label=proposal.label,
                candidate=proposal.candidate.digest,
                verdict=verdict,
                speedup_to_original=member.speedup if member else None,
                combined=state["combining"],
            )
        )
        if verdict.kind.value == "accepted":
            accepted.append(identity)
    return {"judged": list(state["pending"]), "accepted": accepted, "pending": []}


def combiner(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Apply accepted changes of one base to each other's results, and join what is best for other sizes.

    Once a round: what the combinations bring is not combined again.
    """
    context = runtime.context
    limit = exhausted(context.budget, context.spend())
    if state["combining"] or limit not in (None, "device_seconds"):
        return {"pending": []}
    pending: list[str] = []
    for base in state["bases"]:
        accepted = [p for p in map(context.proposal, state["accepted"]) if p.base == base]
        gains = outcomes.gains(context, state["round"], [p.id for p in accepted])
        groups = combinations_to_try(gains, outcomes.conflicts(accepted), MOST_COMBINATIONS)
        for first, *others in dict.fromkeys((*_with_other_kernels(context, state, gains), *groups)):
            source = context.member(base).candidate
            added = [context.proposal(other) for other in others]
            both = combined_changes(
                source, context.proposal(first), added, context.library, context.skill_context
            )
            if isinstance(both, Refusal) or both.candidate.digest in context.tried():
                continue
            if both.id not in pending:
                context.run.put(PROPOSALS, both.id, both)
                pending.append(both.id)
    if limit is not None:
        # What a round found is worth one evaluation more than the device time that was meant for it.
        return {"pending": pending[:1], "combining": True}
    frontier = outcomes.frontier_before(context, state["round"])
    joined = dispatched(context, state["round"], state["bases"], frontier)
    return {"pending": list(dict.fromkeys((*joined, *pending))), "combining": True}


def _with_other_kernels(
    context: RoundContext, state: RoundState, gains: Mapping[str, float]
) -> list[tuple[str, ...]]:
    """Return the best accepted change of a base with what a brief look found best for each other kernel, if any."""
    if not gains:
        return []
    first = context.proposal(max(gains, key=lambda proposal: (gains[proposal], proposal)))
    apart = set_apart(first, outcomes.briefly_faster(context, state["round"], first.base))
    return [(first.id, *(proposal.id for proposal in apart))] if apart else []


def experience(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Record every outcome, update the policy and the frontier."""
    context = runtime.context
    rows = experiences(context, state)
    if context.pool is not None:
        context.pool.record(rows)
    context.policy.update(rows)
    context.log.emit(Learned(round=state["round"], experiences=len(rows), policy=context.policy.name))
    frontier, result = outcomes.round_result(context, state)
    context.log.emit(
        RoundFinished(
            round=state["round"],
            result=result,
            frontier=tuple(member.candidate.digest for member in frontier),
            best=frontier[0].candidate.digest,
            spend=context.spend(),
        )
    )
    return {}
