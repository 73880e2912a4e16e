"""History: the candidates of a run, and which of them it goes on from. Nothing is ever destroyed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kernelskill.agents.changes import ChangeRefused, require_kept
from kernelskill.errors import UsageError
from kernelskill.graph import outcomes
from kernelskill.graph.context import PROPOSALS
from kernelskill.report import figures
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.chat_event import HeadMoved
from kernelskill.schema.evaluation import Status, Verdict, VerdictKind
from kernelskill.schema.event import Judged
from kernelskill.schema.proposal import Effect, Exactness, Proposal
from kernelskill.search.frontier import is_level
from kernelskill.session import tree as trees
from kernelskill.session.records import BestView, DiffView, Moved, Pinned, SourceView, TreeNode
from kernelskill.session.workbench import Workbench
from kernelskill.source.edits import unified_diff

BY_HAND = "edited by hand"
_USER = "user"
_STAYS = (VerdictKind.ACCEPTED.value, VerdictKind.TIE.value)


class History:
    """Looks at candidates and moves the head among them."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def tree(self) -> tuple[TreeNode, ...]:
        """Return every candidate that was judged, in the order of numbers; the original comes first."""
        return trees.tree(self._bench.context)

    def node(self, ref: str = "head") -> TreeNode:
        """Return the candidate that is named.

        Raises:
            UnknownNameError: None is.
        """
        return trees.find_node(self._bench.context, ref)

    def best(self) -> BestView:
        """Return the head: the best of the present line.

        Raises:
            UsageError: The original is not measured yet.
        """
        self._bench.measured()
        nodes = self.tree()
        node = next(node for node in nodes if node.is_head)
        member, state = self._bench.head, self._bench.state
        timings = state.confirmed.timings if state.confirmed else member.evaluation.timings
        fastest = next(node for node in nodes if node.is_best)
        faster = fastest if (fastest.speedup or 0.0) > member.speedup and not fastest.is_head else None
        return BestView(
            node=node,
            cases=self._bench.case_times(member.candidate, timings or member.evaluation.timings),
            changes=tuple(patch.label or BY_HAND for patch in member.lineage.patches),
            assumptions=member.assumptions,
            exact=member.exact,
            confirmed=state.confirmed is not None,
            faster=faster,
        )

    def show(self, ref: str = "head") -> SourceView:
        """Return a candidate's text.

        Raises:
            UnknownNameError: No candidate is named so.
        """
        node = self.node(ref)
        candidate = self.candidate(node)
        files = tuple((file.path, file.text) for file in candidate.files)
        return SourceView(node=node, path=candidate.main, text=candidate.source, files=files)

    def diff(self, a: str = "original", b: str = "head") -> DiffView:
        """Return what sets two candidates apart.

        Raises:
            UnknownNameError: A candidate is not named so.
        """
        first, second = self.node(a), self.node(b)
        text = unified_diff(self.candidate(first), self.candidate(second))
        return DiffView(first=first, second=second, text=text)

    def undo(self, count: int = 1) -> Moved:
        """Make what came before the head's last changes the head.

        Raises:
            UsageError: There are not so many changes.
        """
        return self._back(count)

    def redo(self, count: int = 1) -> Moved:
        """Take back as many moves of `undo`.

        Raises:
            UsageError: There is nothing to take back.
        """
        _require_count(count)
        before = self.node()
        undone = self._bench.state.undone
        if len(undone) < count:
            known = (
                f"only {_steps(undone)} can be taken again"
                if undone
                else "nothing was undone since the head last moved"
            )
            raise UsageError(
                f"cannot redo: {known}", remedy="`tree` shows all candidates; move to one of them"
            )
        for _ in range(count):
            self._go(self._bench.state.undone[-1], "redo")
        return self._moved(before)

    def move(self, ref: str) -> Moved:
        """Make any right candidate the head.

        Raises:
            UnknownNameError: No candidate is named so.
            UsageError: It is not right.
        """
        before, node = self.node(), self.node(ref)
        self._bench.measured()
        if not node.kept:
            raise UsageError(
                f"#{node.number} cannot be the head: {node.verdict.replace('_', ' ')}, {node.reason}",
                remedy="give a candidate that is right",
            )
        if node.digest != before.digest:
            self._go(node.digest, "move")
        return self._moved(before)

    def pin_file(self, file: Path, *, path: str = "", move: bool | None = None) -> Pinned:
        """Adopt the text of a file; see `pin`.

        Raises:
            UsageError: The file cannot be read.
        """
        try:
            text = file.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise UsageError(
                f"cannot read {str(file)!r}: {error.strerror}", remedy="give a .cu file"
            ) from None
        except UnicodeDecodeError:
            raise UsageError(f"{str(file)!r} is no UTF-8 text", remedy="save it as UTF-8") from None
        return self.pin(text, path=path, move=move)

    def pin(self, text: str, *, path: str = "", move: bool | None = None) -> Pinned:
        """Adopt an edited text as a candidate; it is built, checked and timed like any other.

        Args:
            text: The whole file.
            path: Which file of the candidate; the main one by default.
            move: Whether the head goes there. By default it does unless the text is slower than the head;
                to a wrong one it never goes.

        Raises:
            UsageError: The text is empty, or the candidate has no such file.
            TaskError: The original fails its own test.
            RunInterrupted: The user asked to stop.
        """
        bench = self._bench
        bench.context.stop.is_set = False
        bench.ready()
        candidate = self._with_text(text, path)
        known = next((node for node in self.tree() if node.digest == candidate.digest), None)
        if known is None:
            bench.end_round("the user adopted a text of their own")
            self._judge(candidate)
        node = self.node(candidate.digest)
        wanted = self._is_level(node, fresh=known is None) if move is None else move
        moved = node.kept and wanted and not node.is_head
        if moved:
            self._go(node.digest, "pin")
        return Pinned(
            node=self.node(candidate.digest),
            accepted=node.kept,
            moved=moved,
            status=node.verdict or "original",
            reason=node.reason,
            gain=node.gain,
            known=known is not None,
        )

    def candidate(self, node: TreeNode) -> Candidate:
        """Return the sources of a candidate."""
        original = self._bench.assembly.original
        if node.digest == original.digest:
            return original
        return trees.candidate_of(self._bench.context, node)

    def _back(self, count: int) -> Moved:
        _require_count(count)
        self._bench.measured()
        before = self.node()
        patches = self._bench.head.lineage.patches
        if len(patches) < count:
            known = f"the original is only {_steps(patches)} back" if patches else "the head is the original"
            raise UsageError(f"cannot undo: {known}", remedy="`tree` shows all candidates")
        for _ in range(count):
            self._go(self._bench.head.lineage.patches[-1].parent, "undo")
        return self._moved(before)

    def _go(self, digest: str, how: Literal["undo", "redo", "move", "pin"]) -> None:
        bench = self._bench
        bench.end_round("the user moved the head")
        bench.context.log.emit(
            HeadMoved(
                number=bench.number,
                how=how,
                candidate=digest,
                before=bench.state.best,
                speedup=bench.context.member(digest).speedup,
            )
        )

    def _moved(self, before: TreeNode) -> Moved:
        nodes = self.tree()
        after = next(node for node in nodes if node.is_head)
        others = [
            node
            for node in nodes
            if node.parent == after.number and node.verdict == VerdictKind.ACCEPTED.value
        ]
        notes = tuple(f"from here there is also #{n.number}: {n.label}, {_gain(n)}" for n in others)
        return Moved(
            before=before,
            after=after,
            can_undo=bool(self._bench.head.lineage.patches),
            can_redo=bool(self._bench.state.undone),
            notes=notes,
        )

    def _with_text(self, text: str, path: str) -> Candidate:
        base = self._bench.head.candidate
        wanted = path or base.main
        if wanted not in [file.path for file in base.files]:
            raise UsageError(
                f"the candidate has no file {wanted!r}",
                remedy=f"its files are {', '.join(file.path for file in base.files)}",
            )
        if not text.strip():
            raise UsageError("the text is empty", remedy="give the whole file")
        if "\0" in text or text != text.encode("utf-8", "replace").decode("utf-8"):
            raise UsageError("the text holds what no source can", remedy="give UTF-8 text")
        generated = self._bench.assembly.generated
        if wanted == base.main and generated and generated not in text.replace("\r\n", "\n"):
            # The user's file holds the kernel alone; its launcher was made for it.
            newline = "\r\n" if "\r\n" in text else "\n"
            text = text.rstrip() + (f"\n\n{generated}\n").replace("\n", newline)
        return base.with_text(wanted, text)

    def _is_level(self, node: TreeNode, *, fresh: bool) -> bool:
        """Return whether a candidate is not slower than the head; one that was judged before had another base."""
        if fresh or not node.kept:
            return node.verdict in _STAYS
        return is_level(self._bench.context.member(node.digest), self._bench.head)

    def _judge(self, candidate: Candidate) -> None:
        bench, context = self._bench, self._bench.context
        proposal = self._proposal(candidate)
        context.run.put(PROPOSALS, proposal.id, proposal)
        bench.guard.own(candidate)
        try:
            require_kept(bench.head.candidate, candidate, context.task.signature)
        except ChangeRefused as refused:
            verdict = Verdict(kind=VerdictKind.REFUSED, reason=refused.reason)
            self._record(proposal, verdict, None)
            return
        evaluation = context.evaluation(proposal, depth="search")
        context.log.emit(outcomes.evaluated(0, proposal, evaluation))
        verdict = outcomes.verdict(context, proposal, evaluation)
        if evaluation.status is not Status.PASSED and evaluation.diagnostics:
            first = evaluation.diagnostics[0].message
            reason = verdict.reason if first in verdict.reason else f"{verdict.reason}; {first}"
            verdict = verdict.model_copy(update={"reason": reason[:600]})
        member = outcomes.keep_member(context, proposal, evaluation, verdict)
        self._record(proposal, verdict, member.speedup if member else None)

    def _record(self, proposal: Proposal, verdict: Verdict, speedup: float | None) -> None:
        self._bench.context.log.emit(
            Judged(
                proposal=proposal.id,
                label=proposal.label,
                candidate=proposal.candidate.digest,
                verdict=verdict,
                speedup_to_original=speedup,
            )
        )

    def _proposal(self, candidate: Candidate) -> Proposal:
        return Proposal(
            base=self._bench.state.best,
            candidate=candidate,
            specialist=_USER,
            origin="user",
            steps=(),
            predicted=Effect(log_speedup=0.0, deviation=0.5),
            exactness=Exactness.REORDERS,  # nobody can say what an edit by hand does to rounding
            rationale="the user's own text",
            title=BY_HAND,
        )


def _gain(node: TreeNode) -> str:
    return figures.speedup(node.speedup or 1.0, "estimated" if node.estimated else "measured")


def _steps(taken: Sequence[object]) -> str:
    return f"{len(taken)} step{'' if len(taken) == 1 else 's'}"


def _require_count(count: int) -> None:
    if count < 1:
        raise UsageError(f"{count} steps cannot be taken", remedy="give 1 or more")
