"""Free text: a question is answered from the evidence, everything else is a wish."""

from __future__ import annotations

from kernelskill.errors import UsageError
from kernelskill.session.clauses import cleaned, is_question
from kernelskill.session.evidence import Evidence
from kernelskill.session.records import Said
from kernelskill.session.steering import SteeringDesk


def said(text: str, steering: SteeringDesk, evidence: Evidence, *, has_model: bool) -> Said:
    """Return what became of free text.

    Raises:
        UsageError: There is none.
    """
    text = cleaned(text)
    if not text.strip():
        raise UsageError("nothing was said", remedy="say what to try, what to leave alone, or ask something")
    if is_question(text, steering.vocabulary):
        return Said(kind="answer", explanation=evidence.ask(text))
    steered = steering.say(text)
    if steered.rules or steered.withdrawn:
        kind = "note" if steered.rules and all(r.strength == "note" for r in steered.rules) else "steering"
        return Said(kind="note" if kind == "note" else "steering", steered=steered)
    # A direction alone is taken for a question; what looks misspelt is not.
    misspelt = any(unknown.near for unknown in steered.unknown)
    explanation = None if has_model or misspelt else evidence.about(text)
    return Said(kind="nothing" if explanation is None else "answer", steered=steered, explanation=explanation)
