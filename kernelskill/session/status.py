"""Where a session stands, in one record that costs nothing."""

from __future__ import annotations

from kernelskill.session.records import SessionStatus
from kernelskill.session.settings import Settings
from kernelskill.session.tree import find_node
from kernelskill.session.workbench import Workbench, heaviest


def status_of(bench: Workbench, settings: Settings) -> SessionStatus:
    """Return where a session stands, before the baseline too."""
    context, state = bench.context, bench.state
    conditions = context.evaluator.conditions()
    case = None
    if state.baseline is not None:
        member = bench.head
        case = heaviest(bench.case_times(member.candidate, member.evaluation.timings))
    model = settings.model()
    return SessionStatus(
        task=context.task.name,
        device=context.evaluator.device,
        gpu=context.evaluator.gpu.name,
        clock_mhz=conditions.sm_clock_mhz,
        evidence=context.evaluator.evidence,
        estimated=context.evaluator.evidence == "estimated",
        original_ms=case.original_ms if case else None,
        best_ms=case.ms if case else None,
        speedup=state.best_speedup,
        roof_fraction=case.roof_fraction if case else None,
        round=state.rounds,
        open_round=state.open_round.round if state.open_round else None,
        head=find_node(context, "head").number,
        spend=context.spend(),
        budget=context.budget,
        model=model.spec,
        model_tokens=model.tokens,
        model_usd=model.usd,
        rules=len(state.rules),
        confirmed=state.confirmed is not None,
        folder=str(context.run.root),
    )
