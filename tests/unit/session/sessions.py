"""Sessions on the scripted device: rounds take no time, and nothing is kept in memory between two of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.session import Session
from kernelskill.session.assemble import Assembly
from kernelskill.session.borders import Asker, BorderAnswer, BorderQuestion, Borders
from kernelskill.session.guard import guarded
from kernelskill.session.user_file import opened
from tests.unit.graph.shop import Shop

WIDTHS = {"8": 0.9, "4": 0.8, "2": 0.7, "1": 0.95}
FACTORS = 'parameters:\n  - {name: factor, values: ["8", "4", "2", "1"]}'


def stocked(shop: Callable[..., Shop], **settings: Any) -> Shop:
    """A task with three directions: shared memory wins most, unrolling has a parameter, registers follow."""
    made = shop(**{"slate": 3, "points": 0, **settings})
    made.skill("memory/shared_tile", "/* plain */", "__shared__ float tile[1];", 0.5, prior=0.5)
    made.skill("compute/unroll", "/* plain */", "/* unrolled {width} */", WIDTHS, fields=FACTORS)
    transform = made.skills / "compute/unroll/transform.py"
    transform.write_text(transform.read_text().replace("width", "factor"))
    made.skill("memory/accumulate_in_register", "/* plain */", "/* register */", 0.8, prior=0.3)
    return made


class Answers:
    """Answers questions at borders in turn, and keeps them; the last answer is given for ever."""

    def __init__(self, *answers: str | BorderAnswer) -> None:
        self.asked: list[BorderQuestion] = []
        self._answers = list(answers)

    def __call__(self, question: BorderQuestion) -> BorderAnswer:
        self.asked.append(question)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer if isinstance(answer, BorderAnswer) else BorderAnswer(kind=answer)  # type: ignore[arg-type]


def session_of(
    made: Shop, out: str = "out", *, ask: Asker | None = None, kernel: Path | None = None, **at: Any
) -> Session:
    """Return a session on a shop's run, new or taken up again."""
    context = made.context(out, **at)
    (context.run.root / "task").mkdir(exist_ok=True)
    borders = Borders(context.log, ask)
    guard = guarded(context.evaluator, borders, made.original, EvaluationStore(context.run.root))
    context.evaluator = guard
    return Session(
        Assembly(
            context=context,
            original=made.original,
            seeds=SeedFile(context.run.seeds),
            attempt=0,
            moved=False,
            guard=guard,
            borders=borders,
            generated="",
            resources=ExitStack(),
            opened=opened(kernel, made.original) if kernel is not None else None,
        )
    )
