"""Evidence: why things are as they are, from the records of the run."""

from __future__ import annotations

from kernelskill.session.history import History
from kernelskill.session.records import Explanation
from kernelskill.session.steering import SteeringDesk
from kernelskill.session.workbench import Workbench


class Evidence:
    """Explains."""

    def __init__(self, bench: Workbench, history: History, steering: SteeringDesk) -> None:
        self._bench = bench
        self._history = history
        self._steering = steering

    def ask(self, question: str) -> Explanation:
        return Explanation(subject="question", name=question, lines=())

    def about(self, text: str) -> Explanation | None:
        return None
