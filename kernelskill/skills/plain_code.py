"""Decline code that may do more than its text shows, before it is moved, merged or copied."""

from __future__ import annotations

import re

from kernelskill.skills.device_code import BARRIERS, WARP_WORDS, macros_in, words_in
from kernelskill.skills.loop_effects import refuse_hidden_accesses
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, find_accesses
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, span_of, walk
from kernelskill.source.unit import SourceUnit

_WORD = re.compile(r"[A-Za-z_]\w*")
_UNCLEAR = {
    "goto_statement": "a goto",
    "labeled_statement": "a label",
    "lambda_expression": "a lambda",
    "gnu_asm_expression": "inline assembly",
    "try_statement": "exceptions",
}
_FORBIDDEN = BARRIERS | WARP_WORDS | {"static", "__shared__", "goto", "co_await"}


def refuse_unclear(unit: SourceUnit, kernel: FunctionDef, node: Node, context: SkillContext) -> None:
    """Decline a piece of a kernel in which threads meet, or in which names or jumps may hide.

    Raises:
        SkillRefused: It has such a thing; the reason names it.
    """
    line = f"the code on line {unit.line_of(node)}"
    met = sorted(set(words_in(unit, node)) & _FORBIDDEN)
    if met:
        raise SkillRefused(f"{line} uses {met[0]!r}")
    for entry in walk(node):
        if entry.type in _UNCLEAR:
            raise SkillRefused(f"{line} has {_UNCLEAR[entry.type]}")
        if entry.type.startswith("preproc"):
            raise SkillRefused(f"{line} holds a directive")
    if "volatile" in words_in(unit, kernel.span):
        raise SkillRefused("the kernel uses volatile memory")
    if flow_of(unit, kernel).has_goto:
        raise SkillRefused("the kernel has a goto")
    own = {parameter.name for parameter in kernel.parameters} | {variable.name for variable in kernel.locals}
    for macro in macros_in(unit, words_in(unit, node), context):
        hidden = (set(_WORD.findall(macro.possible)) - set(macro.parameters or ())) & own
        if hidden:
            raise SkillRefused(f"macro {macro.name!r} uses the variable {min(hidden)!r} unseen")
        if "=" in macro.possible.replace("==", "") or "++" in macro.possible or "--" in macro.possible:
            raise SkillRefused(f"macro {macro.name!r} may assign")


def accesses_in(unit: SourceUnit, kernel: KernelDef, node: Node, context: SkillContext) -> list[Access]:
    """Return every access to memory below a node.

    Raises:
        SkillRefused: A call or macro below it may access memory unseen.
    """
    refuse_hidden_accesses(unit, kernel, node, context)
    inside = span_of(node)
    return [access for access in find_accesses(unit, kernel) if inside.contains(access.span)]
