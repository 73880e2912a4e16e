"""Evidence: why things are as they are, from the records of the run."""

from __future__ import annotations

import re
from typing import Literal

from kernelskill.agents.profiler import Diagnosis, diagnose_candidate
from kernelskill.errors import UnknownNameError, UsageError
from kernelskill.graph import outcomes
from kernelskill.graph.context import DIAGNOSES
from kernelskill.graph.predictions import observe
from kernelskill.profiling.potential import plain_name
from kernelskill.registry import near_names
from kernelskill.schema.event import Judged
from kernelskill.schema.profile import BottleneckKind, ProfileDepth
from kernelskill.schema.proposal import Skill
from kernelskill.schema.run import Member
from kernelskill.session import explaining
from kernelskill.session.clauses import cleaned, topics_in
from kernelskill.session.history import History
from kernelskill.session.inquiry import answered_by_model
from kernelskill.session.offers import Offers
from kernelskill.session.records import Explanation, ProfileView, SkillRow, TreeNode
from kernelskill.session.steering import SteeringDesk
from kernelskill.session.vocabulary import Topic
from kernelskill.session.workbench import Workbench

_PROPOSAL = re.compile(r"p\d+\.\d+", re.IGNORECASE)
_NUMBER = re.compile(r"#\d+\b|\bp\d+\.\d+\b", re.IGNORECASE)
_MOST_SKILLS = 5
State = Literal["offered", "declined", "banned", "not asked"]
_ABOUT_TIME = re.compile(
    r"\b(slow|slower|fast|faster|limit\w*|bottleneck\w*|time|bound|wait\w*|stall\w*|roof)\b"
)
_ABOUT_NEXT = re.compile(r"\b(next|try|do|help|idea\w*|suggest\w*|recommend\w*|improve|promising)\b")


class Evidence:
    """Explains and profiles."""

    def __init__(self, bench: Workbench, history: History, steering: SteeringDesk) -> None:
        self._bench = bench
        self._history = history
        self._steering = steering
        self._offers = Offers(bench.context)

    def why(self, name: str = "") -> Explanation:
        """Explain a candidate, a proposal, a limit, a skill or a direction; the head's time by default.

        Raises:
            UnknownNameError: Nothing is called so.
            UsageError: Only the original is there, and it is not measured yet.
            TaskError: The original fails its own test.
        """
        wanted = name.strip()
        if wanted.lower() in ("", "slow", "head"):
            return self._head()
        if _PROPOSAL.fullmatch(wanted):
            return self._proposal(wanted)
        limit = self._limit(wanted)
        if limit is not None:
            return limit
        topic = self._steering.vocabulary.topic(wanted)
        if topic is not None and topic.skills:
            return self._topics((topic,), "skill", wanted)
        return self._change(wanted)

    def ask(self, question: str) -> Explanation:
        """Answer a question in plain words: by the model where there is one and it answers, else from the records.

        Raises:
            UsageError: There is no question.
            TaskError: The original fails its own test.
        """
        question = " ".join(cleaned(question).split())
        if not question:
            raise UsageError("nothing was asked", remedy="ask for example: why is it slow?")
        own = self._from_records(question)
        head = self._bench.head
        self.diagnosis(head)
        return answered_by_model(self._bench.context, head.candidate.digest, question, own)

    def about(self, text: str) -> Explanation | None:
        """Return what is known of the directions that a text speaks of; None where it speaks of none."""
        topics = tuple(topic for topic in topics_in(text, self._steering.vocabulary) if topic.skills)
        # `memory` alone may be anything; where more is said, that is meant.
        topics = tuple(topic for topic in topics if not topic.specialists) or topics
        return self._topics(topics, "question", text) if topics else None

    def profile(self, ref: str = "head", *, depth: ProfileDepth = "quick") -> ProfileView:
        """Collect the figures of a candidate and rank its limits; a quick profile that is there is used again.

        Raises:
            UnknownNameError: No candidate is named so.
            UsageError: It is not right, so its figures mean nothing.
        """
        self._bench.context.stop.is_set = False
        self._bench.ready()
        node = self._history.node(ref)
        if not node.kept:
            raise UsageError(
                f"#{node.number} is not right, so its figures mean nothing: {node.reason}",
                remedy="give a candidate that is right",
            )
        member = self._bench.context.member(node.digest)
        return ProfileView(node=node, diagnosis=self.diagnosis(member, depth=depth))

    def diagnosis(self, member: Member, *, depth: ProfileDepth = "quick") -> Diagnosis:
        """Return what limits a right candidate."""
        context, digest = self._bench.context, member.candidate.digest
        if depth == "full" or not context.run.has(DIAGNOSES, digest):
            roofline = outcomes.heaviest_roofline(context, member)
            timings = member.evaluation.timings
            found = diagnose_candidate(
                context.evaluator, member.candidate, roofline, depth=depth, timings=timings
            )
            context.run.put(DIAGNOSES, digest, found)
            observe(context, digest)
        return context.diagnosis(digest)

    def skills(self, specialist: str = "") -> tuple[SkillRow, ...]:
        """Return every skill as it stands for the head, the best fitting first.

        Raises:
            UnknownNameError: No specialist is called so.
        """
        library = self._bench.context.library
        if specialist and specialist not in library.specialists():
            near = near_names(specialist, library.specialists())
            known = ", ".join(near or library.specialists())
            raise UnknownNameError(f"no specialist is called {specialist!r}", remedy=f"specialists: {known}")
        chosen = library.of(specialist) if specialist else library.all()
        rows = [self._row(skill) for skill in chosen]
        return tuple(sorted(rows, key=lambda row: (-row.fit, row.state != "offered", row.id)))

    def skill(self, name: str) -> SkillRow:
        """Return one skill as it stands for the head.

        Raises:
            UnknownNameError: No skill is called so.
        """
        library, wanted = self._bench.context.library, "_".join(name.split())
        try:
            return self._row(library.get(wanted))
        except UnknownNameError as unknown:
            near = near_names(wanted, [skill.id.rsplit("/", 1)[-1] for skill in library.all()])
            remedy = f"did you mean {' or '.join(near)}?" if near else "`skills` names them all"
            raise UnknownNameError(unknown.message, remedy=remedy) from None

    def _from_records(self, question: str) -> Explanation:
        self._bench.ready()
        named = _NUMBER.search(question)
        if named is not None:
            return self.why(named[0]).model_copy(update={"subject": "change"})
        plain = question.lower()
        topics = topics_in(question, self._steering.vocabulary)
        kernels = tuple(kernel for topic in topics for kernel in topic.kernels)
        # `memory` may be a specialist, and is none in `is it memory bound?`
        about = self.about(question) if any(t.skills and not t.specialists for t in topics) else None
        if about is not None:
            return about
        if _ABOUT_TIME.search(plain):
            return self._head(kernels)
        about = self.about(question)
        if about is not None:
            return about
        for kind in BottleneckKind:
            if kind is not BottleneckKind.NONE and kind.value.replace("_", " ") in plain:
                found = self._limit(kind.value)
                if found is not None:
                    return found
        if kernels:
            return self._head(kernels)
        if _ABOUT_NEXT.search(plain):
            return self._next()
        return Explanation(
            subject="question",
            name=question,
            lines=(
                "that was not understood; ask what limits the kernel, what a direction would bring"
                " (tiles, shared memory, registers, ...), what to try next, or why of a candidate (#2)",
            ),
            understood=False,
        )

    def _head(self, kernels: tuple[str, ...] = ()) -> Explanation:
        """Say why the head takes its time; of some kernels alone, where their names are given."""
        self._bench.ready()
        member, node = self._bench.head, self._history.node()
        diagnosis = self.diagnosis(member)
        own = tuple(b for b in diagnosis.bottlenecks if plain_name(b.kernel) in kernels)
        if own:
            diagnosis = diagnosis.model_copy(update={"bottlenecks": own})
        skills = self._bench.context.library.all()
        lines = tuple(explaining.run_lines(diagnosis, node, skills))
        kinds = {found.kind for found in diagnosis.bottlenecks[:1]}
        answering = tuple(skill.id for skill in skills if kinds & set(skill.triggers))
        return Explanation(subject="run", name=f"#{node.number}", lines=lines, skills=answering)

    def _next(self) -> Explanation:
        """Say what the policy expects most of."""
        context, member = self._bench.context, self._bench.head
        self.diagnosis(member)
        proposals = {
            p.id: p for name in context.library.specialists() for p in self._offers.of(name, member).proposals
        }
        best = self._offers.expected(list(proposals.values()), member.candidate.digest)[:_MOST_SKILLS]
        lines = [f"{e.proposal.label}: expected {e.speedup:.2f}x, {e.proposal.rationale}" for e in best]
        skills = dict.fromkeys(step.skill for e in best for step in e.proposal.steps)
        return Explanation(
            subject="question",
            name="next",
            lines=(
                "what the next step would look at, the most promising first; guesses, until measured",
                *lines,
            )
            if lines
            else ("no mechanical skill applies to the head any more",),
            skills=tuple(skills),
        )

    def _proposal(self, name: str) -> Explanation:
        shown = self._steering.find(name)
        if shown.number is not None:
            return self._change(str(shown.number))
        tried = shown.outcome or "not tried"
        lines = [
            f"{shown.name} {shown.label}: {tried}; expected {shown.mean:.2f}x over its base, by the policy",
        ]
        library = self._bench.context.library
        lines += [f"  {skill}: {' '.join(library.get(skill).summary.split())}" for skill in shown.skills]
        return Explanation(subject="change", name=shown.name, lines=tuple(lines), skills=shown.skills)

    def _change(self, ref: str) -> Explanation:
        node = self._node(ref)
        lines = tuple(explaining.change_lines(self._bench.context, node))
        skills: tuple[str, ...] = ()
        for event in self._bench.context.log.events:
            if isinstance(event, Judged) and event.candidate == node.digest:
                proposal = self._bench.context.proposal(event.proposal)
                skills = tuple(dict.fromkeys(step.skill for step in proposal.steps))
        return Explanation(subject="change", name=f"#{node.number}", lines=lines, skills=skills)

    def _node(self, ref: str) -> TreeNode:
        try:
            return self._history.node(ref)
        except UnknownNameError as unknown:
            kinds = [kind.value for kind in BottleneckKind]
            near = near_names(ref, [*kinds, *self._steering.vocabulary.spellings()])
            remedy = f"did you mean {' or '.join(near)}?" if near else unknown.remedy
            raise UnknownNameError(
                f"nothing that can be explained is called {ref!r}", remedy=remedy
            ) from None

    def _limit(self, name: str) -> Explanation | None:
        """Return what is known of a limit, where that is one."""
        wanted = "_".join(name.lower().split()).replace("-", "_")
        kinds = [
            kind for kind in BottleneckKind if kind.value == wanted or kind.value.startswith(f"{wanted}_")
        ]
        if not kinds:
            return None
        self._bench.ready()
        diagnosis = self.diagnosis(self._bench.head)
        skills = self._bench.context.library.all()
        found = [limit for limit in diagnosis.bottlenecks if limit.kind in kinds]
        lines = [line for limit in found for line in explaining.limit_lines(limit, skills)]
        if not found:
            lines = [f"{name} does not limit the head: the diagnosis does not name it"]
            named = ", ".join(limit.kind.value.replace("_", " ") for limit in diagnosis.bottlenecks)
            lines += [f"it names {named}"] if named else []
        answering = tuple(skill.id for skill in skills if set(kinds) & set(skill.triggers))
        return Explanation(subject="limit", name=kinds[0].value, lines=tuple(lines), skills=answering)

    def _topics(self, topics: tuple[Topic, ...], subject: str, name: str) -> Explanation:
        """Say what directions would bring: their skills, the ones that apply and fit first."""
        self._bench.ready()
        context, member = self._bench.context, self._bench.head
        limits = self.diagnosis(member).bottlenecks
        ids = list(dict.fromkeys(skill for topic in topics for skill in topic.skills))
        rows = sorted((self._row(context.library.get(i)) for i in ids), key=_promise)
        applies = sum(row.state == "offered" for row in rows)
        banned = sum(row.state == "banned" for row in rows)
        lines = [
            f"{' and '.join(dict.fromkeys(topic.name for topic in topics))}: {applies} of {len(rows)}"
            f" skill{'s' if len(rows) != 1 else ''} can be applied to the head"
            + (f", {banned} banned" if banned else "")
        ]
        for row in rows[:_MOST_SKILLS]:
            own = [
                p
                for p in self._offers.of(row.specialist, member).proposals
                if p.steps and p.steps[0].skill == row.id
            ]
            expected = self._offers.expected(own, member.candidate.digest)
            lines += explaining.skill_lines(context, row, expected, limits)
        if len(rows) > _MOST_SKILLS:
            lines.append(f"less likely: {', '.join(row.id for row in rows[_MOST_SKILLS:])}")
        lines += explaining.pool_lines(context, member.candidate.digest, ids)
        kind = "skill" if subject == "skill" else "question"
        return Explanation(
            subject="skill" if kind == "skill" else "question",
            name=name,
            lines=tuple(lines),
            skills=tuple(row.id for row in rows),
        )

    def _row(self, skill: Skill) -> SkillRow:
        context = self._bench.context
        banned = context.steering.declines(skill.id)
        judged = [
            event
            for event in context.log.events
            if isinstance(event, Judged)
            and any(step.skill == skill.id for step in context.proposal(event.proposal).steps)
        ]
        won = sum(event.verdict.kind.value == "accepted" for event in judged)
        fit, reason = 0.0, ""
        state: State = "not asked"
        if self._bench.state.baseline is not None:
            fit, state, reason = self._standing(skill)
        return SkillRow(
            id=skill.id,
            title=skill.title,
            specialist=skill.specialist,
            mechanical=skill.mechanical,
            fit=fit,
            state="banned" if banned else state,
            reason=banned or reason,
            tried=len(judged),
            won=won,
            summary=" ".join(skill.summary.split()),
            text=skill.text,
        )

    def _standing(self, skill: Skill) -> tuple[float, State, str]:
        """Return how well a skill fits the head, whether it applies, and why not."""
        self._bench.ready()
        member = self._bench.head
        limits = self.diagnosis(member).bottlenecks
        fit = max((found.confidence for found in limits if found.kind in skill.triggers), default=0.0)
        if not skill.mechanical:
            return fit, "not asked", "only a model can apply it"
        offer = self._offers.of(skill.specialist, member)
        if any(p.steps and p.steps[0].skill == skill.id for p in offer.proposals):
            return fit, "offered", ""
        reasons = [refusal.reason for refusal in offer.refusals if refusal.skill == skill.id]
        tried = any(step.skill == skill.id for step in member.lineage.steps)
        default = "it was applied already" if tried else "what it makes was tried already"
        return fit, "declined", reasons[0] if reasons else default


def _promise(row: SkillRow) -> tuple[bool, float, str]:
    return row.state != "offered", -row.fit, row.id
