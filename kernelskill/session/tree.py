"""The candidates of a run as a tree, and how the user names one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kernelskill.errors import UnknownNameError, UsageError
from kernelskill.graph.context import MEMBERS, PROPOSALS, RoundContext
from kernelskill.registry import near_names
from kernelskill.runs import fold
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.chat_event import Remeasured
from kernelskill.schema.evaluation import VerdictKind
from kernelskill.schema.event import Judged
from kernelskill.session.records import TreeNode

LEAST_DIGITS = 6
"""Of a digest, before it is taken for one."""
_BACK = re.compile(r"(head|best)(?:~(\d*)|(\^+))", re.IGNORECASE)
_WORDS = ("head", "best", "original", "parent", "fastest")

Origin = Literal["original", "mechanical", "model", "combined", "user"]


@dataclass
class _Found:
    """What the log says about a candidate."""

    digest: str
    parent: str
    label: str
    origin: Origin
    round: int
    verdict: str
    reason: str
    speedup: float | None
    gain: float | None
    estimated: bool


def tree(context: RoundContext) -> tuple[TreeNode, ...]:
    """Return every candidate that was judged, in the order of its first judgement; the original comes first."""
    found = _found(context)
    numbers = {digest: number for number, digest in enumerate(found)}
    head = fold(context.log.events).best or context.task.original
    line = _line(context, head)
    kept = {d for d in found if d == context.task.original or context.run.has(MEMBERS, d)}
    best = max(kept, key=lambda digest: (found[digest].speedup or 0.0, -numbers[digest]))
    depths: dict[str, int] = {}
    nodes = []
    for digest, each in found.items():
        depths[digest] = depths.get(each.parent, 0) + 1 if each.parent else 0
        nodes.append(
            TreeNode(
                number=numbers[digest],
                digest=digest,
                parent=numbers.get(each.parent) if each.parent else None,
                label=each.label,
                origin=each.origin,
                round=each.round,
                verdict=each.verdict,
                reason=each.reason,
                speedup=each.speedup,
                gain=each.gain,
                estimated=each.estimated,
                is_head=digest == head,
                is_best=digest == best,
                on_line=digest in line,
                kept=digest in kept,
                depth=depths[digest],
            )
        )
    return tuple(nodes)


def find_node(context: RoundContext, ref: str) -> TreeNode:
    """Return the candidate that the user names.

    Args:
        context: The run.
        ref: `head`, `best`, `original`, `parent`, `fastest`, `head~2`, a number of the tree, or the first
            digits of a digest.

    Raises:
        UnknownNameError: None is named so.
        UsageError: Several are, or the line does not reach back so far.
    """
    nodes = tree(context)
    wanted = ref.strip().lower() or "head"
    back = _steps_back(wanted)
    if back is not None:
        return _ancestor(nodes, back)
    if wanted == "original":
        return nodes[0]
    if wanted == "fastest":
        return next(node for node in nodes if node.is_best)
    number = wanted.removeprefix("#")
    if number.isdecimal() and int(number) < len(nodes):
        return nodes[int(number)]
    alike = [node for node in nodes if node.digest.startswith(wanted)]
    if len(wanted) >= LEAST_DIGITS and len(alike) > 1:
        raise UsageError(
            f"{ref!r} begins several digests", remedy="give more digits, or a number of the tree"
        )
    if len(wanted) >= LEAST_DIGITS and alike:
        return alike[0]
    near = near_names(wanted, _WORDS)
    span = f"a number from 0 to {len(nodes) - 1}" if len(nodes) > 1 else "0"
    remedy = f"did you mean {near[0]}?" if near else f"give {span}, head, best, original or head~1"
    raise UnknownNameError(f"no candidate is called {ref!r}", remedy=remedy)


def candidate_of(context: RoundContext, node: TreeNode) -> Candidate:
    """Return the sources of a candidate, right or not."""
    if context.run.has(MEMBERS, node.digest):
        return context.member(node.digest).candidate
    for event in context.log.events:
        if isinstance(event, Judged) and event.candidate == node.digest:
            return context.proposal(event.proposal).candidate
    raise UsageError(
        "the original is not measured yet, so the run does not hold it", remedy="measure it first: baseline"
    )


def _found(context: RoundContext) -> dict[str, _Found]:
    original = context.task.original
    estimated = context.evaluator.evidence == "estimated"
    found = {original: _Found(original, "", "original", "original", 0, "", "", 1.0, None, estimated)}
    for event in context.log.events:
        if isinstance(event, Judged):
            _add(context, found, event)
        elif isinstance(event, Remeasured) and event.candidate in found:
            found[event.candidate].speedup = event.speedup
    return found


def _add(context: RoundContext, found: dict[str, _Found], event: Judged) -> None:
    known = found.get(event.candidate)
    if known is not None and known.verdict not in ("", VerdictKind.PASSED_OVER.value):
        return
    if not context.run.has(PROPOSALS, event.proposal) or (known and known.origin == "original"):
        return
    proposal = context.proposal(event.proposal)
    found[event.candidate] = _Found(
        digest=event.candidate,
        parent=proposal.base,
        label=event.label,
        origin=proposal.origin,
        round=event.round,
        verdict=event.verdict.kind.value,
        reason=event.verdict.reason,
        speedup=event.speedup_to_original,
        gain=event.verdict.speedup,
        estimated=event.verdict.evidence == "estimated",
    )


def _line(context: RoundContext, head: str) -> set[str]:
    line = {context.task.original, head}
    if context.run.has(MEMBERS, head):
        line.update(patch.child for patch in context.member(head).lineage.patches)
    return line


def _steps_back(wanted: str) -> int | None:
    """Return how many steps before the head is meant; None where it is something else."""
    if wanted in ("head", "best"):
        return 0
    if wanted == "parent":
        return 1
    match = _BACK.fullmatch(wanted)
    if match is None:
        return None
    return len(match[3]) if match[3] else int(match[2] or 1)


def _ancestor(nodes: tuple[TreeNode, ...], back: int) -> TreeNode:
    node = next(node for node in nodes if node.is_head)
    for step in range(back):
        if node.parent is None:
            word = "change" if step == 1 else "changes"
            raise UsageError(
                f"the head has only {step} {word} behind it", remedy="`original` names the beginning"
            )
        node = nodes[node.parent]
    return node
