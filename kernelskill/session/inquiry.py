"""Have a model answer a question from the run's evidence."""

from __future__ import annotations

from kernelskill.agents.profiler import Diagnosis
from kernelskill.session.records import Explanation
from kernelskill.session.workbench import Workbench


def answered_by_model(
    bench: Workbench, question: str, own: Explanation, diagnosis: Diagnosis
) -> Explanation | None:
    """Return a model's answer; None where there is no model or it does not answer."""
    return None
