"""The interface between a skill's `transform.py` and the rest.

A `transform.py` holds two functions:

    def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]
    def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite

Both raise `SkillRefused` with a reason where a precondition fails or cannot be proven. `sites` is
asked again on every candidate, so that a step found on one candidate can be applied to another:
a site is recognised by its key.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.schema.candidate import Edit, Scheduled
from kernelskill.schema.proposal import SkillParameter
from kernelskill.schema.task import Allowance, Promise, Task
from kernelskill.source.unit import SourceUnit


class SkillRefused(Exception):
    """A skill does not apply, with the reason in words for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class SkillContext:
    """What a transformation may know besides the source."""

    task: Task | None = None
    """None where a skill is shown or tried outside a run: then nothing is promised."""
    units: tuple[SourceUnit, ...] = ()
    """Every parsed file of the candidate; set by `skills.apply`. Empty: the one unit is all there is."""
    scheduled: tuple[Scheduled, ...] = ()
    """Kernels of the candidate that were emitted under a schedule; set by `skills.apply`."""

    def promises(self, promise: Promise) -> bool:
        """Whether the user vouches for it."""
        return self.task is not None and promise in self.task.promise

    def emitted_with(self, path: str, kernel: str, text: str) -> str:
        """Return the scheduled kernel together with which another one was emitted; empty where it is one by itself.

        Args:
            path: Of the file.
            kernel: The name of the other one.
            text: Its definition.
        """
        for scheduled in self.scheduled:
            if scheduled.path != path or scheduled.kernel == kernel:
                continue
            if any(text in replacement.emitted for replacement in scheduled.replacements):
                return scheduled.kernel
        return ""

    def allows(self, allowance: Allowance) -> bool:
        """Whether the user permits it."""
        return self.task is not None and allowance in self.task.allow


@dataclass(frozen=True)
class Site:
    """A place where a skill applies."""

    key: str
    """Stable name: kernel name, then a path such as `/loop:k` or `/param:x`; survives other edits.

    Where it takes up what other kernels do, `/with:` and their names follow.
    """
    kernel: str
    reason: str
    """Why it applies here, one sentence."""
    parameters: tuple[SkillParameter, ...] = ()
    """The parameters with the values that make sense at this site; empty: the skill's own."""


@dataclass(frozen=True)
class Rewrite:
    """The edits of one application."""

    edits: tuple[Edit, ...]
    assumptions: tuple[str, ...] = ()
    """What the result relies on, each covered by a promise or guarded in the code."""
    notes: tuple[str, ...] = field(default=())
    scheduled: Scheduled | None = None
    """The schedule under which the rewrite emitted a kernel."""
