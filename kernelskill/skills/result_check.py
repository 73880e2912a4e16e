"""Check what a rewrite made: it parses, locked regions are untouched, the launchers are the same."""

from __future__ import annotations

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.parsed_files import launchers_in, parsed
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.unit import SourceUnit


def check_result(before: Candidate, after: Candidate) -> None:
    """Compare a candidate with what a rewrite made of it.

    Raises:
        SkillRefused: The rewrite broke a promise that every rewrite makes; a fault of the skill.
    """
    for file in before.files:
        text = after.text_of(file.path)
        if text != file.text:
            _check_file(parsed(file.text, file.path), parsed(text, file.path))


def _check_file(before: SourceUnit, after: SourceUnit) -> None:
    if len(after.problems) > len(before.problems):
        problem = after.problems[0]
        raise SkillRefused(f"the result no longer parses: line {problem.line}: {problem.message} (internal)")
    if [before.text_of(region) for region in before.locked] != [after.text_of(r) for r in after.locked]:
        raise SkillRefused("the result changes a locked region (internal)")
    if _launchers(before) != _launchers(after):
        raise SkillRefused("the result changes the signature of a launcher (internal)")


def _launchers(unit: SourceUnit) -> list[str]:
    return [repr((decl.name, decl.parameters, decl.return_type)) for decl in launchers_in(unit)]
