"""What skills could not do because the test does not promise something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.schema.proposal import Refusal
from kernelskill.schema.task import Promise

_MEANINGS = {
    Promise.ALIGNED16: "every pointer is aligned to 16 bytes",
    Promise.NO_ALIAS: "no two pointers overlap",
    Promise.FIXED_SHAPES: "only the sizes in CASES occur",
    Promise.INT32_SIZES: "every index and product of sizes fits 32 bits",
}


@dataclass(frozen=True)
class WantedPromise:
    """A promise that was not given, and what declined for want of it."""

    promise: Promise
    skills: tuple[str, ...]
    kernels: tuple[str, ...]

    def __str__(self) -> str:
        """Return one sentence for a user."""
        count = f"{len(self.skills)} skill{'' if len(self.skills) == 1 else 's'}"
        return (
            f'{count} declined for want of PROMISE = {{"{self.promise.value}"}} ({_MEANINGS[self.promise]})'
        )


def wanted_promises(refusals: Sequence[Refusal]) -> tuple[WantedPromise, ...]:
    """Return the promises that refusals name, the most wanted first."""
    found = []
    for promise in Promise:
        named = [refusal for refusal in refusals if refusal.promise is promise]
        if named:
            skills = tuple(dict.fromkeys(refusal.skill for refusal in named))
            found.append(WantedPromise(promise, skills, tuple(dict.fromkeys(r.kernel for r in named))))
    return tuple(sorted(found, key=lambda wanted: -len(wanted.skills)))


def section(refusals: Sequence[Refusal]) -> str:
    """Return the part of the report that says what promises would open; empty where none is wanted."""
    lines = [
        f"- {wanted}; in {', '.join(f'`{kernel}`' for kernel in wanted.kernels)}: {', '.join(wanted.skills)}"
        for wanted in wanted_promises(refusals)
    ]
    if not lines:
        return ""
    intro = (
        "Nothing is assumed that the test does not promise. If it holds for every caller, say so in the test:"
    )
    return f"## What a promise would open\n\n{intro}\n\n" + "\n".join(lines)
