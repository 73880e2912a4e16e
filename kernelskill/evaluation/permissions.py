"""What a candidate may be made of: what ALLOW of the tests permits, and what the original itself uses."""

from __future__ import annotations

from kernelskill.backends.composition.device_rules import (
    BFLOAT,
    DOUBLE,
    EIGHT_BIT_FLOAT,
    HALF,
    SINGLE,
    arithmetic_of,
    data_of,
    reads_family,
)
from kernelskill.schema.build import Build, BuildFailure, Construct
from kernelskill.schema.task import Allowance, Task

_FLAG_FAMILIES = {
    "ftz=true": "flushing of denormals",
    "prec-div=false": "fast division",
    "prec-sqrt=false": "fast square root",
}
"""What flags of the user's turn on for both sides."""


def refusal_of(task: Task, candidate: Build, original: Build | BuildFailure) -> str:
    """Return why a candidate may not be made as it is, in one sentence; empty if it may.

    Args:
        task: Its ALLOW, FLAGS and types.
        candidate: Its constructs are looked at.
        original: What it uses is permitted to its candidates.
    """
    theirs = original.constructs if isinstance(original, Build) else ()
    permitted = _families(task, theirs)
    for construct in candidate.constructs:
        if construct.harmless or construct.family in permitted or construct.allowance in _allowed(task):
            continue
        return _sentence(construct)
    return _single_for_double(task, candidate.constructs, theirs)


def _families(task: Task, constructs: tuple[Construct, ...]) -> set[str]:
    """Return what the original uses, and what follows from it: who computes in a type keeps values in it."""
    found = {construct.family for construct in constructs}
    found |= {reads_family(p.element.dtype) for p in task.signature.parameters if p.element is not None}
    flags = " ".join(flag.lstrip("-") for flag in task.flags).replace(" ", "=")
    found |= {family for flag, family in _FLAG_FAMILIES.items() if flag in flags}
    found |= {data_of(kind) for kind in (HALF, BFLOAT, EIGHT_BIT_FLOAT) if arithmetic_of(kind) in found}
    return found


def _allowed(task: Task) -> frozenset[Allowance]:
    fast = any(flag.lstrip("-") == "use_fast_math" for flag in task.flags)
    return task.allow | {Allowance.FAST_MATH} if fast else task.allow


def _sentence(construct: Construct) -> str:
    place = f"{construct.place}: " if construct.place else ""
    if construct.allowance is None:
        return f"{place}the candidate {construct.does}; the original does not, and no ALLOW permits it"
    return (
        f"{place}the candidate {construct.does}; the original does not, "
        f'and it takes ALLOW = {{"{construct.allowance}"}} in the test'
    )


def _single_for_double(task: Task, mine: tuple[Construct, ...], theirs: tuple[Construct, ...]) -> str:
    """A task of doubles alone is not computed in float; where float data is there, literals may be at fault."""
    elements = [p.element for p in task.signature.pointers if p.element is not None and p.element.is_float]
    if not elements or any(element.dtype != "float64" for element in elements):
        return ""
    if Allowance.LOWER_PRECISION in task.allow or SINGLE in {construct.family for construct in theirs}:
        return ""
    found = next((construct for construct in mine if construct.family == SINGLE), None)
    return _sentence(found) if found is not None and DOUBLE in {c.family for c in theirs} else ""
