"""Launchers that take one launch where arrays lie apart, and the launches that were where they overlap."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.algorithm.lowering.text import bracketed
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.launches import LaunchSite
from kernelskill.source.syntax import ancestors
from kernelskill.source.unit import SourceUnit

Region = tuple[str, str]
"""C text of where an array begins, and of how many elements of it are meant."""
Pair = tuple[Region, Region]


def where_apart(
    unit: SourceUnit,
    launches: Sequence[LaunchSite],
    pairs: Sequence[Pair],
    name: str,
    lines: Sequence[str],
    why: str,
) -> list[str]:
    """Return the statements of a choice.

    Args:
        unit: The file.
        launches: What is done where arrays overlap.
        pairs: The arrays that must not.
        name: A free name.
        lines: What is done where none overlap.
        why: Comment for people.

    Raises:
        SkillRefused: The launches are the other side of such a choice already.
    """
    if any(node.type == "else_clause" for node in ancestors(launches[0].node)):
        raise SkillRefused("its launches are what is left where arrays overlap, or another test fails")

    def before(one: Region, other: Region) -> str:
        return f"(size_t)({bracketed(one[0])} + {one[1]}) <= (size_t)({other[0]})"

    tests = [f"({before(one, other)} || {before(other, one)})" for one, other in dict.fromkeys(pairs)]
    joined = "\n    && ".join(tests)
    return [
        f"// {why}",
        *f"const bool {name} = {joined};".split("\n"),
        f"if ({name}) {{",
        *(f"    {line}" for line in lines),
        "} else {",
        *(f"    {unit.text_of(launch.span)};" for launch in launches),
        "}",
    ]
