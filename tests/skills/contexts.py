"""Contexts for skills: a task of one launcher with some promises."""

from __future__ import annotations

from kernelskill.schema.task import Case, Promise, Signature, Task
from kernelskill.skills.transformation import SkillContext


def context_for(symbol: str, *promises: Promise, flags: tuple[str, ...] = ()) -> SkillContext:
    """Return a context in which the user promises something about the launcher."""
    task = Task(
        name=symbol,
        signature=Signature(symbol=symbol, parameters=()),
        cases=(Case(index=0, arguments={"n": 1}, timed=True),),
        roles={},
        tolerances={},
        promise=frozenset(promises),
        flags=flags,
        original="0" * 64,
        tests="0" * 64,
    )
    return SkillContext(task=task)
