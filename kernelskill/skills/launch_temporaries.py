"""Arrays that nothing but some launches of one function uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernelskill.schema.task import Role
from kernelskill.skills.disjoint import source_of
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.launches import LaunchSite
from kernelskill.source.syntax import span_of
from kernelskill.source.unit import SourceUnit


def is_temporary(
    unit: SourceUnit,
    function: FunctionDef | None,
    argument: str,
    launches: Sequence[LaunchSite],
    context: SkillContext,
) -> bool:
    """Whether nothing but the launches uses what an argument of theirs points to.

    It is scratch space of the task, or memory that the function allocates, hands to nothing else and frees.
    """
    task = context.task
    if function is None or function.body is None or not argument.isidentifier():
        return False
    text = unit.text_of(span_of(function.body))
    uses = len(re.findall(rf"\b{argument}\b", text))
    given = sum(a.text == argument for launch in launches for a in launch.arguments)
    is_launcher = task is not None and task.signature.symbol == function.name
    if is_launcher and task is not None and task.roles.get(argument) is Role.SCRATCH:
        return uses == given
    source = argument_source(unit, function, argument, launches)
    return source == ("fresh", argument) and uses == given + _holding(argument, text)


def refuse_kept(
    unit: SourceUnit, launches: Sequence[LaunchSite], context: SkillContext, names: Iterable[str]
) -> None:
    """Decline where something else may see arrays that launches will no longer store.

    Args:
        unit: The file.
        launches: All that use the arrays.
        context: Knows the task.
        names: The launcher's pointers.

    Raises:
        SkillRefused: One of them is no temporary.
    """
    function = unit.enclosing_function(launches[0].node)
    for name in names:
        argument = name.removeprefix("host:")
        if not is_temporary(unit, function, argument, launches, context):
            raise SkillRefused(f"{argument!r}, which is no longer stored, may be used by others")


def argument_source(
    unit: SourceUnit, function: FunctionDef | None, argument: str, launches: Sequence[LaunchSite]
) -> tuple[str, str] | None:
    """Return where a pointer argument of launches comes from; None where unknown."""
    for launch in launches:
        for given in launch.arguments:
            if given.text == argument:
                return source_of(KernelLaunch(unit, launch, function), given.node)
    return None


def _holding(argument: str, text: str) -> int:
    """Count the uses that only declare, allocate and free a buffer."""
    name = re.escape(argument)
    found = len(re.findall(rf"\*\s*{name}\s*(?:=\s*(?:nullptr|NULL|0)\s*)?;", text))
    allocations = rf"\bcudaMalloc(?:Async)?\s*\(\s*(?:\(\s*void\s*\*\*\s*\)\s*)?&\s*{name}\s*,"
    return (
        found
        + len(re.findall(allocations, text))
        + len(re.findall(rf"\bcudaFree(?:Async)?\s*\(\s*{name}\s*[,)]", text))
    )
