"""What a kernel reaches: the functions it calls, the macros it uses and the words in all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import FunctionDef, FunctionKind, KernelDef
from kernelskill.source.masking import lexemes
from kernelskill.source.preprocessor import MacroDef
from kernelskill.source.syntax import Node, Span, span_of, walk
from kernelskill.source.unit import SourceUnit

BARRIERS = frozenset(
    {
        *("__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or", "__syncwarp"),
        *(
            "this_thread_block",
            "this_grid",
            "thread_block",
            "grid_group",
            "barrier",
            "pipeline",
            "memcpy_async",
        ),
        *("__nanosleep", "cooperative_groups", "asm", "__asm__", "volatile"),
    }
)
"""Words that make threads wait for one another, or may hide that they do."""
WARP_WORDS = frozenset(
    {
        *(
            "warpSize",
            "__shfl_sync",
            "__shfl_up_sync",
            "__shfl_down_sync",
            "__shfl_xor_sync",
            "__ballot_sync",
        ),
        *("__any_sync", "__all_sync", "__activemask", "__match_any_sync", "__match_all_sync", "__syncwarp"),
        *(
            "__reduce_add_sync",
            "__reduce_min_sync",
            "__reduce_max_sync",
            "__reduce_and_sync",
            "__reduce_or_sync",
        ),
        *("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__ballot", "__any", "__all", "__lane_id"),
        *(
            "tiled_partition",
            "coalesced_threads",
            "coalesced_group",
            "this_thread_block",
            "cooperative_groups",
        ),
        *(
            "wmma",
            "nvcuda",
            "mma_sync",
            "asm",
            "__asm__",
            "cub",
            "thrust",
            "__clusterDimIdx",
            "cluster_group",
        ),
    }
)
"""Words whose meaning depends on which threads share a warp."""
SHARED_WORDS = frozenset({"__shared__"})
BUILTIN_INDICES = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_WORD = re.compile(r"[A-Za-z_]\w*")


def units_of(unit: SourceUnit, context: SkillContext) -> tuple[SourceUnit, ...]:
    """Return every file of the candidate."""
    return context.units or (unit,)


def words_in(unit: SourceUnit, place: Node | Span) -> list[str]:
    """Return the words in a range, comments and strings left out."""
    span = span_of(place)
    data = unit.data[span.start : span.end]
    return [data[token.start : token.end].decode() for token in lexemes(data) if token.kind == "word"]


def macros_in(unit: SourceUnit, words: Iterable[str], context: SkillContext) -> list[MacroDef]:
    """Return the user's macros that words name, and those that the macros name in turn."""
    known: dict[str, list[MacroDef]] = {}
    for other in units_of(unit, context):
        for macro in other.macros:
            known.setdefault(macro.name, []).append(macro)
    pending, found = list(words), {}
    while pending:
        word = pending.pop()
        if word in known and word not in found:
            found[word] = known[word]
            for macro in known[word]:
                pending.extend(_WORD.findall(macro.possible))
    return [macro for macros in found.values() for macro in macros]


def reached_functions(
    unit: SourceUnit, kernel: FunctionDef, context: SkillContext
) -> list[tuple[SourceUnit, FunctionDef]]:
    """Return the user's functions that a kernel names in calls, directly or through others."""
    known: dict[str, list[tuple[SourceUnit, FunctionDef]]] = {}
    for other in units_of(unit, context):
        for function in other.functions:
            known.setdefault(function.name, []).append((other, function))
    pending = _named_words(unit, kernel, context)
    found: dict[str, list[tuple[SourceUnit, FunctionDef]]] = {}
    while pending:
        word = pending.pop()
        if word in known and word not in found:
            found[word] = known[word]
            for other, function in known[word]:
                pending.extend(_named_words(other, function, context))
    return [entry for entries in found.values() for entry in entries]


def editable_functions(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[FunctionDef]:
    """Return a kernel and the device functions of its own file that it reaches."""
    reached = [function for other, function in reached_functions(unit, kernel, context) if other is unit]
    device = [f for f in reached if f.kind is FunctionKind.DEVICE and not f.is_opaque]
    return [kernel, *device]


def _named_words(unit: SourceUnit, function: FunctionDef, context: SkillContext) -> list[str]:
    words = words_in(unit, function.span)
    for macro in macros_in(unit, words, context):
        words.extend(_WORD.findall(macro.possible))
    return words


def reached_words(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> set[str]:
    """Return every word of a kernel, of the functions that it reaches and of their macros."""
    words = set(_named_words(unit, kernel, context))
    for other, function in reached_functions(unit, kernel, context):
        words.update(_named_words(other, function, context))
    return words


def refuse_words(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, forbidden: Collection[str], why: str
) -> None:
    """Decline a kernel that mentions one of the words, itself or through what it reaches.

    Raises:
        SkillRefused: It does; `why` follows the word in the reason.
    """
    met = sorted(reached_words(unit, kernel, context) & set(forbidden))
    if met:
        raise SkillRefused(f"it uses {met[0]!r}: {why}")


def words_outside(unit: SourceUnit, kernel: FunctionDef, context: SkillContext) -> set[str]:
    """Return the words of the functions and macros that a kernel reaches, without its own text."""
    own = words_in(unit, kernel.span)
    words: set[str] = set()
    for macro in macros_in(unit, own, context):
        words.update(_WORD.findall(macro.possible))
    for other, function in reached_functions(unit, kernel, context):
        words.update(_named_words(other, function, context))
    return words


def identifiers(unit: SourceUnit, node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the names used below a node with their nodes; names of fields are left out."""
    for entry in walk(node):
        if entry.type in ("identifier", "type_identifier"):
            yield unit.text_of(entry), entry


def count_uses(unit: SourceUnit, node: Node, name: str) -> int:
    """Return how often a name is used below a node; fields of that name are others."""
    return sum(text == name for text, _ in identifiers(unit, node))


def fresh_name(unit: SourceUnit, context: SkillContext, wanted: str, taken: Collection[str] = ()) -> str:
    """Return `wanted`, or it with a number, such that no file of the candidate uses the name."""
    used = set(taken)
    for other in units_of(unit, context):
        used.update(_WORD.findall(other.text))
    number, name = 1, wanted
    while name in used:
        number += 1
        name = f"{wanted}_{number}"
    return name


def place_before(unit: SourceUnit, kernel: FunctionDef) -> Span:
    """Return where a function can be put before a kernel: above the line comments that belong to it."""
    place = kernel.span
    line = unit.line_of(place)
    if unit.text_of(Span(unit.syntax.line_span(line).start, place.start)).strip():
        return place
    while line > 1:
        above = unit.syntax.line_span(line - 1)
        text = unit.text_of(above).strip()
        if not text.startswith("//") or "kernelskill:" in text or text.endswith("\\"):
            break
        line -= 1
        place = Span(above.start, above.start)
    return place
