"""Rule: one thing that the user asked of a run in words, as it was understood."""

from __future__ import annotations

from typing import Literal

from kernelskill.schema.base import Record

Action = Literal[
    "ban", "allow", "only", "prefer", "later", "at_most", "at_least", "exactly", "larger", "smaller", "note"
]
"""`ban`, `allow`, `only`, `at_most`, `at_least` and `exactly` are constraints; `prefer`, `later`, `larger` and
`smaller` change the order alone; `note` is what no mechanical part understands and a model is told."""

Strength = Literal["constraint", "preference", "note"]

_PREFERENCES = ("prefer", "later", "larger", "smaller")


class Rule(Record):
    """What is asked, of what. Later rules win over earlier ones about the same."""

    number: int
    """Its name in the run, from 1."""
    action: Action
    topic: str
    """What it is about, in words, for example `shared memory` or `the kernel 'rows'`."""
    skills: tuple[str, ...] = ()
    """Ids of the skills it speaks of; of a parameter, the skills in which it counts; empty: all."""
    specialists: tuple[str, ...] = ()
    """Specialists that it speaks of as a whole."""
    kernels: tuple[str, ...] = ()
    """Kernels it speaks of; empty: all."""
    parameters: tuple[str, ...] = ()
    """Names of the parameters it speaks of."""
    value: str = ""
    """Of a range, for example `32` or `16x16`, several apart by `|`; of `prefer` the place in the order, from 1."""
    measure: Literal["side", "product"] = "side"
    """Whether a range of `16x16` speaks of each side, or of both together."""
    words: tuple[str, ...] = ()
    """Names that a change may not add where this is banned; `*` stands for any ending. One with a dot is looked
    for in strings, where `asm` is written."""
    text: str
    """What the user wrote."""

    @property
    def strength(self) -> Strength:
        """How binding it is."""
        if self.action == "note":
            return "note"
        return "preference" if self.action in _PREFERENCES else "constraint"
